"""Walk matrices against a search of all walks, and against updates one event at a time."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from torch import Tensor

from tclgraph.arrays import FloatArray, IntArray
from tclgraph.baselines.walk_matrices import WalkProducts, WalkState, features, level_decay
from tclgraph.events.node_space import NodeSpace
from tclgraph.events.stream import EventStream
from tclgraph.testing.streams import KINDS, streams

EXACT: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-12}
NUM_MATRICES = 4
# Of one step in a quarter of a second, the smallest difference of times. With the last, the origin
# moves at almost every new time.
DECAYS = st.sampled_from([0.0, 0.1, 1.0, 7.0])


def event_pairs(events: EventStream) -> IntArray:
    return NodeSpace.of(events).nodes(events).reshape(-1, 2)


def walk_weights(
    node: int, before: int, steps: int, events: EventStream, step_weight: FloatArray
) -> FloatArray:
    """Search all walks of so many steps from a node backwards from an event; sum by their end."""
    weights = np.zeros(NodeSpace.of(events).num_nodes)
    if not steps:
        weights[node] = 1.0
        return weights
    for event, pair in enumerate(event_pairs(events)[:before].tolist()):
        if node in pair:
            partner = pair[1 - pair.index(node)]
            rest = walk_weights(partner, event, steps - 1, events, step_weight)
            weights += step_weight[event] * rest
    return weights


def walk_matrices(events: EventStream, now: float, decay: float) -> FloatArray:
    """Return all walk matrices at a time, after all events, [V, K, V]."""
    step_weight = np.exp(-decay * (now - events.time))
    return np.array(
        [
            [
                walk_weights(node, len(events), steps, events, step_weight)
                for steps in range(NUM_MATRICES)
            ]
            for node in range(NodeSpace.of(events).num_nodes)
        ]
    )


def state_before(events: EventStream, decay: float, projection: Tensor | None = None) -> WalkState:
    """Return a state before the first event; nothing is projected by default."""
    num_nodes = NodeSpace.of(events).num_nodes
    matrix = torch.eye(num_nodes, dtype=torch.float64) if projection is None else projection
    walks = matrix.new_zeros(num_nodes, NUM_MATRICES - 1, matrix.shape[1])
    return WalkState(matrix, walks, origin=float(events.time[0]), decay=decay)


def rows_at(state: WalkState, time: float) -> FloatArray:
    """Return the rows of all nodes at a time, [V, K, D]."""
    row = state.rows(np.arange(len(state.identity_VD)))
    factor = level_decay(torch.from_numpy(state.ages(np.array([time]))), NUM_MATRICES)
    decayed: FloatArray = (row * factor[0, :, None]).numpy()
    return decayed


def observe(state: WalkState, events: EventStream, most: int = 100) -> None:
    for part in state.stretches(events.time, most):
        state.update(event_pairs(events)[part], events.time[part])


class OneByOne:
    """The matrices at the time of the latest event; every event multiplies all of them."""

    def __init__(self, state: WalkState) -> None:
        self.row = state.rows(np.arange(len(state.identity_VD))).numpy()
        self.time, self.decay = state.origin, state.decay

    def at(self, time: float) -> FloatArray:
        factor = np.exp(-self.decay * (time - self.time)) ** np.arange(NUM_MATRICES)
        decayed: FloatArray = self.row * factor[:, None]
        return decayed

    def observe(self, source: int, target: int, time: float) -> None:
        old, self.row, self.time = self.at(time), self.at(time), time
        for steps in range(1, NUM_MATRICES):
            self.row[source, steps] += old[target, steps - 1]
            if target != source:
                self.row[target, steps] += old[source, steps - 1]


@settings(max_examples=40)
@given(streams(max_events=9), DECAYS)
def test_matrices_equal_a_search_of_all_walks(events: EventStream, decay: float) -> None:
    state = state_before(events, decay)
    observe(state, events)
    now = float(events.time[-1]) + 0.5
    assert_allclose(rows_at(state, now), walk_matrices(events, now, decay), **EXACT)


@settings(max_examples=40)
@given(streams(), DECAYS, st.integers(1, 9), st.lists(st.integers(0, 40), max_size=3))
def test_stored_rows_equal_rows_that_decay_at_every_event(
    events: EventStream, decay: float, most: int, cuts: list[int]
) -> None:
    """Before each event, for all nodes, however the events are divided."""
    state = state_before(events, decay)
    reference = OneByOne(state)
    node = np.arange(NodeSpace.of(events).num_nodes)
    ends = sorted(min(cut, len(events)) for cut in cuts)
    for begin, end in pairwise([0, *ends, len(events)]):
        block = events[begin:end]
        for part in state.stretches(block.time, most):
            pairs, time = event_pairs(block)[part], block.time[part]
            table = state.follow(node, pairs, time)
            factor = level_decay(torch.from_numpy(state.ages(time)), NUM_MATRICES)
            for event, (source, target) in enumerate(pairs.tolist()):
                stored = table.row[table.row_index(node, np.array(event))]
                row = stored * factor[event][:, None]
                assert_allclose(row, reference.at(time[event]), **EXACT)
                reference.observe(source, target, time[event])
    assert_allclose(rows_at(state, reference.time + 2), reference.at(reference.time + 2), **EXACT)


@settings(max_examples=30)
@given(streams(), DECAYS, st.integers(1, 40))
def test_the_origin_and_all_bits_depend_on_the_events_alone(
    events: EventStream, decay: float, cut: int
) -> None:
    together, divided = state_before(events, decay), state_before(events, decay)
    observe(together, events)
    observe(divided, events[:cut], most=3)
    observe(divided, events[cut:])
    assert together.origin == divided.origin
    assert torch.equal(together.walks_VLD, divided.walks_VLD)


@given(streams(), DECAYS)
def test_a_stored_number_is_at_most_e_per_step_times_what_it_stands_for(
    events: EventStream, decay: float
) -> None:
    state = state_before(events, decay)
    observe(state, events)
    now = rows_at(state, float(events.time[-1]))[:, 1:]
    limit = now * np.exp(np.arange(1, NUM_MATRICES))[:, None]
    assert (state.walks_VLD.numpy() <= limit * (1 + 1e-9)).all()


@settings(max_examples=20)
@given(streams(), DECAYS)
def test_rows_are_the_walk_matrices_times_the_random_matrix(
    events: EventStream, decay: float
) -> None:
    exact = state_before(events, decay)
    num_nodes = len(exact.identity_VD)
    random = torch.Generator().manual_seed(0)
    matrix = torch.randn(num_nodes, 3, generator=random, dtype=torch.float64)
    projected = state_before(events, decay, matrix)
    for state in (exact, projected):
        observe(state, events)
    now = float(events.time[-1])
    assert_allclose(rows_at(projected, now), rows_at(exact, now) @ matrix.numpy(), **EXACT)


def test_products_of_projected_rows_are_unbiased() -> None:
    """Mean and variance of the estimate over random matrices, for two rows of walk matrices."""
    random, width, count = np.random.default_rng(0), 20, 4000
    first, second = np.array([3.0, 1, 0, 2, 0]), np.array([1.0, 0, 4, 2, 1])
    matrix = random.standard_normal((count, 5, width)) * width**-0.5
    estimate = ((first @ matrix) * (second @ matrix)).sum(1)
    exact = first @ second
    variance = (first @ first * (second @ second) + exact**2) / width
    assert abs(estimate.mean() - exact) < 4 * (variance / count) ** 0.5
    assert_allclose(estimate.var(), variance, rtol=0.1)


@settings(max_examples=40)
@given(streams(kind="bipartite"), DECAYS)
def test_products_left_out_of_a_bipartite_graph_are_zero(events: EventStream, decay: float) -> None:
    state, products = state_before(events, decay), WalkProducts("bipartite", NUM_MATRICES)
    observe(state, events)
    row = state.rows(np.arange(len(state.identity_VD)))
    product = torch.einsum("ukd,vjd->uvkj", row, row)
    source, target = np.arange(events.num_sources), NodeSpace.of(events).target_nodes
    cross = product[source][:, target].flatten(2)
    own = product[np.arange(len(row)), np.arange(len(row))].flatten(1)
    is_out = torch.ones(NUM_MATRICES**2, dtype=torch.bool)
    is_out[products.cross_index] = False
    assert not cross[..., is_out].any()
    is_own = torch.zeros(NUM_MATRICES, NUM_MATRICES, dtype=torch.bool)
    is_own.view(-1)[products.own_index] = True
    assert not own[:, ~(is_own | is_own.T).flatten()].any()


@pytest.mark.parametrize("kind", KINDS)
def test_every_other_product_is_there_once(kind: str) -> None:
    products = WalkProducts("one-mode" if kind == "one-mode" else "bipartite", NUM_MATRICES)
    expected = (10, 16) if kind == "one-mode" else (6, 8)
    assert (len(set(products.own_pairs)), len(set(products.cross_pairs))) == expected
    assert (len(products.own_index), len(products.cross_index)) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_products_for_all_candidates_equal_those_for_given_ones(kind: Any) -> None:
    random = torch.Generator().manual_seed(0)
    source = torch.randn(3, NUM_MATRICES, 5, generator=random, dtype=torch.float64)
    candidate = torch.randn(4, NUM_MATRICES, 5, generator=random, dtype=torch.float64)
    products = WalkProducts(kind, NUM_MATRICES)
    cross = products.cross(source, candidate)
    assert_allclose(cross, products.cross_pairwise(source, candidate.expand(3, -1, -1, -1)))
    for index, (k, j) in enumerate(products.cross_pairs):
        assert_allclose(cross[..., index], source[:, k] @ candidate[:, j].T)
    for index, (k, j) in enumerate(products.own_pairs):
        expected = (candidate[:, k] * candidate[:, j]).sum(1)
        assert_allclose(products.own(candidate)[:, index], expected)


@settings(max_examples=30)
@given(streams(), DECAYS)
def test_walks_of_a_step_count_the_decayed_events_of_a_pair(
    events: EventStream, decay: float
) -> None:
    state, products = state_before(events, decay), WalkProducts(events.kind, 2)
    state.walks_VLD = state.walks_VLD[:, :1].clone()
    observe(state, events)
    node, now = np.arange(len(state.identity_VD)), float(events.time[-1]) + 1
    count = np.zeros((len(node), len(node)))
    for (source, target), time in zip(event_pairs(events).tolist(), events.time, strict=True):
        count[source, target] += np.exp(-decay * (now - time))
        count[target, source] = count[source, target]
    row = state.rows(node)
    cross = products.cross(row, row)
    age = torch.from_numpy(state.ages(np.array([now])))
    feature = features(cross, products.cross_steps, age)
    for pair in ((0, 1), (1, 0)):
        assert_allclose(feature[..., products.cross_pairs.index(pair)], np.log1p(count), **EXACT)


def test_a_self_loop_is_one_step() -> None:
    events = EventStream.from_columns(list("aa"), list("ab"), [0.0, 0.0], kind="one-mode")
    state = state_before(events, 0.0)
    observe(state, events)
    row = state.rows(np.arange(2))[:, 1]
    assert row.tolist() == [[1.0, 1.0], [1.0, 0.0]]


def test_old_walks_vanish_without_a_number_that_is_not_finite() -> None:
    events = EventStream.from_columns(list("ab"), list("xy"), [0.0, 1e12])
    state = state_before(events, 5.0)
    observe(state, events)
    row = rows_at(state, 1e15)
    assert_allclose(row[:, 0], np.eye(4))
    assert not row[:, 1:].any()
