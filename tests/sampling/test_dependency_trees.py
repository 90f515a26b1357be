"""Compare trees with a recursion through the list of events, and with small examples."""

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

Tree = tuple[int, float, list[int], list[Any]]
"""Node, interval, neighbors, and two child trees or none."""


def graph_of(events: EventStream) -> DependencyGraph:
    graph = DependencyGraph(NodeSpace.of(events))
    graph.append(events)
    return graph


def neighbors(instance: Instance, past: Past) -> list[int]:
    if instance.event is None:
        return [-1, -1, -1]
    partner = past.parties[instance.event][1 - instance.side]
    previous = past.previous_event(instance)
    if previous is None:
        return [partner, -1, -1]
    return [partner, *(child.node for child in past.instances(previous, instance.node))]


def recursive_tree(instance: Instance, num_levels: int, past: Past) -> Tree:
    previous = past.previous_event(instance)
    children: list[Any] = []
    if previous is not None and num_levels > 1:
        dependencies = past.instances(previous, instance.node)
        children = [recursive_tree(child, num_levels - 1, past) for child in dependencies]
    return instance.node, past.interval(instance), neighbors(instance, past), children


def unrolled_tree(trees: DependencyTrees, level: int, place: int) -> Tree:
    """Return the tree below a row, as the rows describe it."""
    sizes = [len(rows) for rows in trees.children]
    sizes.append(len(trees) - sum(sizes))
    instance = int(trees.row_instance[sum(sizes[:level]) + place])
    children: list[Any] = []
    if level < len(trees.children):
        places = trees.children[level][place].tolist()
        is_missing = [child == sizes[level + 1] for child in places]
        assert len(set(is_missing)) == 1, "a row has both children or none"
        if not is_missing[0]:
            children = [unrolled_tree(trees, level + 1, child) for child in places]
    around = trees.neighbors[instance].tolist()
    return int(trees.node[instance]), float(trees.interval[instance]), around, children


@st.composite
def random_roots(draw: st.DrawFn, events: EventStream) -> list[int]:
    """Draw instances and nodes without events, in any order and with repeats."""
    known = st.integers(0, 2 * len(events) - 1)
    unknown = st.integers(-NodeSpace.of(events).num_nodes, -1)
    return draw(st.lists(known | unknown, min_size=1, max_size=6))


@settings(max_examples=100)
@given(st.data())
def test_unrolled_trees_equal_the_recursion(data: st.DataObject) -> None:
    events = data.draw(streams(max_events=30))
    roots = data.draw(random_roots(events))
    num_levels = data.draw(st.integers(1, 5))
    trees, past = unroll(graph_of(events), np.array(roots), num_levels), Past(events)
    assert len(trees.children) == num_levels - 1
    for tree, root in enumerate(roots):
        instance = without_past(-1 - root)
        if root >= 0:
            node = past.parties[root // 2][root % 2]
            instance = Instance(root // 2, root % 2, node)
        assert trees.tree[tree] == tree
        assert unrolled_tree(trees, 0, tree) == recursive_tree(instance, num_levels, past)


@given(st.data())
def test_an_instance_occurs_once_in_a_level_of_a_tree(data: st.DataObject) -> None:
    events = data.draw(streams(max_events=30))
    trees = unroll(graph_of(events), np.array(data.draw(random_roots(events))), 5)
    sizes = [len(rows) for rows in trees.children]
    sizes.append(len(trees) - sum(sizes))
    level = np.repeat(np.arange(5), sizes)
    rows = list(zip(level.tolist(), trees.tree.tolist(), trees.row_instance.tolist(), strict=True))
    assert len(set(rows)) == len(rows)
    # Every row below the roots is a child, and children are in the tree of their parent.
    start = np.cumsum([0, *sizes])
    for above, children in enumerate(trees.children):
        is_real = children < sizes[above + 1]
        parent = trees.tree[start[above] : start[above + 1]]
        child = trees.tree[start[above + 1] : start[above + 2]]
        assert_array_equal(np.unique(children[is_real]), np.arange(sizes[above + 1]))
        assert_array_equal(child[children[is_real]], np.stack([parent, parent], axis=1)[is_real])


@given(st.data())
def test_rows_by_tree_hold_all_rows(data: st.DataObject) -> None:
    events = data.draw(streams(max_events=30))
    trees = unroll(graph_of(events), np.array(data.draw(random_roots(events))), 4)
    for tree, rows in enumerate(trees.rows_by_tree().tolist()):
        used = [row for row in rows if row < len(trees)]
        assert used == np.flatnonzero(trees.tree == tree).tolist()
        assert rows[: len(used)] == used


def test_a_pair_without_other_neighbors_has_two_rows_per_level() -> None:
    """A tree of five levels has 31 places, but only nine rows here."""
    events = EventStream.from_columns(["a"] * 9, ["x"] * 9, range(9))
    trees = unroll(graph_of(events), np.array([16, 17]), 5)
    assert len(trees) == 2 * 9
    # The own child comes first: rows of a have (a, x) below them, rows of x have (x, a).
    assert trees.children[0].tolist() == [[0, 1], [3, 2]]
    assert trees.children[1].tolist() == [[0, 1], [1, 0], [2, 3], [3, 2]]
    assert sorted(trees.interval.tolist()) == [1.0] * 10


def test_an_empty_graph_gives_trees_of_singletons() -> None:
    events = EventStream.from_columns(["a"], ["x"], [0.0])
    trees = unroll(DependencyGraph(NodeSpace.of(events)), np.array([[-1, -3]]), 3)
    assert trees.node[trees.row_instance].tolist() == [0, 2]
    assert len(trees) == 2
