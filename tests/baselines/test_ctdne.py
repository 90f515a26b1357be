"""CTDNE: what its scores are made of, its gradient step, its learning rate, and resuming."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from tclgraph.arrays import ScoreArray
from tclgraph.baselines import ctdne
from tclgraph.baselines.ctdne import CTDNE
from tclgraph.baselines.skip_gram import train_walks
from tclgraph.errors import InputError
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream, GraphKind
from tclgraph.events.synthetic import SyntheticConfig, synthesize
from tclgraph.testing.streams import KINDS, cut
from tclgraph.training import loop
from tclgraph.training.progress import ProgressUpdate
from tests.learnable import assert_learns, learnable

SMALL: dict[str, Any] = {
    "epochs": 3,
    "batch_size": 100,
    "width": 8,
    "walk_length": 12,
    "window": 3,
    "threads": 1,
}


@pytest.fixture(scope="module")
def split() -> Split:
    return synthesize(SyntheticConfig(events=600, sources=20, targets=15)).split(0.6, 0.2)


def weights(model: CTDNE) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in model.network.state_dict().items()}


def assert_equal(actual: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert actual.keys() == expected.keys()
    for name in actual:
        assert torch.equal(actual[name], expected[name]), name


def make_step(model: CTDNE, batch: int, random: np.random.Generator) -> float:
    """Make one gradient step as the training loop does; return the norm of the gradient."""
    optimizer = model.make_optimizer()
    loss = model.loss(batch, random)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    norm = clip_grad_norm_(model.network.parameters(), model.config.max_gradient_norm or np.inf)
    optimizer.step()
    return norm.item()


@pytest.mark.parametrize("kind", KINDS)
def test_it_learns(kind: GraphKind) -> None:
    assert_learns(CTDNE(epochs=4, width=32, threads=1), learnable(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_scores_combine_the_tables_and_the_noise(kind: GraphKind) -> None:
    stream = EventStream.from_columns(list("abcab"), list("xyxyz"), range(5), kind=kind)
    models = {
        rule: CTDNE(**SMALL, score_by=rule).fit(cut(stream, 3, 4))
        for rule in ("likelihood", "input-output", "input-input")
    }
    network = models["likelihood"].network
    inputs, outputs = network.input_ND.detach().numpy(), network.output_ND.detach().numpy()
    first_target = 0 if kind == "one-mode" else stream.num_sources
    source = np.arange(stream.num_sources)
    product = inputs[source] @ outputs[first_target:].T
    log_noise = network.log_noise.numpy()[first_target:]
    expected = {
        "likelihood": product + log_noise,
        "input-output": product,
        "input-input": inputs[source] @ inputs[first_target:].T,
    }
    if kind == "one-mode":  # no node is its own target
        own = expected["input-input"]
        own[source, source] = (
            own[:, : models["input-input"].measured["num_targets"]].min(axis=1) - 1
        )
    for rule, model in models.items():
        assert_allclose(
            model.score(source, np.full(len(source), 9.0)), expected[rule], rtol=1e-5, atol=1e-6
        )
    assert_array_equal(models["likelihood"].embed("ab"), inputs[stream.sources.ids("ab")])
    # z occurs only after the training events: its vector is zero, and it is less likely than the
    # targets that occur in them.
    z = stream.targets.id("z")
    assert not inputs[first_target + z].any()
    assert (log_noise[z] < log_noise[[stream.targets.id("x"), stream.targets.id("y")]]).all()


def test_scores_are_log_odds_if_the_width_suffices() -> None:
    """In walks of two nodes, a source's contexts are its targets, as often as they interact."""
    count = np.array([[60, 20, 5], [10, 40, 90]])
    pairs = np.repeat(np.arange(6), count.ravel())
    stream = EventStream.from_columns(pairs // 3, pairs % 3, np.arange(len(pairs)))
    model = CTDNE(walk_length=2, window=1, epochs=60, walks_per_node=200, width=8, threads=1)
    num_batches = model.prepare(cut(stream, len(pairs), len(pairs)))
    for number in range(60 * num_batches):
        make_step(model, number % num_batches, np.random.default_rng(number))
    odds = count / (count.sum(axis=1, keepdims=True) - count)
    score = model.score(np.arange(2), np.zeros(2))
    # Scores miss a constant, equal for all pairs: the log of the noise is not normalized, and the
    # number of negatives is left out.
    error = score - np.log(odds)
    assert np.abs(error - error.mean()).max() < 0.2, error


def test_a_step_moves_the_tables_to_the_end_of_the_descent(
    split: Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends: list[ScoreArray] = []

    def noting(*arguments: Any) -> float:
        loss = float(train_walks(*arguments))
        ends.extend(arguments[4:6])
        return loss

    monkeypatch.setattr(ctdne, "train_walks", noting)
    model = CTDNE(**SMALL)
    model.prepare(split)
    before = weights(model)
    norm = make_step(model, 0, np.random.default_rng(0))
    after = weights(model)
    moves = []
    for name, end in zip(("input_ND", "output_ND"), ends, strict=True):
        assert_allclose(after[name], end, rtol=1e-6, atol=1e-7)
        assert not torch.equal(after[name], before[name])
        moves.append(before[name].numpy() - end)
    assert norm == pytest.approx(np.linalg.norm(moves), rel=1e-5)


def test_a_loss_changes_only_the_number_of_batches_done(split: Split) -> None:
    model = CTDNE(**SMALL)
    model.prepare(split)
    before = weights(model)
    loss = model.loss(0, np.random.default_rng(0))
    assert loss.dtype == torch.float64
    assert_equal(weights(model), {**before, "batches_done": before["batches_done"] + 1})
    model.network.load_state_dict(before)
    assert model.loss(0, np.random.default_rng(0)).item() == loss.item()


def test_a_loss_of_nan_stops_training(split: Split, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctdne, "train_walks", lambda *_: np.nan)
    with pytest.raises(InputError, match=r"training diverged: .* batch 1 of epoch 1"):
        CTDNE(**SMALL).fit(split)


class Stop(Exception):
    """Raised in the middle of training."""


@pytest.mark.parametrize("num_batches", [1, 4, 6])
def test_resuming_gives_the_same_weights_bit_for_bit(
    split: Split, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, num_batches: int
) -> None:
    monkeypatch.setattr(loop, "_SECONDS_BETWEEN_CHECKPOINTS", 0.0)  # after every batch
    complete = CTDNE(**SMALL).fit(split)
    num_seen = 0

    def stop(update: ProgressUpdate) -> None:
        nonlocal num_seen
        num_seen += not update.is_epoch_end
        if num_seen > num_batches:
            raise Stop

    with pytest.raises(Stop):
        CTDNE(**SMALL).fit(split, run=tmp_path / "run", progress=stop)
    resumed = CTDNE(**SMALL).fit(split, run=tmp_path / "run", resume=True)
    assert_equal(weights(resumed), weights(complete))


def test_the_learning_rate_falls_linearly_over_all_epochs(
    split: Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates: list[float] = []

    def noting(*arguments: Any) -> float:
        rates.append(arguments[-2])
        return 1.0

    monkeypatch.setattr(ctdne, "train_walks", noting)
    CTDNE(**SMALL, walks_per_node=8, learning_rate=0.3).fit(split)
    # 35 nodes with 8 walks each: three batches per epoch, the last of 80 walks.
    assert rates == pytest.approx([0.3 * (9 - done) / 9 for done in range(9)])


def test_clipping_limits_the_step_of_a_batch(split: Split) -> None:
    model = CTDNE(**SMALL, max_gradient_norm=0.01)
    model.prepare(split)
    before = weights(model)
    make_step(model, 0, np.random.default_rng(0))
    moved = torch.cat([weights(model)[name] - before[name] for name in ("input_ND", "output_ND")])
    assert moved.norm().item() == pytest.approx(0.01, rel=1e-3)


def test_ema_of_the_tables_differs_from_the_tables(split: Split) -> None:
    plain, averaged = (CTDNE(**SMALL, ema_decay=decay).fit(split) for decay in (None, 0.9))
    assert not torch.equal(plain.network.input_ND, averaged.network.input_ND)
