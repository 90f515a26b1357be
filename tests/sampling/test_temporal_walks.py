"""Compare temporal walks with an enumeration of all walks and their probabilities."""

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
    """Return whether a walk is possible, taking the earliest remaining edge at every step."""
    first = [time for source, target, time in edges if [source, target] == walk[:2]]
    if not first:
        return False
    now = min(first)
    for current, following in pairwise(walk[1:]):
        later = [
            time
            for source, target, time in edges
            if time > now and (current, following) in ((source, target), (target, source))
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
    """Return the mean time between consecutive events of a node, over both sides of all events."""
    last: dict[int, float] = {}
    gaps: list[float] = []
    for source, target, time in edges:
        gaps += [time - last[node] for node in (source, target) if node in last]
        last[source] = last[target] = time
    return float(np.mean(gaps)) if gaps and max(gaps) > 0 else 1.0


def exact_probabilities(edges: Edges, bias: Bias, length: int) -> dict[tuple[int, ...], float]:
    """Return the probability of each walk, by enumerating all walks."""
    gap = mean_gap(edges)
    probabilities: dict[tuple[int, ...], float] = defaultdict(float)

    def extend(walk: tuple[int, ...], now: float, probability: float) -> None:
        current = walk[-1]
        later = [edge for edge in edges if edge[2] > now and current in edge[:2]]
        if not later or len(walk) == length:
            probabilities[walk] += probability
            return
        weights = [1.0 if bias == "uniform" else np.exp((now - time) / gap) for *_, time in later]
        for (source, target, time), weight in zip(later, weights, strict=True):
            following = target if current == source else source
            extend((*walk, following), time, probability * weight / sum(weights))

    for source, target, time in edges:
        extend((source, target), time, 1 / len(edges))
    return probabilities


def assert_probabilities_are_exact(stream: EventStream, bias: Bias, length: int) -> None:
    count = 20_000
    walks = walks_of(stream, bias).draw(count, length, np.random.default_rng(0))
    drawn = Counter(tuple(node for node in walk if node >= 0) for walk in walks.tolist())
    exact = exact_probabilities(edges_of(stream), bias, length)
    assert drawn.keys() <= exact.keys()
    for walk, probability in exact.items():
        # Five standard deviations, and a margin for very rare walks.
        allowed = 5 * (probability * (1 - probability) / count) ** 0.5 + 5 / count
        share = drawn[walk] / count
        assert abs(share - probability) <= allowed, (walk, share, probability)


@settings(max_examples=25)
@given(streams(max_events=7), st.sampled_from(BIASES), st.integers(2, 6))
def test_walks_have_their_exact_probabilities(stream: EventStream, bias: Bias, length: int) -> None:
    assert_probabilities_are_exact(stream, bias, length)


@pytest.mark.parametrize(("bias", "share"), [("uniform", 1 / 3), ("exponential", 0.6652)])
def test_probability_of_the_first_of_three_later_events(bias: Bias, share: float) -> None:
    # x interacts with a at 0, b at 1, c at 2 and d at 3: every gap is 1, and so is their mean.
    stream = EventStream.from_columns(list("abcd"), list("xxxx"), [0.0, 1.0, 2.0, 3.0])
    assert_probabilities_are_exact(stream, bias, 3)
    walks = walks_of(stream, bias).draw(40_000, 3, np.random.default_rng(1))
    after = walks[walks[:, 0] == 0, 2]
    assert np.mean(after == 1) == pytest.approx(share, abs=0.02)  # 1 / (1 + 1/e + 1/e²)


def test_an_event_long_after_all_others_can_be_reached() -> None:
    # The weight of the last event underflows, but no other event is left to take.
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
