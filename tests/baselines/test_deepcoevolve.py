"""DeepCoevolve against a loop over single events and pairs, in double precision."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from torch import Tensor, nn

from tclgraph.arrays import IntArray
from tclgraph.baselines.coupled_states import EventRange
from tclgraph.baselines.deepcoevolve import DeepCoevolve, DeepCoevolveNetwork
from tclgraph.dependency_graph.graph import DependencyGraph
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream, GraphKind
from tclgraph.testing.streams import KINDS, cut, splits
from tests.learnable import assert_learns, learnable
from tests.reference.intervals import in_units


class OneByOne:
    """The method as the paper describes it: torch's cells, one event and one pair at a time.

    In a one-mode graph both roles of a node share a list, so that each sees the other's updates.
    """

    def __init__(self, model: DeepCoevolve, start: float) -> None:
        self.network, self.measured = model.network, model.measured
        self.is_one_mode = model.graph.space.kind == "one-mode"
        self.begin(start)

    def begin(self, start: float) -> None:
        self.source, self.target = (
            [vector / vector.norm() if vector.norm() > 1 else vector for vector in table]
            for table in tables(self.network)
        )
        self.source_time = [start] * len(self.source)
        self.target_time = [start] * len(self.target)
        if self.is_one_mode:
            self.target, self.target_time = self.source, self.source_time

    def cell(self, role: int) -> nn.GRUCell:
        network, width = self.network, self.network.input_weight.shape[1]
        cell = nn.GRUCell(width, width, dtype=torch.float64)
        weights = {
            "weight_ih": network.input_weight[role].T,
            "weight_hh": network.hidden_weight[role].T,
            "bias_ih": network.input_bias[role, 0],
            "bias_hh": network.hidden_bias[role, 0],
        }
        for name, weight in weights.items():
            delattr(cell, name)
            setattr(cell, name, weight)
        return cell

    def observe(self, source: int, target: int, time: float) -> None:
        old_source, old_target = self.source[source], self.target[target]
        self.target[target] = self.cell(1)(old_source, old_target)
        self.source[source] = self.cell(0)(old_target, old_source)  # counts in a self-loop
        self.source_time[source] = self.target_time[target] = time

    def rate(self, source: int, target: int) -> Tensor:
        match = torch.dot(self.source[source], self.target[target]) * 3**0.5
        free, highest = (match + self.measured["log_base_rate"]).exp(), 2 / 0.25**2
        rate: Tensor = 1 / (1 / free + 1 / highest)
        return rate

    def interval(self, source: int, target: int, time: float) -> float:
        interval = time - max(self.source_time[source], self.target_time[target])
        return float(np.clip(in_units(interval, self.measured["unit"]), 0.25, 2.0))

    def is_impossible(self, source: int, target: int) -> bool:
        """Return whether this is a node with itself and no node has interacted with itself."""
        return source == target and not self.measured["can_be_own_target"]

    def survival(self, source: int, target: int, time: float) -> Tensor:
        if self.is_impossible(source, target):
            return torch.zeros((), dtype=torch.float64)
        return self.rate(source, target) * self.interval(source, target, time) ** 2 / 2


def tables(network: DeepCoevolveNetwork) -> list[Tensor]:
    """Return the learned vectors of sources and of targets, which may be the same."""
    named = dict(network.named_parameters())
    return [named[role if role in named else "node"] for role in ("source", "target")]


def rows(events: EventStream) -> Iterator[tuple[int, tuple[int, int, float]]]:
    columns = (events.source.tolist(), events.target.tolist(), events.time.tolist())
    return enumerate(zip(*columns, strict=True))


def prepared(split: Split, rank_by: str = "density", memory: int | None = None) -> DeepCoevolve:
    model = DeepCoevolve(
        width=3,
        batch_size=7,
        survival_pairs=3,
        rank_by=rank_by,
        shortest_interval=0.25,
        longest_interval=2.0,
        memory=memory,
    )
    model.prepare(split)
    model.network.double()
    with torch.no_grad():
        # Some initial vectors are now longer than the limit, some are shorter.
        tables(model.network)[0].mul_(8)
    model.reset_state()
    return model


@settings(max_examples=20)
@given(splits(), st.data())
def test_loss_and_gradients_of_a_window_equal_single_events(
    split: Split, data: st.DataObject
) -> None:
    model = prepared(split)
    train = split.train
    first = data.draw(st.integers(0, len(train) - 1))
    window = train[first : first + 7]
    graph = DependencyGraph(model.graph.space)
    graph.append(train)
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    sources = random.integers(train.num_sources, size=(len(window), 3))
    targets = random.integers(train.num_targets, size=(len(window), 3))
    sources[:, 0], targets[:, 0] = window.source, window.target
    events = EventRange.all_events(graph).subrange(first, first + 7)
    loss = model.window_loss(events, sources, targets + model.graph.space.first_target)

    # The window does not depend on events before it.
    reference = OneByOne(model, float(window.time[0]))
    expected = torch.zeros((), dtype=torch.float64)
    num_sources, num_targets = len(np.unique(train.source)), len(np.unique(train.target))
    for row, (source, target, time) in rows(window):
        expected = expected - reference.rate(source, target).log()
        expected = expected + reference.survival(source, target, time)
        # The two drawn candidates stand for all other candidates.
        for other in targets[row, 1:].tolist():
            weight = (num_targets - 1) / 2
            expected = expected + weight * reference.survival(source, other, time)
        for other in sources[row, 1:].tolist():
            weight = (num_sources - 1) / 2
            expected = expected + weight * reference.survival(other, target, time)
        reference.observe(source, target, time)
    expected = expected / len(window)
    assert_allclose(loss.item(), expected.item(), rtol=1e-9)
    parameters = dict(model.network.named_parameters())
    gradients = (
        torch.autograd.grad(
            value, tuple(parameters.values()), materialize_grads=True, allow_unused=True
        )
        for value in (loss, expected)
    )
    for name, gradient, expected_gradient in zip(parameters, *gradients, strict=True):
        assert_allclose(gradient, expected_gradient, err_msg=name, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("memory", [None, 3])
@pytest.mark.parametrize("rank_by", ["density", "intensity", "rate"])
def test_scores_follow_rank_by_and_memory(rank_by: str, memory: int | None) -> None:
    @settings(max_examples=10)
    @given(splits())
    def check(split: Split) -> None:
        model, events = prepared(split, rank_by, memory), split.events
        with torch.no_grad():
            reference = OneByOne(model, float(split.train.time[0]))
            scores = model.score_each(events)
            for row, (source, target, time) in rows(events):
                if memory and row and row % memory == 0:
                    reference.begin(float(events.time[row - memory]))
                    for _, event in rows(events[row - memory : row]):
                        reference.observe(*event)
                for candidate in range(events.num_targets):
                    if reference.is_impossible(source, candidate):
                        assert scores[row, candidate] <= scores[row].min()
                        continue
                    if rank_by == "rate":
                        expected = torch.dot(reference.source[source], reference.target[candidate])
                    else:
                        expected = reference.rate(source, candidate).log()
                        expected += np.log(reference.interval(source, candidate, time))
                    if rank_by == "density":
                        expected -= reference.survival(source, candidate, time)
                    assert scores[row, candidate] == pytest.approx(
                        expected.item(), rel=1e-8, abs=1e-8
                    )
                reference.observe(source, target, time)

    check()


def test_the_true_pair_comes_first_and_the_others_differ_from_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    windows: list[tuple[EventRange, IntArray, IntArray]] = []

    def note(self: DeepCoevolve, events: EventRange, source: IntArray, target: IntArray) -> Tensor:
        windows.append((events, source, target))
        return torch.zeros(())

    monkeypatch.setattr(DeepCoevolve, "window_loss", note)
    model = DeepCoevolve(width=3, batch_size=50)
    split = learnable()
    num_batches = model.prepare(split)
    for batch in range(num_batches):
        model.loss(batch, np.random.default_rng(batch))
    assert num_batches == split.train_end // 50
    assert len({events.first for events, _, _ in windows}) > num_batches / 2
    for events, source, target in windows:
        assert events.stop - events.first == 50
        for true, columns in ((events.source, source), (events.target, target)):
            assert columns.shape == (50, 5)
            assert (columns[:, 0] == true).all()
            assert (columns[:, 1:] != true[:, None]).all()


@pytest.mark.parametrize("rank_by", ["density", "intensity", "rate"])
def test_scores_are_finite_for_very_short_and_long_intervals(rank_by: str) -> None:
    stream = EventStream.from_columns(list("abcab"), list("xyzyx"), [0.0, 0, 0, 1e-9, 1e12])
    width = 256
    model = DeepCoevolve(width=width, epochs=1, rank_by=rank_by).fit(cut(stream, 3, 4))
    with torch.no_grad():
        # Every event now gives vectors of ones, which have the largest possible product.
        model.network.input_bias[:, :, width : 2 * width] = -99.0
        model.network.input_bias[:, :, 2 * width :] = 99.0
    model.forget()
    scores = model.score_each(stream)
    assert np.isfinite(scores).all()
    assert np.isfinite(model.score(np.arange(3), np.full(3, 1e300))).all()


@pytest.mark.parametrize("kind", KINDS)
def test_it_learns(kind: GraphKind) -> None:
    model = DeepCoevolve(epochs=12, batch_size=64, width=16, learning_rate=1e-2, threads=1)
    assert_learns(model, learnable(kind))


def test_a_person_of_a_one_mode_graph_has_one_vector_and_is_not_their_own_target() -> None:
    stream = EventStream.from_columns(list("abca"), list("bcab"), [0.0, 1, 2, 3], kind="one-mode")
    model = DeepCoevolve(width=3, epochs=1).fit(cut(stream, 3, 4))
    assert model.embed().shape == (3, 3)
    assert_allclose(model.embed(side="source"), model.embed(side="target"), rtol=0)
    # The product of vectors is the same in both directions, and the highest with the node itself.
    scores = model.score(np.arange(3), np.full(3, 3.0))
    assert_allclose(scores - np.diag(np.diag(scores)), (scores - np.diag(np.diag(scores))).T)
    assert (scores.argmin(axis=1) == np.arange(3)).all()
    with_loop = EventStream.from_columns(list("abc"), list("bba"), [0.0, 1, 2], kind="one-mode")
    model = DeepCoevolve(width=3, epochs=1).fit(cut(with_loop, 2, 3))
    vector = model.embed()
    assert_allclose(model.score(np.arange(3), np.full(3, 3.0)), vector @ vector.T, rtol=1e-5)
