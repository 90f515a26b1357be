from collections import Counter, defaultdict
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from tclgraph.dependency_graph.graph import DependencyGraph
from tclgraph.events.node_space import NodeSpace
from tclgraph.events.stream import EventStream
from tclgraph.sampling.temporal_walks import Bias, TemporalWalks
from tests.streams import streams

BIASES: tuple[Bias, ...] = ("uniform", "exponential")
Edges = list[tuple[int, int, float]]


def edges_of(stream: EventStream) -> Edges:
    first_target = NodeSpace.of(stream).first_target
    target = stream.target + first_target
    return list(zip(stream.source.tolist(), target.tolist(), stream.time.tolist(), strict=True))


def walks_of(stream: EventStream, bias: Bias) -> TemporalWalks:
    graph = DependencyGraph(NodeSpace.of(stream))
    graph.append(stream)
    return TemporalWalks(graph, bias)


def can_be_walked(walk: list[int], edges: Edges) -> bool:
    """Whether taking the earliest edge that is left at every step gets to the end."""
    first = [time for source, target, time in edges if [source, target] == walk[:2]]
    if not first:
        return False
    now = min(first)
    for here, there in pairwise(walk[1:]):
        later = [
            time
            for source, target, time in edges
            if time > now and (here, there) in ((source, target), (target, source))
        ]
        if not later:
            return False
        now = min(later)
    return True


@given(streams(), st.sampled_from(BIASES), st.integers(2, 8), st.integers(0, 99))
def test_walks_follow_events_forward_in_time(
    stream: EventStream, bias: Bias, length: int, seed: int
) -> None:
    walks = walks_of(stream, bias).draw(30, length, np.random.default_rng(seed))
    assert walks.shape == (30, length)
    edges = edges_of(stream)
    for walk in walks.tolist():
        nodes = [node for node in walk if node >= 0]
        assert len(nodes) >= 2
        assert walk == nodes + [-1] * (length - len(nodes))
        assert can_be_walked(nodes, edges), walk


def mean_gap(edges: Edges) -> float:
    """Seconds between two events of a node, for every side of every event but a node's first."""
    last: dict[int, float] = {}
    gaps: list[float] = []
    for source, target, time in edges:
        gaps += [time - last[node] for node in (source, target) if node in last]
        last[source] = last[target] = time
    return float(np.mean(gaps)) if gaps and max(gaps) > 0 else 1.0


def exact_shares(edges: Edges, bias: Bias, length: int) -> dict[tuple[int, ...], float]:
    """How likely each walk is, by trying them all."""
    gap = mean_gap(edges)
    shares: dict[tuple[int, ...], float] = defaultdict(float)

    def go_on(walk: tuple[int, ...], now: float, share: float) -> None:
        here = walk[-1]
        later = [edge for edge in edges if edge[2] > now and here in edge[:2]]
        if not later or len(walk) == length:
            shares[walk] += share
            return
        weights = [1.0 if bias == "uniform" else np.exp((now - time) / gap) for *_, time in later]
        for (source, target, time), weight in zip(later, weights, strict=True):
            there = target if here == source else source
            go_on((*walk, there), time, share * weight / sum(weights))

    for source, target, time in edges:
        go_on((source, target), time, 1 / len(edges))
    return shares


def assert_as_likely_as_they_should_be(stream: EventStream, bias: Bias, length: int) -> None:
    count = 20_000
    walks = walks_of(stream, bias).draw(count, length, np.random.default_rng(0))
    found = Counter(tuple(node for node in walk if node >= 0) for walk in walks.tolist())
    exact = exact_shares(edges_of(stream), bias, length)
    assert found.keys() <= exact.keys()
    for walk, share in exact.items():
        # Five deviations, and a little for walks that hardly ever happen.
        allowed = 5 * (share * (1 - share) / count) ** 0.5 + 5 / count
        assert abs(found[walk] / count - share) <= allowed, (walk, found[walk] / count, share)


@settings(max_examples=25)
@given(streams(max_events=7), st.sampled_from(BIASES), st.integers(2, 6))
def test_every_walk_is_as_likely_as_it_should_be(
    stream: EventStream, bias: Bias, length: int
) -> None:
    assert_as_likely_as_they_should_be(stream, bias, length)


@pytest.mark.parametrize(("bias", "share"), [("uniform", 1 / 3), ("exponential", 0.6652)])
def test_which_of_three_later_events(bias: Bias, share: float) -> None:
    #  a -0- x;  then x is met by b at 1, c at 2 and d at 3: every gap is 1, and so is their mean
    stream = EventStream.from_columns(list("abcd"), list("xxxx"), [0.0, 1.0, 2.0, 3.0])
    assert_as_likely_as_they_should_be(stream, bias, 3)
    walks = walks_of(stream, bias).draw(40_000, 3, np.random.default_rng(1))
    after = walks[walks[:, 0] == 0, 2]
    assert np.mean(after == 1) == pytest.approx(share, abs=0.02)  # 1 / (1 + 1/e + 1/e²)


def test_an_event_long_after_all_others_can_be_reached() -> None:
    # Of weights that far apart, e^-1000 is no number; but nothing else is left to take.
    time = [0.0, *range(1, 5000), 9e9]
    stream = EventStream.from_columns([0] + [1] * 4999 + [2], [0] + [1] * 4999 + [0], time)
    walks = walks_of(stream, "exponential").draw(50_000, 3, np.random.default_rng(0))
    assert [0, 3, 2] in walks.tolist()


@pytest.mark.parametrize("bias", BIASES)
def test_equal_generators_give_equal_walks(bias: Bias) -> None:
    stream = EventStream.from_columns([0, 1, 2, 1, 0] * 9, [5, 6, 5, 5, 6] * 9, range(45))
    walks = walks_of(stream, bias)
    once, twice, other = (walks.draw(40, 9, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert_array_equal(once, twice)
    assert (once != other).any()
