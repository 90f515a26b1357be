import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from tclgraph.events.node_space import NodeSpace
from tclgraph.events.stream import EventStream
from tclgraph.sampling.static_neighbors import StaticNeighbors
from tests.streams import streams


def who_met(events: EventStream) -> list[set[int]]:
    """Sets of neighbors, pair by pair; the node itself where there is nobody else."""
    space = NodeSpace.of(events)
    met: list[set[int]] = [set() for _ in range(space.num_nodes)]
    for source, target in zip(events.source.tolist(), events.target.tolist(), strict=True):
        other = target + space.first_target
        if source != other:
            met[source].add(other)
            met[other].add(source)
    return [found or {node} for node, found in enumerate(met)]


@given(streams(), st.integers(0, 20))
def test_neighbors_are_those_who_met_each_once(events: EventStream, train: int) -> None:
    some = events[:train]  # so that there are nodes without an event
    met = who_met(some)
    neighbors = StaticNeighbors(some)
    for node, expected in enumerate(met):
        assert neighbors.of(node).tolist() == sorted(expected)
        assert neighbors.degree[node] == len(expected)


@given(streams(), st.integers(0, 20), st.integers(0, 99), st.data())
def test_hops_hold_real_neighbors_of_the_nodes_asked_for(
    events: EventStream, train: int, seed: int, data: st.DataObject
) -> None:
    some = events[:train]
    met = who_met(some)
    asked = np.array(sorted(data.draw(st.sets(st.integers(0, len(met) - 1), min_size=1))))
    counts = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    random = np.random.default_rng(seed)
    rows, hops = StaticNeighbors(some).sample_hops(asked, counts, random)
    assert len(hops) == len(counts)
    for hop, count in zip(hops, reversed(counts), strict=True):
        assert len(np.unique(rows)) == len(rows) <= len(met)
        # The rows of the next layer are the nodes of this hop.
        own = rows[hop.own]
        assert hop.neighbor.shape == (len(own), count)
        for node, found in zip(own.tolist(), rows[hop.neighbor].tolist(), strict=True):
            assert set(found) <= met[node]
        rows = own
    assert_array_equal(rows, asked)


def test_every_neighbor_is_equally_likely_however_often_they_met() -> None:
    events = EventStream.from_columns(list("aaaab"), list("xxyzx"), range(5))
    neighbors = StaticNeighbors(events)
    found = neighbors.sample(np.zeros(3_000, dtype=np.int64), 10, np.random.default_rng(0))
    share = np.bincount(found.ravel(), minlength=5) / found.size
    assert np.abs(share - [0, 0, 1 / 3, 1 / 3, 1 / 3]).max() < 0.01


def test_all_nodes_asked_for_are_the_rows_of_every_hop() -> None:
    events = EventStream.from_columns(list("aab"), list("xyx"), range(3))
    rows, hops = StaticNeighbors(events).sample_hops(np.arange(4), (3, 2), np.random.default_rng(0))
    for found in (rows, *(hop.own for hop in hops)):
        assert found.tolist() == [0, 1, 2, 3]
