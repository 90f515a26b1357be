"""Compare static neighbors and their samples with sets of pairs."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from tclgraph.events.node_space import NodeSpace
from tclgraph.events.stream import EventStream
from tclgraph.sampling.static_neighbors import StaticNeighbors
from tests.streams import streams


def neighbor_sets(events: EventStream) -> list[set[int]]:
    """Return the neighbors of each node; the node itself if it has no others."""
    space = NodeSpace.of(events)
    neighbors: list[set[int]] = [set() for _ in range(space.num_nodes)]
    for source, target in zip(events.source.tolist(), events.target.tolist(), strict=True):
        other = target + space.first_target
        if source != other:
            neighbors[source].add(other)
            neighbors[other].add(source)
    return [members or {node} for node, members in enumerate(neighbors)]


@given(streams(), st.integers(0, 20))
def test_neighbors_are_distinct_and_ascending(events: EventStream, train: int) -> None:
    stream = events[:train]  # so that some nodes have no events
    neighbors = StaticNeighbors(stream)
    for node, expected in enumerate(neighbor_sets(stream)):
        assert neighbors.of(node).tolist() == sorted(expected)
        assert neighbors.degree[node] == len(expected)


@given(streams(), st.integers(0, 20), st.integers(0, 99), st.data())
def test_hops_hold_neighbors_of_the_queried_nodes(
    events: EventStream, train: int, seed: int, data: st.DataObject
) -> None:
    stream = events[:train]
    neighbors = neighbor_sets(stream)
    queried = np.array(sorted(data.draw(st.sets(st.integers(0, len(neighbors) - 1), min_size=1))))
    counts = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    random = np.random.default_rng(seed)
    rows, hops = StaticNeighbors(stream).sample_hops(queried, counts, random)
    assert len(hops) == len(counts)
    for hop, count in zip(hops, reversed(counts), strict=True):
        assert len(np.unique(rows)) == len(rows) <= len(neighbors)
        # The rows of the next layer are the nodes of this hop.
        own = rows[hop.own]
        assert hop.neighbor.shape == (len(own), count)
        for node, sample in zip(own.tolist(), rows[hop.neighbor].tolist(), strict=True):
            assert set(sample) <= neighbors[node]
        rows = own
    assert_array_equal(rows, queried)


def test_repeats_do_not_make_a_neighbor_more_likely() -> None:
    events = EventStream.from_columns(list("aaaab"), list("xxyzx"), range(5))
    neighbors = StaticNeighbors(events)
    sample = neighbors.sample(np.zeros(3_000, dtype=np.int64), 10, np.random.default_rng(0))
    share = np.bincount(sample.ravel(), minlength=5) / sample.size
    assert np.abs(share - [0, 0, 1 / 3, 1 / 3, 1 / 3]).max() < 0.01


def test_with_all_nodes_queried_every_hop_has_all_rows() -> None:
    events = EventStream.from_columns(list("aab"), list("xyx"), range(3))
    rows, hops = StaticNeighbors(events).sample_hops(np.arange(4), (3, 2), np.random.default_rng(0))
    for layer_rows in (rows, *(hop.own for hop in hops)):
        assert layer_rows.tolist() == [0, 1, 2, 3]
