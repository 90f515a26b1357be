"""Trees against a walk through the list of events, and against a drawing."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from tclgraph.dependency_graph.graph import DependencyGraph
from tclgraph.events.node_space import NodeSpace
from tclgraph.events.stream import EventStream
from tclgraph.sampling.dependency_trees import DependencyTrees, unroll
from tests.reference.tcl import Instance, Past, without_past
from tests.streams import streams

Walked = tuple[int, float, list[int], list[Any]]
"""Node, interval, neighbors, and what is below: two trees, or nothing."""


def graph_of(events: EventStream) -> DependencyGraph:
    graph = DependencyGraph(NodeSpace.of(events))
    graph.append(events)
    return graph


def neighbors(instance: Instance, past: Past) -> list[int]:
    if instance.event is None:
        return [-1, -1, -1]
    partner = past.parties[instance.event][1 - instance.side]
    before = past.previous_event(instance)
    both = [] if before is None else past.instances(before, instance.node)
    return [partner, *(one.node for one in both)] if both else [partner, -1, -1]


def walked(instance: Instance, num_levels: int, past: Past) -> Walked:
    before = past.previous_event(instance)
    below: list[Any] = []
    if before is not None and num_levels > 1:
        both = past.instances(before, instance.node)
        below = [walked(one, num_levels - 1, past) for one in both]
    return instance.node, past.interval(instance), neighbors(instance, past), below


def found(trees: DependencyTrees, level: int, place: int) -> Walked:
    """The same, read off the rows."""
    sizes = [len(one) for one in trees.children]
    sizes.append(len(trees) - sum(sizes))
    what = int(trees.which[sum(sizes[:level]) + place])
    below: list[Any] = []
    if level < len(trees.children):
        places = trees.children[level][place].tolist()
        assert len({one == sizes[level + 1] for one in places}) == 1, "both or none"
        below = [found(trees, level + 1, one) for one in places if one < sizes[level + 1]]
    about = trees.node[what], trees.interval[what], trees.neighbors[what]
    return int(about[0]), float(about[1]), about[2].tolist(), below


@st.composite
def roots(draw: st.DrawFn, events: EventStream) -> list[int]:
    """Instances and nodes without a past, in any order and repeatedly."""
    known = st.integers(0, 2 * len(events) - 1)
    unknown = st.integers(-NodeSpace.of(events).num_nodes, -1)
    return draw(st.lists(known | unknown, min_size=1, max_size=6))


@settings(max_examples=100)
@given(st.data())
def test_unrolling_is_walking_back_through_the_events(data: st.DataObject) -> None:
    events = data.draw(streams(max_events=30))
    some = data.draw(roots(events))
    num_levels = data.draw(st.integers(1, 5))
    trees, past = unroll(graph_of(events), np.array(some), num_levels), Past(events)
    assert len(trees.children) == num_levels - 1
    for tree, root in enumerate(some):
        instance = without_past(-1 - root)
        if root >= 0:
            node = past.parties[root // 2][root % 2]
            instance = Instance(root // 2, root % 2, node)
        assert trees.tree[tree] == tree
        assert found(trees, 0, tree) == walked(instance, num_levels, past)


@given(st.data())
def test_every_instance_is_once_in_a_level_of_a_tree(data: st.DataObject) -> None:
    events = data.draw(streams(max_events=30))
    trees = unroll(graph_of(events), np.array(data.draw(roots(events))), 5)
    sizes = [len(one) for one in trees.children]
    sizes.append(len(trees) - sum(sizes))
    level = np.repeat(np.arange(5), sizes)
    rows = list(zip(level.tolist(), trees.tree.tolist(), trees.which.tolist(), strict=True))
    assert len(set(rows)) == len(rows)
    # Nothing is there that no root leads to, and children are in the tree of their parent.
    start = np.cumsum([0, *sizes])
    for above, children in enumerate(trees.children):
        real = children < sizes[above + 1]
        parent = trees.tree[start[above] : start[above + 1]]
        child = trees.tree[start[above + 1] : start[above + 2]]
        assert_array_equal(np.unique(children[real]), np.arange(sizes[above + 1]))
        assert_array_equal(child[children[real]], np.stack([parent, parent], axis=1)[real])


@given(st.data())
def test_rows_by_tree_are_all_rows(data: st.DataObject) -> None:
    events = data.draw(streams(max_events=30))
    trees = unroll(graph_of(events), np.array(data.draw(roots(events))), 4)
    for tree, rows in enumerate(trees.rows_by_tree().tolist()):
        kept = [row for row in rows if row < len(trees)]
        assert kept == np.flatnonzero(trees.tree == tree).tolist()
        assert rows[: len(kept)] == kept


def test_a_pair_that_only_has_each_other_has_two_rows_a_level() -> None:
    """31 places in a tree of five levels, and nine rows."""
    events = EventStream.from_columns(["a"] * 9, ["x"] * 9, range(9))
    trees = unroll(graph_of(events), np.array([16, 17]), 5)
    assert len(trees) == 2 * 9
    # a at events 7 to 4, each depending on a first and x second, and x on x first.
    assert trees.children[0].tolist() == [[0, 1], [3, 2]]
    assert trees.children[1].tolist() == [[0, 1], [1, 0], [2, 3], [3, 2]]
    assert sorted(trees.interval.tolist()) == [1.0] * 10


def test_an_empty_graph_has_singletons() -> None:
    events = EventStream.from_columns(["a"], ["x"], [0.0])
    trees = unroll(DependencyGraph(NodeSpace.of(events)), np.array([[-1, -3]]), 3)
    assert trees.node[trees.which].tolist() == [0, 2]
    assert len(trees) == 2
