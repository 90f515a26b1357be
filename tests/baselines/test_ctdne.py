from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from torch import Tensor

from tclgraph.baselines import ctdne
from tclgraph.baselines.ctdne import CTDNE
from tclgraph.errors import InputError
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream, GraphKind
from tclgraph.events.synthetic import SyntheticConfig, synthesize
from tclgraph.training import loop
from tclgraph.training.progress import ProgressUpdate
from tests.learnable import assert_learns, learnable
from tests.streams import KINDS, as_split

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
    return {name: one.clone() for name, one in model.network.state_dict().items()}


def assert_equal(ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> None:
    assert ours.keys() == theirs.keys()
    for name in ours:
        assert torch.equal(ours[name], theirs[name]), name


@pytest.mark.parametrize("kind", KINDS)
def test_it_learns(kind: GraphKind) -> None:
    assert_learns(CTDNE(epochs=4, width=32, threads=1), learnable(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_made_of_the_tables(kind: GraphKind) -> None:
    stream = EventStream.from_columns(list("abcab"), list("xyxyz"), range(5), kind=kind)
    models = {
        rule: CTDNE(**SMALL, score_by=rule).fit(as_split(stream, 3, 4))
        for rule in ("likelihood", "input-output", "input-input")
    }
    network = models["likelihood"].network
    own, near = network.input_ND.detach().numpy(), network.output_ND.detach().numpy()
    first_target = 0 if kind == "one-mode" else stream.num_sources
    source = np.arange(stream.num_sources)
    product = own[source] @ near[first_target:].T
    log_noise = network.log_noise.numpy()[first_target:]
    expected = {
        "likelihood": product + log_noise,
        "input-output": product,
        "input-input": own[source] @ own[first_target:].T,
    }
    for rule, model in models.items():
        assert_allclose(
            model.score(source, np.full(len(source), 9.0)), expected[rule], rtol=1e-5, atol=1e-6
        )
    assert_array_equal(models["likelihood"].embed("ab"), own[stream.sources.ids("ab")])
    # z came after train: it is like nobody, and less likely than all who came.
    z = stream.targets.id("z")
    assert not own[first_target + z].any()
    assert (log_noise[z] < log_noise[[stream.targets.id("x"), stream.targets.id("y")]]).all()


def test_scores_are_log_odds_where_there_is_room_for_all() -> None:
    """Walks of two nodes: what is near a source is what it met, as often as it met it."""
    count = np.array([[60, 20, 5], [10, 40, 90]])
    pairs = np.repeat(np.arange(6), count.ravel())
    stream = EventStream.from_columns(pairs // 3, pairs % 3, np.arange(len(pairs)))
    model = CTDNE(walk_length=2, window=1, epochs=60, walks_per_node=200, width=8, threads=1)
    num_batches = model.prepare(as_split(stream, len(pairs), len(pairs)))
    for number in range(60 * num_batches):
        random = np.random.default_rng(number)
        model.learn(number % num_batches, random, model.make_optimizer()).apply()
    odds = count / (count.sum(axis=1, keepdims=True) - count)
    score = model.score(np.arange(2), np.zeros(2))
    # The constant is the same for all: the noise was not told in shares, nor how many are drawn.
    error = score - np.log(odds)
    assert np.abs(error - error.mean()).max() < 0.2, error


def test_tables_move_when_a_step_is_applied_and_not_before(split: Split) -> None:
    model = CTDNE(**SMALL)
    model.prepare(split)
    before = weights(model)
    step = model.learn(0, np.random.default_rng(0), model.make_optimizer())
    assert_equal(weights(model), before)
    again = model.learn(0, np.random.default_rng(0), model.make_optimizer())
    assert again.loss == step.loss == model.loss(0, np.random.default_rng(0)).item()
    again.apply()
    assert not torch.equal(weights(model)["input_ND"], before["input_ND"])
    assert not torch.equal(weights(model)["output_ND"], before["output_ND"])
    assert weights(model)["batches_done"] == 1


def test_a_loss_that_is_no_number_stops_training(
    split: Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ctdne, "learn_walks", lambda *_: np.nan)
    with pytest.raises(InputError, match=r"training diverged: .* batch 1 of epoch 1"):
        CTDNE(**SMALL).fit(split)


class Stop(Exception):
    """Raised in the middle of training."""


@pytest.mark.parametrize("num_batches", [1, 4, 6])
def test_resuming_gives_the_same_weights_bit_for_bit(
    split: Split, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, num_batches: int
) -> None:
    monkeypatch.setattr(loop, "_SECONDS_BETWEEN_CHECKPOINTS", 0.0)  # after every batch
    whole = CTDNE(**SMALL).fit(split)
    seen = 0

    def stop(update: ProgressUpdate) -> None:
        nonlocal seen
        seen += not update.is_epoch_end
        if seen > num_batches:
            raise Stop

    with pytest.raises(Stop):
        CTDNE(**SMALL).fit(split, run=tmp_path / "run", progress=stop)
    resumed = CTDNE(**SMALL).fit(split, run=tmp_path / "run", resume=True)
    assert_equal(weights(resumed), weights(whole))


def test_the_rate_falls_evenly_over_the_whole_training(
    split: Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates: list[float] = []

    def noting(*given: Any) -> float:
        rates.append(given[-2])
        return 1.0

    monkeypatch.setattr(ctdne, "learn_walks", noting)
    CTDNE(**SMALL, walks_per_node=8, learning_rate=0.3).fit(split)
    # 35 nodes with 8 walks each: three batches an epoch, the last of 80.
    assert rates == pytest.approx([0.3 * (9 - done) / 9 for done in range(9)])


def test_clipping_shortens_what_a_batch_moves(split: Split) -> None:
    model = CTDNE(**SMALL, max_gradient_norm=0.01)
    model.prepare(split)
    before = weights(model)
    model.learn(0, np.random.default_rng(0), model.make_optimizer()).apply()
    moved = torch.cat([weights(model)[name] - before[name] for name in ("input_ND", "output_ND")])
    assert moved.norm().item() == pytest.approx(0.01, rel=1e-3)


def test_averaged_tables_can_be_kept(split: Split) -> None:
    plain, averaged = (CTDNE(**SMALL, ema_decay=share).fit(split) for share in (None, 0.9))
    assert not torch.equal(plain.network.input_ND, averaged.network.input_ND)
