"""The compiled loops of this room. What they find is told in `dependency_subgraphs`.

A sub-graph is its root and a list of events: an instance depends on both instances of an event, so
these two always come together, at the same depth. The lists are short (15 events at five levels),
and looking through one is quicker than any table.
"""

from typing import Any

import numpy as np
from numba import njit

from tclgraph.arrays import IntArray

_FREE = -1
# A mark tells, in so many bits an event, how much nearer to the root each event is; in 60 bits.
_BITS = 3
_MOST_MARKED = 20


@njit(cache=True, nogil=True)
def reach(
    instance: int,
    num_steps: int,
    node: IntArray,
    previous: IntArray,
    first: IntArray,
    steps: IntArray,
) -> int:
    """Events within so many steps of an instance, breadth first, into `first` and `steps`.

    An event is given by the one of its two instances that is listed first: that of the node which
    led there. Returns how many there are. A negative instance has no past.
    """
    count = 0
    at = -1  # the instance itself, then the events found so far
    while at < count:
        done = 0 if at < 0 else steps[at]
        if done < num_steps:
            for side in range(1 if at < 0 else 2):
                current = instance if at < 0 else first[at] ^ side
                event = previous[current] if current >= 0 else -1
                if event < 0:
                    continue
                known = 0
                while known < count and first[known] >> 1 != event:
                    known += 1
                if known == count:
                    first[count] = 2 * event if node[2 * event] == node[current] else 2 * event + 1
                    steps[count] = done + 1
                    count += 1
        at += 1
    return count


@njit(cache=True, nogil=True)
def _find(table: IntArray, first: IntArray, second: IntArray, one: int, two: int) -> Any:
    """Where the pair (one, two) is in an open hash table of positions, or the free place for it."""
    last = len(table) - 1
    mixed = np.uint64(one) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(two)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    place = np.int64((mixed >> np.uint64(32)) & np.uint64(last))
    while table[place] != _FREE and (first[table[place]] != one or second[table[place]] != two):
        place = (place + 1) & last
    return place


@njit(cache=True, nogil=True)
def pack(roots: IntArray, num_levels: int, node: IntArray, previous: IntArray) -> Any:
    """The arrays of `PackedSubgraphs`, in its order."""
    most_events = (1 << (num_levels - 1)) - 1
    most_slots = len(roots) * (2 * most_events + 1)
    most_keys = len(roots) * ((num_levels - 1) * (1 << num_levels) + 1)
    table_size = 2
    while table_size < 2 * most_slots:
        table_size *= 2

    num_rows = 0
    row_table = np.full(table_size, _FREE, np.int64)
    row_instance = np.empty(most_slots, np.int64)
    row_depth = np.empty(most_slots, np.int64)
    # The events that each row reaches, found when the row is first seen.
    reach_start = np.zeros(most_slots + 1, np.int64)
    reach_first = np.empty(most_keys, np.int64)
    reach_steps = np.empty(most_keys, np.int64)

    num_queries = 0
    query_table = np.full(table_size, _FREE, np.int64)
    query_row = np.empty(most_slots, np.int64)
    query_mark = np.empty(most_slots, np.int64)
    key_start = np.zeros(most_slots + 1, np.int64)
    key_row = np.empty(most_keys, np.int64)

    num_slots = 0
    stream_start = np.zeros(len(roots) + 1, np.int64)
    slot_query = np.empty(most_slots, np.int64)

    # Of the sub-graph at hand: its events, and the row of its root and of each event's instances.
    events = np.empty(most_events, np.int64)
    depths = np.empty(most_events, np.int64)
    rows = np.empty(2 * most_events + 1, np.int64)
    where = np.empty(most_events, np.int64)

    for stream in range(len(roots)):
        num_members = 1
        member = 0
        while member < num_members:
            if member == 0:
                instance, depth = roots[stream], 0
            else:
                at = (member - 1) >> 1
                instance, depth = events[at] ^ ((member - 1) & 1), depths[at]
            place = _find(row_table, row_instance, row_depth, instance, depth)
            if row_table[place] == _FREE:
                row_table[place] = num_rows
                row_instance[num_rows] = instance
                row_depth[num_rows] = depth
                start = reach_start[num_rows]
                left = num_levels - 1 - depth
                found = reach(
                    instance, left, node, previous, reach_first[start:], reach_steps[start:]
                )
                num_rows += 1
                reach_start[num_rows] = start + found
            row = row_table[place]
            rows[member] = row
            if member == 0:
                start = reach_start[row]
                for at in range(reach_start[row + 1] - start):
                    events[at] = reach_first[start + at]
                    depths[at] = reach_steps[start + at]
                    num_members += 2
            member += 1

        for member in range(num_members):
            row = rows[member]
            depth = row_depth[row]
            start = reach_start[row]
            num_reached = reach_start[row + 1] - start
            mark = 0
            for at in range(num_reached):
                event = reach_first[start + at] >> 1
                where[at] = 0
                while events[where[at]] >> 1 != event:
                    where[at] += 1
                nearer = depth + reach_steps[start + at] - depths[where[at]]
                if nearer > 0 and (at >= _MOST_MARKED or nearer >> _BITS > 0):
                    mark = -1 - num_slots  # too much to tell: shared with nobody
                elif nearer > 0 and mark >= 0:
                    mark |= nearer << (_BITS * at)
            place = _find(query_table, query_row, query_mark, row, mark)
            if query_table[place] == _FREE:
                query_table[place] = num_queries
                query_row[num_queries] = row
                query_mark[num_queries] = mark
                last = key_start[num_queries]
                key_row[last] = row
                for at in range(num_reached):
                    key_row[last + 1 + 2 * at] = rows[1 + 2 * where[at]]
                    key_row[last + 2 + 2 * at] = rows[2 + 2 * where[at]]
                num_queries += 1
                key_start[num_queries] = last + 1 + 2 * num_reached
            slot_query[num_slots] = query_table[place]
            num_slots += 1
        stream_start[stream + 1] = num_slots

    return (
        row_instance[:num_rows].copy(),
        row_depth[:num_rows].copy(),
        query_row[:num_queries].copy(),
        key_start[: num_queries + 1].copy(),
        key_row[: key_start[num_queries]].copy(),
        stream_start,
        slot_query[:num_slots].copy(),
    )


@njit(cache=True, nogil=True)
def unshare(
    query_row: IntArray,
    key_start: IntArray,
    key_row: IntArray,
    stream_start: IntArray,
    slot_query: IntArray,
) -> Any:
    """Key lists by slot: what every member of every stream attends to, in slots of its stream."""
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
            for at in range(start[slot + 1] - start[slot]):
                keys[start[slot] + at] = slot_of[key_row[first + at]]
    return start, keys


@njit(cache=True, nogil=True)
def exchange(stream_start: IntArray, members: IntArray, roots_only: bool) -> Any:
    """Key lists across: every root, or every slot, attends to all members of the other stream."""
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
        other = members[stream_start[stream ^ 1] : stream_start[(stream ^ 1) + 1]]
        for _ in range(1 if roots_only else lengths[stream]):
            keys[start[query] : start[query + 1]] = other
            query += 1
    return start, keys
