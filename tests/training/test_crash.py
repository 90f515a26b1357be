"""A run that is killed, or whose disk fills up, resumes and ends with the same weights."""

import json
import multiprocessing
import random
import resource
import sys
import time
from multiprocessing.context import ForkServerProcess
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tclgraph.errors import InputError
from tclgraph.events.synthetic import SyntheticConfig, synthesize
from tclgraph.models.ranker.model import Ranker
from tclgraph.training import loop

EPOCHS = 4
TIMEOUT = 120
# Every run is a process of its own, forked from one that has imported what it needs.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload([__name__, "torch._dynamo"])


def train(run: Path, is_resumed: bool, limit: int, begun: Event) -> None:
    """Train until the end, or until a file would be larger than the limit; 0 is no limit."""
    # Checkpoints after every batch, so that a kill often meets one that is being written.
    loop._SECONDS_BETWEEN_CHECKPOINTS = 0.0
    torch.set_num_threads(1)
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    split = synthesize(SyntheticConfig(events=1_200, sources=50, targets=40)).split(0.6, 0.2)
    encoder = {"encoder.width": 16, "encoder.heads": 4, "encoder.levels": 4}
    model = Ranker(epochs=EPOCHS, batch_size=32, threads=1, **encoder)
    begun.set()
    try:
        model.fit(split, run=run, resume=is_resumed)
    except InputError as error:
        (run.parent / "error").write_text(str(error))
        sys.exit(2)


def start(run: Path, *, is_resumed: bool = False, limit: int = 0) -> ForkServerProcess:
    begun = CONTEXT.Event()
    process = CONTEXT.Process(target=train, args=(run, is_resumed, limit, begun))
    process.start()
    assert begun.wait(TIMEOUT)
    return process


def finish(process: ForkServerProcess) -> int | None:
    process.join(TIMEOUT)
    return process.exitcode


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    """Run without interruption; return its folder and its duration in seconds."""
    run = tmp_path_factory.mktemp("reference") / "run"
    assert finish(start(run)) == 0
    process = start(tmp_path_factory.mktemp("again") / "run")
    started = time.monotonic()
    assert finish(process) == 0  # timed without compilation
    return run, time.monotonic() - started


def assert_same_end(run: Path, expected: Path) -> None:
    for name in ("last.safetensors", "model.safetensors"):
        ours, theirs = load_file(run / name), load_file(expected / name)
        assert ours.keys() == theirs.keys()
        for key in ours:
            assert torch.equal(ours[key], theirs[key]), f"{name}: {key}"
    assert not list(run.glob(".*"))  # no partly written file is left
    assert len((run / "metrics.jsonl").read_text().splitlines()) == EPOCHS + 1


def test_kill_9_at_ten_random_moments(reference: tuple[Path, float], tmp_path: Path) -> None:
    expected, seconds = reference
    moments = random.Random(17)
    num_killed = 0
    for number in range(10):
        run = tmp_path / f"run{number}"
        process = start(run)
        time.sleep(moments.uniform(0.0, seconds))
        process.kill()
        num_killed += finish(process) == -9
        # Every file that exists is complete.
        for path in run.glob("[!.]*.safetensors"):
            load_file(path)
        for path in run.glob("[!.]*.json"):
            json.loads(path.read_text())
        assert finish(start(run, is_resumed=True)) == 0
        assert_same_end(run, expected)
    assert num_killed >= 5  # on a machine that has become faster some end before they are killed


@pytest.mark.skipif(sys.platform == "darwin", reason="the limit is not kept there")
def test_a_full_disk(reference: tuple[Path, float], tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert finish(start(run, limit=30_000)) == 2  # smaller than a checkpoint
    error = (tmp_path / "error").read_text()
    assert "cannot write" in error
    assert "File too large" in error
    assert finish(start(run, is_resumed=True)) == 0
    assert_same_end(run, reference[0])
