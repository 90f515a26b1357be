"""The training loop, on a stream small enough to train in a second."""

import json
import math
import os
import signal
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
from tclgraph.models.learned import LearnedModel
from tclgraph.models.ranker.model import Ranker
from tclgraph.models.tcl.model import TCL
from tclgraph.registry import load_model
from tclgraph.training import loop
from tclgraph.training.progress import ProgressUpdate
from tclgraph.training.run_folder import RunFolder

SMALL: dict[str, Any] = {
    "epochs": 3,
    "batch_size": 64,
    "encoder.width": 8,
    "encoder.heads": 2,
    "encoder.levels": 3,
    "threads": 1,
}
SMALL_TCL: dict[str, Any] = {
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


def weights(model: LearnedModel) -> dict[str, Tensor]:
    return dict(model.network.state_dict())


def assert_equal(ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> None:
    assert ours.keys() == theirs.keys()
    for name in ours:
        assert torch.equal(ours[name], theirs[name]), name


class Stop(Exception):
    """Raised during training."""


def stop_after(num_batches: int) -> Any:
    """Return a progress callback that raises `Stop` after a number of batches."""
    seen = 0

    def progress(update: ProgressUpdate) -> None:
        nonlocal seen
        seen += not update.is_epoch_end
        if seen > num_batches:
            raise Stop

    return progress


def test_the_same_seed_gives_the_same_weights_and_another_does_not(split: Split) -> None:
    once, twice, other = (Ranker(**SMALL, seed=seed).fit(split) for seed in (1, 1, 2))
    assert_equal(weights(once), weights(twice))
    assert not torch.equal(
        once.network.heads.explore.shared_weight, other.network.heads.explore.shared_weight
    )


def test_training_lowers_the_loss_and_beats_chance(split: Split, tmp_path: Path) -> None:
    config = {**SMALL_TCL, "epochs": 30, "learning_rate": 1e-2, "input_dropout": 0.1}
    TCL(**config).fit(split, run=tmp_path / "run")
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    heuristic, *epochs = map(json.loads, lines)
    assert heuristic["heuristic"]["model"]
    assert epochs[-1]["loss"] < 0.75 * epochs[0]["loss"]
    assert max(epoch["valid"]["MRR"] for epoch in epochs) > 0.4  # random scores give 0.22


@pytest.mark.parametrize("num_batches", [0, 1, 5, 6, 7, 13, 17])
def test_resuming_gives_the_same_weights_bit_for_bit(
    split: Split, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, num_batches: int
) -> None:
    monkeypatch.setattr(loop, "_SECONDS_BETWEEN_CHECKPOINTS", 0.0)  # after every batch
    uninterrupted = Ranker(**SMALL).fit(split, run=tmp_path / "whole")
    with pytest.raises(Stop):
        Ranker(**SMALL).fit(split, run=tmp_path / "broken", progress=stop_after(num_batches))
    resumed = Ranker(**SMALL).fit(split, run=tmp_path / "broken", resume=True)
    assert_equal(weights(resumed), weights(uninterrupted))
    # Everything but the rates, which are measured.
    for name in ("whole", "broken"):
        lines = (tmp_path / name / "metrics.jsonl").read_text().splitlines()
        entries = [json.loads(line) for line in lines]
        for entry in entries[1:]:
            del entry["events_per_second"], entry["seconds"]
        (tmp_path / f"{name}.json").write_text(json.dumps(entries))
    assert (tmp_path / "whole.json").read_text() == (tmp_path / "broken.json").read_text()


def test_ctrl_c_during_validation_stops_before_the_next_batch(split: Split, tmp_path: Path) -> None:
    updates: list[tuple[int, int]] = []

    def interrupt(update: ProgressUpdate) -> None:
        updates.append((update.epoch, update.batch))
        if update.is_epoch_end:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        Ranker(**SMALL).fit(split, run=tmp_path / "run", progress=interrupt)
    assert updates[-1] == (1, 0)
    resumed = Ranker(**SMALL).fit(split, run=tmp_path / "run", resume=True)
    assert_equal(weights(resumed), weights(Ranker(**SMALL).fit(split)))


def test_the_model_ends_with_its_best_epoch(split: Split, tmp_path: Path) -> None:
    settings = {**SMALL, "epochs": 6, "learning_rate": 0.05}
    model = Ranker(**settings).fit(split, run=tmp_path / "run")
    entries = RunFolder(tmp_path / "run").read_metrics()
    figures = [entry["valid"]["MRR"] for entry in entries]
    best = figures.index(max(figures)) + 1
    shorter = Ranker(**{**settings, "epochs": best}).fit(split)
    assert_equal(weights(shorter), weights(model))
    loaded = load_model(tmp_path / "run")
    assert isinstance(loaded, Ranker)
    assert_equal(weights(loaded), weights(model))


def test_patience_ends_training_early(split: Split, tmp_path: Path) -> None:
    settings = {**SMALL, "epochs": 40, "learning_rate": 0.05, "patience": 2}
    Ranker(**settings).fit(split, run=tmp_path / "run")
    entries = RunFolder(tmp_path / "run").read_metrics()
    figures = [entry["valid"]["MRR"] for entry in entries]
    assert len(figures) < 40
    assert len(figures) == figures.index(max(figures)) + 1 + 2


def test_choosing_by_mean_rank(split: Split, tmp_path: Path) -> None:
    settings = {**SMALL, "epochs": 6, "learning_rate": 0.05}
    by_rank = Ranker(**settings, selection_metric="MR").fit(split, run=tmp_path / "run")
    entries = RunFolder(tmp_path / "run").read_metrics()
    figures = [entry["valid"]["MR"] for entry in entries]
    best = figures.index(min(figures)) + 1
    assert_equal(
        weights(Ranker(**{**settings, "epochs": best}, selection_metric="MR").fit(split)),
        weights(by_rank),
    )


@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e9])
def test_a_loss_that_explodes_stops_and_keeps_the_last_good_checkpoint(
    split: Split, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad: float
) -> None:
    class Exploding(Ranker):
        def loss(self, batch: Any, random: np.random.Generator) -> Tensor:
            self.count = getattr(self, "count", 0) + 1
            loss = super().loss(batch, random)
            return loss * bad if self.count == 9 else loss

    monkeypatch.setattr(loop, "_SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    with pytest.raises(
        InputError, match=r"training diverged: .* batch 3 of epoch 2; lower"
    ) as caught:
        Exploding(**SMALL).fit(split, run=tmp_path / "run")
    assert "the last good checkpoint is in" in str(caught.value)
    resumed = Ranker(**SMALL).fit(split, run=tmp_path / "run", resume=True)
    assert_equal(weights(resumed), weights(Ranker(**SMALL).fit(split)))


