"""Compiled loops over sub-graphs of the dependency graph; see `dependency_subgraphs` for the terms.

A sub-graph is stored as its root and a list of events: an instance depends on both instances of an
event, so the two instances always enter a sub-graph together, at the same depth. Each event is
represented by the instance that is listed first, which belongs to the node that led to the event.
The lists are short (at most 15 events at five levels), so a linear search in them is faster than a
hash table.
"""

from typing import Any, NamedTuple

import numpy as np

from tclgraph.arrays import IntArray
from tclgraph.compilation import BORROWING, INLINED, kernel

_EMPTY = -1  # an unused place of a hash table


class SubgraphMembers(NamedTuple):
    """Members of many sub-graphs, with the rows that they share (see `PackedSubgraphs`)."""

    row_instance: IntArray
    row_depth: IntArray
    reach_start: IntArray
    """Start of each row in the two lists below, and the end of the last row."""
    reach_instance: IntArray
    """Events that each row depends on within the levels that remain below it, as `reach` lists
    them. For the row of a root these are all events of the sub-graph."""
    reach_steps: IntArray
    stream_start: IntArray
    slot_row: IntArray
    """Row of each member, stream by stream: the root, then both instances of each event."""


@kernel(**BORROWING)
def reach(
    instance: int,
    num_steps: int,
    node: IntArray,
    previous: IntArray,
    event_instance: IntArray,
    event_steps: IntArray,
) -> int:
    """Write the events that an instance depends on within `num_steps` steps; return their number.

    The events are written to `event_instance` in breadth-first order, and the steps that lead to
    each of them to `event_steps`. A negative instance stands for a node without events and depends
    on nothing.
    """
    count = 0
    position = -1  # -1 is the instance itself; other positions are events already written
    while position < count:
        steps = 0 if position < 0 else event_steps[position]
        if steps < num_steps:
            for side in range(1 if position < 0 else 2):
                current = instance if position < 0 else event_instance[position] ^ side
                event = previous[current] if current >= 0 else -1
                if event < 0:
                    continue
                known = 0
                while known < count and event_instance[known] >> 1 != event:
                    known += 1
                if known == count:
                    is_source = node[2 * event] == node[current]
                    event_instance[count] = 2 * event if is_source else 2 * event + 1
                    event_steps[count] = steps + 1
                    count += 1
        position += 1
    return count


@kernel
def _empty_table(num_entries: int) -> IntArray:
    """Return a hash table with room for this many entries, at most half full."""
    size = 2
    while size < 2 * num_entries:
        size *= 2
    return np.full(size, _EMPTY, np.int64)


@kernel(**INLINED)
def _find_pair(
    table: IntArray, first_column: IntArray, second_column: IntArray, first: int, second: int
) -> Any:
    """Return the place of a pair in an open-addressing hash table, or the empty place for it.

    The table holds indices into the two columns, in which the pairs themselves are stored.
    """
    last = len(table) - 1
    mixed = np.uint64(first) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(second)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    place = np.int64((mixed >> np.uint64(32)) & np.uint64(last))
    while table[place] != _EMPTY and (
        first_column[table[place]] != first or second_column[table[place]] != second
    ):
        place = (place + 1) & last
    return place


@kernel
def collect_members(
    roots: IntArray, num_levels: int, node: IntArray, previous: IntArray
) -> SubgraphMembers:
    """Return the members of the sub-graph of every root, each distinct (instance, depth) once."""
    most_members = len(roots) * ((1 << num_levels) - 1)
    # At most 2^d members have depth d, and each of them reaches at most 2^(num_levels - 1 - d) - 1
    # events; this is the sum over all depths.
    most_reached = len(roots) * ((num_levels - 2) * (1 << (num_levels - 1)) + 1)

    num_rows = 0
    table = _empty_table(most_members)
    row_instance = np.empty(most_members, np.int64)
    row_depth = np.empty(most_members, np.int64)
    reach_start = np.zeros(most_members + 1, np.int64)
    reach_instance = np.empty(most_reached, np.int64)
    reach_steps = np.empty(most_reached, np.int64)

    num_slots = 0
    stream_start = np.zeros(len(roots) + 1, np.int64)
    slot_row = np.empty(most_members, np.int64)

    for stream in range(len(roots)):
        instance, depth = roots[stream], 0
        first_event, num_members = 0, 1
        member = 0
        while member < num_members:
            if member > 0:
                event = first_event + ((member - 1) >> 1)
                instance = reach_instance[event] ^ ((member - 1) & 1)
                depth = reach_steps[event]
            place = _find_pair(table, row_instance, row_depth, instance, depth)
            if table[place] == _EMPTY:
                table[place] = num_rows
                row_instance[num_rows] = instance
                row_depth[num_rows] = depth
                start = reach_start[num_rows]
                reach_start[num_rows + 1] = start + reach(
                    instance,
                    num_levels - 1 - depth,
                    node,
                    previous,
                    reach_instance[start:],
                    reach_steps[start:],
                )
                num_rows += 1
            row = table[place]
            if member == 0:
                first_event = reach_start[row]
                num_members += 2 * (reach_start[row + 1] - first_event)
            slot_row[num_slots] = row
            num_slots += 1
            member += 1
        stream_start[stream + 1] = num_slots

    return SubgraphMembers(
        row_instance[:num_rows].copy(),
        row_depth[:num_rows].copy(),
        reach_start[: num_rows + 1],
        reach_instance,
        reach_steps,
        stream_start,
        slot_row[:num_slots],
    )


@kernel
def unshare(
    query_row: IntArray,
    key_start: IntArray,
    key_row: IntArray,
    stream_start: IntArray,
    slot_query: IntArray,
) -> Any:
    """Return the key lists of all slots, with keys that are slots of the same stream.

    No list is shared: every member of every stream has its own.
    """
    lengths = np.zeros(len(slot_query) + 1, np.int64)
    for slot in range(len(slot_query)):
        query = slot_query[slot]
        lengths[slot + 1] = key_start[query + 1] - key_start[query]
    start = np.cumsum(lengths)
    keys = np.empty(start[-1], np.int64)
    slot_of = np.empty(query_row.max() + 1, np.int64)
    for stream in range(len(stream_start) - 1):
        for slot in range(stream_start[stream], stream_start[stream + 1]):
            slot_of[query_row[slot_query[slot]]] = slot
        for slot in range(stream_start[stream], stream_start[stream + 1]):
            first = key_start[slot_query[slot]]
            for key in range(start[slot + 1] - start[slot]):
                keys[start[slot] + key] = slot_of[key_row[first + key]]
    return start, keys


@kernel
def exchange(stream_start: IntArray, members: IntArray, roots_only: bool) -> Any:
    """Return key lists in which every root, or every slot, attends to the whole other stream."""
    num_streams = len(stream_start) - 1
    lengths = np.diff(stream_start)
    num_queries = num_streams if roots_only else stream_start[-1]
    start = np.zeros(num_queries + 1, np.int64)
    query = 0
    for stream in range(num_streams):
        for _ in range(1 if roots_only else lengths[stream]):
            start[query + 1] = start[query] + lengths[stream ^ 1]
            query += 1
    keys = np.empty(start[-1], np.int64)
    query = 0
    for stream in range(num_streams):
        other_members = members[stream_start[stream ^ 1] : stream_start[(stream ^ 1) + 1]]
        for _ in range(1 if roots_only else lengths[stream]):
            keys[start[query] : start[query + 1]] = other_members
            query += 1
    return start, keys
