"""Packed sub-graphs against a walk through the list of events, and against a drawing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tclgraph.arrays import IntArray
from tclgraph.dependency_graph.graph import DependencyGraph
from tclgraph.events.node_space import NodeSpace
from tclgraph.events.stream import EventStream
from tclgraph.sampling.dependency_subgraphs import PackedSubgraphs, pack, singleton
from tests.reference.tcl import Instance, Member, Past, without_past
from tests.streams import streams


def graph_of(events: EventStream) -> DependencyGraph:
    graph = DependencyGraph(NodeSpace.of(events))
    graph.append(events)
    return graph


def as_instance(number: int, past: Past) -> Instance:
    """What a root, or an instance of a row, is called in the reference."""
    if number < 0:
        return without_past(-1 - number)
    return Instance(number // 2, number % 2, past.parties[number // 2][number % 2])


def rows_of(packed: PackedSubgraphs, past: Past) -> list[Member]:
    instances = [as_instance(number, past) for number in packed.row_instance.tolist()]
    return list(zip(instances, packed.row_depth.tolist(), strict=True))


def slices(start: IntArray, values: IntArray) -> list[list[int]]:
    return [part.tolist() for part in np.split(values, start[1:-1])]


@st.composite
def roots(draw: st.DrawFn, events: EventStream) -> list[int]:
    """Both parties of events, and nodes without a past, in pairs."""
    num_nodes = NodeSpace.of(events).num_nodes
    known = st.integers(0, len(events) - 1).map(lambda event: (2 * event, 2 * event + 1))
    unknown = st.integers(0, num_nodes - 1).map(lambda node: (-1 - node, -1 - num_nodes))
    pairs = draw(st.lists(known | unknown, min_size=1, max_size=6))
    return [root for pair in pairs for root in pair]


def assert_walked(packed: PackedSubgraphs, past: Past, some: list[int], num_levels: int) -> None:
    """That these are the sub-graphs of some roots, each row once."""
    rows = rows_of(packed, past)
    assert len(set(rows)) == len(rows)
    assert packed.row_node.tolist() == [instance.node for instance, _ in rows]
    assert packed.row_interval.tolist() == [past.interval(instance) for instance, _ in rows]

    key_lists = slices(packed.key_start, packed.key_row)
    packed_streams = slices(packed.stream_start, packed.stream_query)
    assert packed.root_query.tolist() == [queries[0] for queries in packed_streams]
    met = set()
    for root, queries in zip(some, packed_streams, strict=True):
        members = past.subgraph(as_instance(root, past), num_levels)
        assert [rows[packed.query_row[query]] for query in queries] == members
        depth = dict(members)
        for query, member in zip(queries, members, strict=True):
            keys = [rows[row] for row in key_lists[query]]
            assert keys[0] == member
            assert len(set(keys)) == len(keys)
            assert set(keys) == {(one, depth[one]) for one in past.attended(member, num_levels)}
        met.update(members)
    assert met == set(rows)
    if num_levels <= 5:  # deeper, telling queries apart may be too much: then they are not shared
        distinct = set(zip(packed.query_row.tolist(), map(tuple, key_lists), strict=True))
        assert len(distinct) == len(packed.query_row)


@settings(max_examples=100)
@given(st.data())
def test_packing_is_walking_back_through_the_events(data: st.DataObject) -> None:
    events = data.draw(streams(max_events=30))
    some = data.draw(roots(events))
    num_levels = data.draw(st.integers(1, 7))
    packed = pack(graph_of(events), np.array(some).reshape(-1, 2), num_levels)
    assert_walked(packed, Past(events), some, num_levels)


@pytest.mark.parametrize("num_levels", [5, 8, 13])
def test_a_short_cut_past_many_events(num_levels: int) -> None:
    """a meets b, then c ten times, then b again: b leads back in one step, a in eleven."""
    events = EventStream.from_columns(["a"] * 12, list("b" + 10 * "c" + "b"), list(range(12)))
    some = list(range(2 * len(events)))
    packed = pack(graph_of(events), np.array(some), num_levels)
    assert_walked(packed, Past(events), some, num_levels)


@given(st.data())
def test_lists_by_slot_share_nothing(data: st.DataObject) -> None:
    events = data.draw(streams(max_events=30))
    some = data.draw(roots(events))
    num_levels = data.draw(st.integers(1, 5))
    past = Past(events)
    packed = pack(graph_of(events), np.array(some), num_levels)

    expected: list[list[int]] = []
    for root in some:
        members = past.subgraph(as_instance(root, past), num_levels)
        first = len(expected)
        slot = {instance: first + at for at, (instance, _) in enumerate(members)}
        for member in members:
            others = set(past.attended(member, num_levels)) - {member[0]}
            expected.append([slot[member[0]], *sorted(slot[one] for one in others)])
    found = slices(*packed.keys_by_slot())
    assert [[own, *sorted(others)] for own, *others in found] == expected


@given(st.data(), st.booleans(), st.booleans())
def test_lists_across_are_the_other_partys_members(
    data: st.DataObject, by_slot: bool, roots_only: bool
) -> None:
    events = data.draw(streams(max_events=30))
    some = data.draw(roots(events))
    packed = pack(graph_of(events), np.array(some), data.draw(st.integers(1, 5)))
    members = np.arange(len(packed.stream_query)) if by_slot else packed.stream_query
    start, keys = packed.keys_across(members, roots_only=roots_only)

    own = slices(packed.stream_start, members)
    expected = []
    for stream, others in enumerate(own[at ^ 1] for at in range(len(own))):
        expected += [others] * (1 if roots_only else len(own[stream]))
    assert slices(start, keys) == expected


# Columns are events, dots are instances, lines are met pairs and dependence on the event before.
#
#     time    0     4     6     9     9    12
#     event   0     1     2     3     4     5
#
#     x       1───────────5───────────9
#             │           │           │
#     a       0─────2─────4───────────8
#                   │
#     y             3───────────7──────────11
#                               │           │
#     b                         6──────────10
HAND_DRAWN = EventStream.from_columns(
    list("aaabab"), list("xyxyxy"), [0.0, 4.0, 6.0, 9.0, 9.0, 12.0]
)


def by_numbers(packed: PackedSubgraphs) -> list[dict[int, tuple[int, list[tuple[int, int]]]]]:
    """Each stream as {instance: (depth, keys as (instance, depth), its own first)}, in order."""
    row = list(zip(packed.row_instance.tolist(), packed.row_depth.tolist(), strict=True))
    keys = slices(packed.key_start, packed.key_row)
    return [
        {
            row[packed.query_row[query]][0]: (
                row[packed.query_row[query]][1],
                [row[key] for key in keys[query]],
            )
            for query in queries
        }
        for queries in slices(packed.stream_start, packed.stream_query)
    ]


def test_a_short_cut_in_the_drawing() -> None:
    """Four levels of a at event 4, and of b at event 5.

    Both meet a's instance 2 at depth 2. Below it lies event 0, which x has led a's sub-graph to
    already, at depth 2, while b's finds it at depth 3.
    """
    packed = pack(graph_of(HAND_DRAWN), np.array([8, 10]), 4)
    from_a, from_b = by_numbers(packed)
    assert from_a == {
        8: (0, [(8, 0), (4, 1), (5, 1), (2, 2), (3, 2), (1, 2), (0, 2)]),
        4: (1, [(4, 1), (2, 2), (3, 2), (1, 2), (0, 2)]),
        5: (1, [(5, 1), (1, 2), (0, 2)]),
        2: (2, [(2, 2), (1, 2), (0, 2)]),
        3: (2, [(3, 2)]),
        1: (2, [(1, 2)]),
        0: (2, [(0, 2)]),
    }
    assert list(from_a) == [8, 4, 5, 2, 3, 1, 0]
    assert from_b == {
        10: (0, [(10, 0), (6, 1), (7, 1), (3, 2), (2, 2), (0, 3), (1, 3)]),
        6: (1, [(6, 1)]),
        7: (1, [(7, 1), (3, 2), (2, 2), (0, 3), (1, 3)]),
        3: (2, [(3, 2)]),
        2: (2, [(2, 2), (0, 3), (1, 3)]),
        0: (3, [(0, 3)]),
        1: (3, [(1, 3)]),
    }
    assert list(from_b) == [10, 6, 7, 3, 2, 0, 1]
    # 14 members in all. Instances 2 and 3 are in both at depth 2: 12 rows. What 3 attends to is
    # the same in both, what 2 attends to is not: 13 queries.
    assert (len(packed.row_instance), len(packed.query_row)) == (12, 13)


def test_intervals_in_the_drawing() -> None:
    packed = pack(graph_of(HAND_DRAWN), np.array([8, 10]), 4)
    interval = dict(zip(packed.row_instance.tolist(), packed.row_interval.tolist(), strict=True))
    assert interval == {8: 3, 4: 2, 5: 6, 2: 4, 3: 0, 1: 0, 0: 0, 10: 3, 6: 0, 7: 5}


def test_levels_end_and_nodes_without_a_past_stand_alone_in_the_drawing() -> None:
    graph = graph_of(HAND_DRAWN)  # a and b are the nodes 0 and 1; nobody is 4
    packed = pack(graph, np.array([[9, 8], [singleton(1), singleton(4)]]), 2)
    assert [list(stream) for stream in by_numbers(packed)] == [[9, 5, 4], [8, 4, 5], [-2], [-5]]
    assert packed.row_node.tolist() == [2, 2, 0, 0, 1, 4]
    assert packed.row_interval.tolist() == [3, 6, 2, 3, 0, 0]
    assert by_numbers(pack(graph, np.array([11]), 1)) == [{11: (0, [(11, 0)])}]


def test_both_sides_of_a_self_loop_depend_on_the_event_before() -> None:
    """a→b, then b→b, then b→a: instances 2 and 3 are both b."""
    events = EventStream.from_columns(list("abb"), list("bba"), [0.0, 1.0, 5.0], kind="one-mode")
    from_b, from_a = by_numbers(pack(graph_of(events), np.array([4, 5]), 3))
    assert from_b == {
        4: (0, [(4, 0), (2, 1), (3, 1), (1, 2), (0, 2)]),
        2: (1, [(2, 1), (1, 2), (0, 2)]),
        3: (1, [(3, 1), (1, 2), (0, 2)]),
        1: (2, [(1, 2)]),
        0: (2, [(0, 2)]),
    }
    assert list(from_b) == [4, 2, 3, 1, 0]
    assert list(from_a) == [5, 0, 1]
