"""TPNet against a loop over single events and pairs, in double precision."""

import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from numpy.testing import assert_allclose, assert_array_equal
from torch import Tensor

from tclgraph.baselines.tpnet import TPNet
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream, GraphKind
from tclgraph.models.stream_state import StreamState
from tclgraph.sampling.negatives import uniform_negatives
from tclgraph.testing.streams import KINDS, cut, splits
from tclgraph.training.progress import ProgressUpdate
from tests.learnable import assert_learns, learnable

EXACT: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-12}


class OneByOne:
    """The method as the paper describes it, for one event or pair at a time; nodes are numbers."""

    def __init__(self, model: TPNet) -> None:
        self.network, self.decay = model.network, model.measured["decay"]
        self.num_matrices = model.config.walk_steps + 1
        identity, self.time = self.network.identity, model.measured["start"]
        none = torch.zeros_like(identity)
        self.row = torch.stack([identity, *[none] * model.config.walk_steps], dim=1)

    def at(self, time: float) -> Tensor:
        steps = torch.arange(self.num_matrices, dtype=torch.float64)
        return self.row * torch.exp(-self.decay * (time - self.time) * steps)[:, None]

    def observe(self, source: int, target: int, time: float) -> None:
        old, self.row, self.time = self.at(time), self.at(time), time
        self.row[source, 1:] += old[target, :-1]
        if target != source:
            self.row[target, 1:] += old[source, :-1]

    def score(self, source: int, target: int, time: float) -> Tensor:
        row, num = self.at(time), self.num_matrices
        pair = torch.cat([row[source], row[target]])
        product = (pair @ pair.T).clamp_min(0).log1p()
        own, cross = self.network.products.own_pairs, self.network.products.cross_pairs
        entries = [
            *own,
            *[(num + k, num + j) for k, j in own],
            *[(k, num + j) for k, j in cross],
        ]
        feature = torch.stack([product[entry] for entry in entries])
        merge, output = self.network.merge, self.network.output
        first = torch.cat([merge.first_half.weight, merge.second_half.weight], dim=1)
        hidden = torch.relu(first @ feature + merge.first_half.bias)
        hidden = torch.relu(merge.output.weight @ hidden + merge.output.bias)
        return (output.weight @ hidden + output.bias)[0]


def prepared(split: Split, **settings: Any) -> TPNet:
    model = TPNet(width=3, batch_size=7, negatives=2, decay_per_span=9.0, **settings)
    model.prepare(split.train_only())
    model.network.double()
    return model


@settings(max_examples=15)
@given(splits())
def test_losses_equal_those_of_single_events(split: Split) -> None:
    train, model = split.train_only().events, prepared(split)
    candidates = np.unique(model._pairs[:, 1])
    for epoch in range(2):
        for batch, first in enumerate(range(0, len(train), 7)):
            loss = model.loss(batch, np.random.default_rng([epoch, batch]))
            random = np.random.default_rng([epoch, batch])
            if batch == 0:  # every epoch begins with a new random matrix and no walks
                reference = OneByOne(model)
                random.standard_normal(tuple(model.network.identity.shape), dtype=np.float32)
            pairs = model._pairs[first : first + 7]
            negatives = uniform_negatives(pairs[:, 1], candidates, 2, random)
            losses = []
            for row, time in enumerate(train.time[first : first + 7].tolist()):
                source, target = pairs[row].tolist()
                nodes = [target, *negatives[row].tolist()]
                scores = torch.stack([reference.score(source, node, time) for node in nodes])
                losses.append(-scores.log_softmax(0)[0])
                reference.observe(source, target, time)
            assert_allclose(loss.item(), torch.stack(losses).mean().item(), **EXACT)


