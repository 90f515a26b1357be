"""Compare the partners in a window of the log with a search through its events."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from tclgraph.dependency_graph.graph import DependencyGraph
from tclgraph.events.node_space import NodeSpace
from tclgraph.events.stream import EventStream
from tclgraph.sampling.recent_partners import PartnerLists, PartnerWindow
from tclgraph.testing.streams import streams

sizes = st.one_of(st.none(), st.integers(1, 12))


def partners(graph: DependencyGraph, position: int, size: int | None) -> set[tuple[int, int]]:
    """Return (node, partner) for all nodes that interact in the window of a position."""
    first = 0 if size is None else max(position - size, 0)
    pairs = graph.node[2 * first : 2 * position].reshape(-1, 2).tolist()
    return {(a, b) for pair in pairs for a, b in (pair, pair[::-1]) if a != b}


def followed(stream: EventStream, size: int | None, cuts: list[int]) -> PartnerWindow:
    """Return a window that has followed a stream in the pieces between the cuts."""
    graph = DependencyGraph(NodeSpace.of(stream))
    window = PartnerWindow(graph, size)
    for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        graph.append(stream[begin:end])
        window.update()
    return window


def cuts_of(stream: EventStream) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, len(stream)), max_size=4).map(sorted)


@given(streams(), sizes, st.data())
def test_changes_lead_to_the_partners_of_every_position(
    stream: EventStream, size: int | None, data: st.DataObject
) -> None:
    window = followed(stream, size, data.draw(cuts_of(stream)))
    count: Counter[tuple[int, int]] = Counter()
    positions = [0, *data.draw(st.permutations(range(len(stream) + 1)))]
    for begin, end in pairwise(positions):
        changes = window.changes(min(begin, end), max(begin, end))
        factor = 1 if begin < end else -1
        for node, partner, sign in zip(*(column.tolist() for column in changes), strict=True):
            count[node, partner] += factor * sign
        assert set(count.values()) <= {0, 1}
        assert {pair for pair in count if count[pair]} == partners(window.graph, end, size)


@given(streams(), sizes)
def test_lists_are_the_partners_of_every_node_and_position(
    stream: EventStream, size: int | None
) -> None:
    graph = followed(stream, size, []).graph
    nodes, positions = np.meshgrid(np.arange(graph.space.num_nodes), np.arange(len(graph) + 1))
    node, position = nodes.ravel(), positions.ravel()
    partner, start = PartnerLists(graph, size).before(node, position)
    lists = np.split(partner, start[1:])
    for number, (own, end) in enumerate(zip(node.tolist(), position.tolist(), strict=True)):
        expected = sorted(b for a, b in partners(graph, end, size) if a == own)
        assert sorted(lists[number].tolist()) == expected


@pytest.mark.parametrize("size", [None, 3])
def test_an_empty_graph_has_no_partners(size: int | None) -> None:
    graph = DependencyGraph(NodeSpace(kind="one-mode", num_sources=2, num_targets=2))
    window = PartnerWindow(graph, size)
    window.update()
    assert [len(column) for column in window.changes(0, 0)] == [0, 0, 0]
    partner, start = PartnerLists(graph, size).before(np.arange(2), np.zeros(2, dtype=np.int64))
    assert_array_equal(start, [0, 0])
    assert len(partner) == 0