def test_clipping_shortens_steps(split: Split) -> None:
    free, clipped = (Ranker(**SMALL, max_gradient_norm=norm).fit(split) for norm in (None, 1e-4))
    assert not torch.equal(
        free.network.heads.explore.shared_weight, clipped.network.heads.explore.shared_weight
    )


def test_a_folder_takes_one_run_and_resumes_only_that(split: Split, tmp_path: Path) -> None:
    run = tmp_path / "run"
    Ranker(**SMALL).fit(split, run=run)
    with pytest.raises(InputError, match="holds a run already"):
        Ranker(**SMALL).fit(split, run=run)
    with pytest.raises(InputError, match=r"learning_rate: then 0\.001, now 0\.1"):
        Ranker(**SMALL, learning_rate=0.1).fit(split, run=run, resume=True)
    other = synthesize(SyntheticConfig(events=600, sources=20, targets=15, seed=9)).split(0.6, 0.2)
    with pytest.raises(InputError, match="other data"):
        Ranker(**SMALL).fit(other, run=run, resume=True)
    before = (run / "model.safetensors").read_bytes()
    Ranker(**SMALL).fit(split, run=run, resume=True)  # finished: nothing is left to do
    assert (run / "model.safetensors").read_bytes() == before


def test_a_damaged_checkpoint_is_refused(split: Split, tmp_path: Path) -> None:
    run = tmp_path / "run"
    Ranker(**SMALL).fit(split, run=run)
    (run / "last.safetensors").write_bytes(b"half of it")
    with pytest.raises(InputError, match="cannot read the checkpoint"):
        Ranker(**SMALL).fit(split, run=run, resume=True)


def test_the_learning_rate_rises_linearly_during_warm_up(
    split: Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates: list[list[float]] = []
    step = torch.optim.Adam.step

    def record(self: torch.optim.Adam, *arguments: Any) -> Any:
        rates.append([group["lr"] for group in self.param_groups])
        return step(self, *arguments)

    monkeypatch.setattr(torch.optim.Adam, "step", record)
    Ranker(**SMALL, warmup_steps=3, learning_rate=0.004, head_learning_rate_factor=2.0).fit(split)
    encoder, heads = zip(*rates, strict=True)
    assert encoder[:5] == pytest.approx([0.001, 0.002, 0.003, 0.004, 0.004])
    assert heads == pytest.approx([2 * rate for rate in encoder])


def test_the_average_is_validated_and_kept(split: Split, tmp_path: Path) -> None:
    settings = {**SMALL, "epochs": 1}
    last = Ranker(**settings, ema_decay=None).fit(split)
    averaged = Ranker(**settings, ema_decay=0.9).fit(split, run=tmp_path / "run")
    assert not torch.equal(
        last.network.heads.explore.shared_weight, averaged.network.heads.explore.shared_weight
    )
    records = [
        json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()
    ]
    report = evaluate(averaged, split, part="valid", with_heuristics=False)
    assert records[1]["valid"]["MRR"] == pytest.approx(report["MRR"])
