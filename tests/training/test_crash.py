"""A run that is killed, or whose disk fills up, resumes and ends with the same weights."""

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

# Checkpoints after every batch, so that a kill often meets one that is being written.
TRAIN = """
import resource, sys
import torch
from tclgraph.events.synthetic import SyntheticConfig, synthesize
from tclgraph.models.ranker.model import Ranker
from tclgraph.training import loop
loop._SECONDS_BETWEEN_CHECKPOINTS = 0.0
run, resume, limit = sys.argv[1], sys.argv[2] == "resume", int(sys.argv[3])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
split = synthesize(SyntheticConfig(events=2_000, sources=50, targets=40)).split(0.6, 0.2)
encoder = {"encoder.width": 16, "encoder.heads": 4, "encoder.levels": 4}
model = Ranker(epochs=6, batch_size=32, threads=1, **encoder)
print("begun", flush=True)
model.fit(split, run=run, resume=resume)
"""


def start(run: Path, how: str = "begin", limit: int = 0) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-c", TRAIN, run, how, str(limit)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n", process.communicate()[1]
    return process


def finish(process: "subprocess.Popen[str]") -> str:
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return err


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    """Run without interruption; return its folder and its duration in seconds."""
    run = tmp_path_factory.mktemp("reference") / "run"
    finish(start(run))
    started = time.monotonic()
    again = tmp_path_factory.mktemp("again") / "run"
    finish(start(again))  # timed without compilation
    return run, time.monotonic() - started


def assert_same_end(run: Path, expected: Path) -> None:
    for name in ("last.safetensors", "model.safetensors"):
        ours, theirs = load_file(run / name), load_file(expected / name)
        assert ours.keys() == theirs.keys()
        for key in ours:
            assert torch.equal(ours[key], theirs[key]), f"{name}: {key}"
    assert not list(run.glob(".*"))  # no partly written file is left
    assert len((run / "metrics.jsonl").read_text().splitlines()) == 7


def test_kill_9_at_ten_random_moments(reference: tuple[Path, float], tmp_path: Path) -> None:
    expected, seconds = reference
    moments = random.Random(17)
    for number in range(10):
        run = tmp_path / f"run{number}"
        process = start(run)
        time.sleep(moments.uniform(0.0, seconds))
        process.kill()
        process.communicate()
        # Every file that exists is complete.
        for path in run.glob("[!.]*.safetensors"):
            load_file(path)
        for path in run.glob("[!.]*.json"):
            json.loads(path.read_text())
        finish(start(run, "resume"))
        assert_same_end(run, expected)


@pytest.mark.skipif(sys.platform == "darwin", reason="the limit is not kept there")
def test_a_full_disk(reference: tuple[Path, float], tmp_path: Path) -> None:
    run = tmp_path / "run"
    process = start(run, limit=30_000)  # smaller than a checkpoint
    _, err = process.communicate(timeout=120)
    assert process.returncode != 0
    assert "cannot write" in err
    assert "File too large" in err
    finish(start(run, "resume"))
    assert_same_end(run, reference[0])
