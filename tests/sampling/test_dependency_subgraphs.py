"""Compare packed sub-graphs with a search through the list of events, and with a drawing."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tclgraph.arrays import IntArray
from tclgraph.dependency_graph.graph import DependencyGraph
from tclgraph.events.node_space import NodeSpace
from tclgraph.events.stream import EventStream
from tclgraph.sampling.dependency_subgraphs import PackedSubgraphs, pack, singleton
from tclgraph.testing.streams import streams
from tests.reference.tcl import Instance, Member, Past, without_past


def graph_of(events: EventStream) -> DependencyGraph:
    graph = DependencyGraph(NodeSpace.of(events))
    graph.append(events)
    return graph


def as_instance(number: int, past: Past) -> Instance:
    """Return the reference's name of a root or of an instance of a row."""
    if number < 0:
        return without_past(-1 - number)
    return Instance(number // 2, number % 2, past.parties[number // 2][number % 2])


def rows_of(packed: PackedSubgraphs, past: Past) -> list[Member]:
    instances = [as_instance(number, past) for number in packed.row_instance.tolist()]
    return list(zip(instances, packed.row_depth.tolist(), strict=True))


def slices(start: IntArray, values: IntArray) -> list[list[int]]:
    return [part.tolist() for part in np.split(values, start[1:-1])]


@st.composite
def root_pairs(draw: st.DrawFn, events: EventStream) -> list[int]:
    """Draw pairs of roots: the parties of an event, or a node without events and the absent one."""
    num_nodes = NodeSpace.of(events).num_nodes
    known = st.integers(0, len(events) - 1).map(lambda event: (2 * event, 2 * event + 1))
    unknown = st.integers(0, num_nodes - 1).map(lambda node: (-1 - node, -1 - num_nodes))
    pairs = draw(st.lists(known | unknown, min_size=1, max_size=6))
    return [root for pair in pairs for root in pair]


def assert_equals_reference(
    packed: PackedSubgraphs, past: Past, roots: list[int], num_levels: int
) -> None:
    """Assert that these are the sub-graphs of the roots, with each row stored once."""
    rows = rows_of(packed, past)
    assert len(set(rows)) == len(rows)
    assert packed.row_node.tolist() == [instance.node for instance, _ in rows]
    assert packed.row_interval.tolist() == [past.interval(instance) for instance, _ in rows]

    key_lists = slices(packed.key_start, packed.key_row)
    packed_streams = slices(packed.stream_start, packed.stream_query)
    assert packed.root_query.tolist() == [queries[0] for queries in packed_streams]
    seen = set()
    for root, queries in zip(roots, packed_streams, strict=True):
        members = past.subgraph(as_instance(root, past), num_levels)
        assert [rows[packed.query_row[query]] for query in queries] == members
        depth = dict(members)
        for query, member in zip(queries, members, strict=True):
            keys = [rows[row] for row in key_lists[query]]
            assert keys[0] == member
            assert len(set(keys)) == len(keys)
            attended = past.attended(member, num_levels)
            assert set(keys) == {(instance, depth[instance]) for instance in attended}
        seen.update(members)
    assert seen == set(rows)
    if num_levels <= 5:  # in deeper sub-graphs equal queries may be stored more than once
        distinct = set(zip(packed.query_row.tolist(), map(tuple, key_lists), strict=True))
        assert len(distinct) == len(packed.query_row)


@settings(max_examples=100)
@given(st.data())
def test_packed_subgraphs_equal_the_reference(data: st.DataObject) -> None:
    events = data.draw(streams(max_events=30))
    roots = data.draw(root_pairs(events))
    num_levels = data.draw(st.integers(1, 7))
    packed = pack(graph_of(events), np.array(roots).reshape(-1, 2), num_levels)
    assert_equals_reference(packed, Past(events), roots, num_levels)


@given(st.data())
def test_every_slot_has_its_own_key_list(data: st.DataObject) -> None:
    events = data.draw(streams(max_events=30))
    roots = data.draw(root_pairs(events))
    num_levels = data.draw(st.integers(1, 5))
    past = Past(events)
    packed = pack(graph_of(events), np.array(roots), num_levels)

    expected: list[list[int]] = []
    for root in roots:
        members = past.subgraph(as_instance(root, past), num_levels)
        first = len(expected)
        slot = {instance: first + place for place, (instance, _) in enumerate(members)}
        for member in members:
            others = set(past.attended(member, num_levels)) - {member[0]}
            expected.append([slot[member[0]], *sorted(slot[other] for other in others)])
    key_lists = slices(*packed.keys_by_slot())
    assert [[own, *sorted(others)] for own, *others in key_lists] == expected


@given(st.data())
def test_queries_that_attend_to_themselves_only_are_the_last(data: st.DataObject) -> None:
    events = data.draw(streams(max_events=30))
    roots = data.draw(root_pairs(events))
    packed = pack(graph_of(events), np.array(roots), data.draw(st.integers(1, 5)))
    key_lists = slices(packed.key_start, packed.key_row)
    num_others = len(key_lists) - packed.num_single
    assert all(len(keys) > 1 for keys in key_lists[:num_others])
    assert key_lists[num_others:] == [[row] for row in packed.query_row[num_others:].tolist()]


@given(st.data(), st.booleans(), st.booleans())
def test_key_lists_across_hold_the_members_of_the_other_party(
    data: st.DataObject, by_slot: bool, roots_only: bool
) -> None:
    events = data.draw(streams(max_events=30))
    roots = data.draw(root_pairs(events))
    packed = pack(graph_of(events), np.array(roots), data.draw(st.integers(1, 5)))
    members = np.arange(len(packed.stream_query)) if by_slot else packed.stream_query
    start, keys = packed.keys_across(members, roots_only=roots_only)

    own = slices(packed.stream_start, members)
    expected = []
    for stream, others in enumerate(own[stream ^ 1] for stream in range(len(own))):
        expected += [others] * (1 if roots_only else len(own[stream]))
    assert slices(start, keys) == expected


# Columns are events and numbers are instances. Vertical lines join the parties of an event,
# horizontal lines join the consecutive events of a node.
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
    """Return each stream as {instance: (depth, keys)}, in order; a key is (instance, depth)."""
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


def test_intervals_in_the_drawing() -> None:
    packed = pack(graph_of(HAND_DRAWN), np.array([8, 10]), 4)
    interval = dict(zip(packed.row_instance.tolist(), packed.row_interval.tolist(), strict=True))
    assert interval == {8: 3, 4: 2, 5: 6, 2: 4, 3: 0, 1: 0, 0: 0, 10: 3, 6: 0, 7: 5}


def test_last_levels_and_nodes_without_events_in_the_drawing() -> None:
    graph = graph_of(HAND_DRAWN)  # a and b are the nodes 0 and 1; 4 is the absent node
    packed = pack(graph, np.array([[9, 8], [singleton(1), singleton(4)]]), 2)
    assert [list(stream) for stream in by_numbers(packed)] == [[9, 5, 4], [8, 4, 5], [-2], [-5]]
    assert packed.row_node.tolist() == [2, 2, 0, 0, 1, 4]
    assert packed.row_interval.tolist() == [3, 6, 2, 3, 0, 0]
    assert by_numbers(pack(graph, np.array([11]), 1)) == [{11: (0, [(11, 0)])}]
