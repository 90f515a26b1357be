"""The loop itself, on a stream small enough to train in a second."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tclgraph.errors import InputError
from tclgraph.evaluation.protocol import evaluate
from tclgraph.events.split import Split
from tclgraph.events.synthetic import SyntheticConfig, synthesize
from tclgraph.models.tcl.model import TCL
from tclgraph.registry import load_model
from tclgraph.training import loop
from tclgraph.training.progress import ProgressUpdate
from tclgraph.training.run_folder import RunFolder

SMALL: dict[str, Any] = {
    "epochs": 3,
    "batch_size": 64,
    "width": 8,
    "heads": 2,
    "levels": 3,
    "threads": 1,
}


@pytest.fixture(scope="module")
def split() -> Split:
    return synthesize(SyntheticConfig(events=600, sources=20, targets=15)).split(0.6, 0.2)


def weights(model: TCL) -> dict[str, Tensor]:
    return dict(model.network.state_dict())


def assert_equal(ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> None:
    assert ours.keys() == theirs.keys()
    for name in ours:
        assert torch.equal(ours[name], theirs[name]), name


class Stop(Exception):
    """Raised in the middle of training."""


def stop_after(num_batches: int) -> Any:
    """A progress that lets so many batches happen."""
    seen = 0

    def progress(update: ProgressUpdate) -> None:
        nonlocal seen
        seen += not update.is_epoch_end
        if seen > num_batches:
            raise Stop

    return progress


def test_the_same_seed_gives_the_same_weights_and_another_does_not(split: Split) -> None:
    once, twice, other = (TCL(**SMALL, seed=seed).fit(split) for seed in (1, 1, 2))
    assert_equal(weights(once), weights(twice))
    assert not torch.equal(once.network.node.weight, other.network.node.weight)


def test_training_lowers_the_loss_and_beats_chance(split: Split, tmp_path: Path) -> None:
    config = {**SMALL, "epochs": 30, "learning_rate": 1e-2, "input_dropout": 0.1}
    TCL("paper", **config).fit(split, run=tmp_path / "run")
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    heuristic, *epochs = map(json.loads, lines)
    assert heuristic["heuristic"]["model"]
    assert epochs[-1]["loss"] < 0.75 * epochs[0]["loss"]
    assert max(epoch["valid"]["MRR"] for epoch in epochs) > 0.4  # a blind guess has 0.22


@pytest.mark.parametrize("num_batches", [0, 1, 5, 6, 7, 13, 17])
def test_resuming_gives_the_same_weights_bit_for_bit(
    split: Split, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, num_batches: int
) -> None:
    monkeypatch.setattr(loop, "_SECONDS_BETWEEN_CHECKPOINTS", 0.0)  # after every batch
    whole = TCL(**SMALL).fit(split, run=tmp_path / "whole")
    with pytest.raises(Stop):
        TCL(**SMALL).fit(split, run=tmp_path / "broken", progress=stop_after(num_batches))
    resumed = TCL(**SMALL).fit(split, run=tmp_path / "broken", resume=True)
    assert_equal(weights(resumed), weights(whole))
    # Everything but the rates, which are measured.
    for name in ("whole", "broken"):
        lines = (tmp_path / name / "metrics.jsonl").read_text().splitlines()
        entries = [json.loads(line) for line in lines]
        for entry in entries[1:]:
            del entry["events_per_second"], entry["seconds"]
        (tmp_path / f"{name}.json").write_text(json.dumps(entries))
    assert (tmp_path / "whole.json").read_text() == (tmp_path / "broken.json").read_text()


def test_the_best_epoch_is_kept(split: Split, tmp_path: Path) -> None:
    settings = {**SMALL, "epochs": 6, "learning_rate": 0.05}
    model = TCL(**settings).fit(split, run=tmp_path / "run")
    entries = RunFolder(tmp_path / "run").read_metrics()
    figures = [entry["valid"]["MRR"] for entry in entries]
    best = figures.index(max(figures)) + 1
    shorter = TCL(**{**settings, "epochs": best}).fit(split)
    assert_equal(weights(shorter), weights(model))
    loaded = load_model(tmp_path / "run")
    assert isinstance(loaded, TCL)
    assert_equal(weights(loaded), weights(model))


def test_patience_ends_training_early(split: Split, tmp_path: Path) -> None:
    settings = {**SMALL, "epochs": 40, "learning_rate": 0.05, "patience": 2}
    TCL(**settings).fit(split, run=tmp_path / "run")
    entries = RunFolder(tmp_path / "run").read_metrics()
    figures = [entry["valid"]["MRR"] for entry in entries]
    assert len(figures) < 40
    assert len(figures) == figures.index(max(figures)) + 1 + 2


def test_choosing_by_mean_rank(split: Split, tmp_path: Path) -> None:
    settings = {**SMALL, "epochs": 6, "learning_rate": 0.05}
    by_rank = TCL(**settings, choose_by="MR").fit(split, run=tmp_path / "run")
    entries = RunFolder(tmp_path / "run").read_metrics()
    figures = [entry["valid"]["MR"] for entry in entries]
    best = figures.index(min(figures)) + 1
    assert_equal(
        weights(TCL(**{**settings, "epochs": best}, choose_by="MR").fit(split)), weights(by_rank)
    )


@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e9])
def test_a_loss_that_explodes_stops_and_keeps_the_last_good_checkpoint(
    split: Split, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad: float
) -> None:
    class Exploding(TCL):
        def loss(self, batch: int, random: np.random.Generator) -> Tensor:
            self.count = getattr(self, "count", 0) + 1
            loss = super().loss(batch, random)
            return loss * bad if self.count == 9 else loss

    monkeypatch.setattr(loop, "_SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    with pytest.raises(
        InputError, match=r"training diverged: .* batch 3 of epoch 2; lower"
    ) as told:
        Exploding(**SMALL).fit(split, run=tmp_path / "run")
    assert "the last good checkpoint is in" in str(told.value)
    resumed = TCL(**SMALL).fit(split, run=tmp_path / "run", resume=True)
    assert_equal(weights(resumed), weights(TCL(**SMALL).fit(split)))


def test_clipping_shortens_steps(split: Split) -> None:
    free, clipped = (TCL(**SMALL, max_gradient_norm=norm).fit(split) for norm in (None, 1e-4))
    assert not torch.equal(free.network.node.weight, clipped.network.node.weight)


def test_a_folder_takes_one_run_and_resumes_only_that(split: Split, tmp_path: Path) -> None:
    run = tmp_path / "run"
    TCL(**SMALL).fit(split, run=run)
    with pytest.raises(InputError, match="holds a run already"):
        TCL(**SMALL).fit(split, run=run)
    with pytest.raises(InputError, match=r"learning_rate: then 0\.001, now 0\.1"):
        TCL(**SMALL, learning_rate=0.1).fit(split, run=run, resume=True)
    other = synthesize(SyntheticConfig(events=600, sources=20, targets=15, seed=9)).split(0.6, 0.2)
    with pytest.raises(InputError, match="other data"):
        TCL(**SMALL).fit(other, run=run, resume=True)
    before = (run / "model.safetensors").read_bytes()
    TCL(**SMALL).fit(split, run=run, resume=True)  # finished: nothing is left to do
    assert (run / "model.safetensors").read_bytes() == before


def test_a_damaged_checkpoint_is_told(split: Split, tmp_path: Path) -> None:
    run = tmp_path / "run"
    TCL(**SMALL).fit(split, run=run)
    (run / "last.safetensors").write_bytes(b"half of it")
    with pytest.raises(InputError, match="cannot read the checkpoint"):
        TCL(**SMALL).fit(split, run=run, resume=True)


def test_the_rate_rises_evenly_while_warming_up(
    split: Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates: list[list[float]] = []
    step = torch.optim.Adam.step

    def noting(self: torch.optim.Adam, *words: Any) -> Any:
        rates.append([group["lr"] for group in self.param_groups])
        return step(self, *words)

    monkeypatch.setattr(torch.optim.Adam, "step", noting)
    TCL(**SMALL, warm_up=3, learning_rate=0.004, term_rate=2.0).fit(split)
    encoder, terms = zip(*rates, strict=True)
    assert encoder[:5] == pytest.approx([0.001, 0.002, 0.003, 0.004, 0.004])
    assert terms == pytest.approx([2 * rate for rate in encoder])


def test_averaged_weights_are_what_is_validated_and_kept(split: Split, tmp_path: Path) -> None:
    settings = {**SMALL, "epochs": 1}
    last = TCL(**settings, ema_decay=None).fit(split)
    kept = TCL(**settings, ema_decay=0.9).fit(split, run=tmp_path / "run")
    assert not torch.equal(last.network.node.weight, kept.network.node.weight)
    found = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    report = evaluate(kept, split, part="valid", with_heuristics=False)
    assert found[1]["valid"]["MRR"] == pytest.approx(report["MRR"])