@settings(max_examples=15)
@given(splits())
def test_scores_equal_those_of_single_pairs(split: Split) -> None:
    model = prepared(split, walk_steps=2)
    model.extend(StreamState.for_stream(split.events))
    with torch.no_grad():
        reference, events = OneByOne(model), split.events
        nodes, targets = model.graph.space.nodes(events), model.graph.space.target_nodes
        scores = model.score_each(events)
        for row, time in enumerate(events.time.tolist()):
            source, target = nodes[2 * row : 2 * row + 2].tolist()
            expected = [reference.score(source, node, time).item() for node in targets.tolist()]
            assert_allclose(scores[row], expected, **EXACT)
            reference.observe(source, target, time)
        later = float(events.time[-1]) + 2.0
        rows = reference.at(later).flatten(1)
        assert_allclose(model.vectors(np.arange(len(rows)), later), rows, **EXACT)


def test_every_epoch_draws_a_random_matrix_of_the_right_scale() -> None:
    split = learnable()
    model = TPNet(projection_width=50)
    model.prepare(split.train_only())
    drawn = []
    for epoch in range(2):
        model.network.restart(np.random.default_rng(epoch), 0.0)
        drawn.append(model.network.identity.clone())
    for matrix in drawn:
        assert matrix.mean().abs() < 0.01
        assert_allclose(matrix.square().sum(1).mean(), 1.0, rtol=0.05)
    assert (drawn[0] != drawn[1]).all()


def test_the_width_of_a_row_depends_on_the_training_events_as_published() -> None:
    split = learnable()  # 2,100 training events of 100 nodes
    model = TPNet()
    model.prepare(split.train_only())
    assert model.network.identity.shape == (100, 10 * 8)
    few = cut(split.events[:30], 20, 25)
    model.prepare(few.train_only())
    assert len(set(model.network.identity.shape)) == 1  # no more columns than nodes


def test_nothing_decays_if_all_training_events_are_simultaneous() -> None:
    stream = EventStream.from_columns(list("abab"), list("xyyx"), [5.0, 5.0, 5.0, 8.0])
    model = TPNet(width=3, epochs=1).fit(cut(stream, 2, 3))
    before = model.vectors(np.arange(4), 5.0)
    assert_array_equal(model.vectors(np.arange(4), 1e9), before)


def test_numbers_of_walks_may_be_huge() -> None:
    """Products of two numbers that single precision can hold, beyond those that it can hold."""
    stream = EventStream.from_columns(list("abab"), list("xyyx"), range(4))
    model = TPNet(width=3, epochs=1).fit(cut(stream, 2, 3))
    model._state.walks_VLD.fill_(1e30)
    assert np.isfinite(model.score(stream.source, stream.time)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_many_queries_and_targets_are_scored_in_several_calls(
    kind: GraphKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    split = learnable(kind)
    model = TPNet(width=4)
    model.prepare(split.train_only())
    model.extend(StreamState.for_stream(split.events))
    model.observe(split.train)
    at_once = model.score(split.test.source[:50], split.test.time[:50])
    monkeypatch.setattr("tclgraph.baselines.tpnet._CELLS_PER_CALL", 130)
    few = model.score(split.test.source[:50], split.test.time[:50])
    assert_allclose(few, at_once, rtol=1e-5, atol=1e-6)


def test_resuming_gives_the_same_weights_bit_for_bit(tmp_path: Path) -> None:
    split = learnable()
    settings = {"width": 4, "epochs": 2, "batch_size": 512, "negatives": 2, "threads": 1}

    def stop(update: ProgressUpdate) -> None:
        if (update.epoch, update.batch) == (1, 3):
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        TPNet(**settings).fit(split, run=tmp_path, progress=stop)
    resumed = TPNet(**settings).fit(split, run=tmp_path, resume=True)
    complete = TPNet(**settings).fit(split)
    for name, weight in complete.network.state_dict().items():
        assert torch.equal(weight, resumed.network.state_dict()[name]), name


@pytest.mark.parametrize("kind", KINDS)
def test_it_learns(kind: GraphKind) -> None:
    model = TPNet(epochs=5, width=16, batch_size=64, negatives=8, threads=1, max_valid_events=128)
    assert_learns(model, learnable(kind))
