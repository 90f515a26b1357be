"""The loop over a block of queries, which calls the kernels of every group of features."""

from typing import Any, NamedTuple

import numpy as np

from tclgraph.arrays import FloatArray, IntArray
from tclgraph.compilation import BORROWING, INLINED, kernel
from tclgraph.features.activity_kernels import (
    Changed,
    forget_changes,
    no_changes,
    record_events,
    slide_windows,
    write_steady,
    write_steady_of_target,
)
from tclgraph.features.block import (
    NUM_MOVING,
    NUM_STEADY,
    PAIR_IS_LOGARITHM,
    STEADY_IS_LOGARITHM,
)
from tclgraph.features.columns import NUM_PAIR_FEATURES, NUM_SOURCE_FEATURES
from tclgraph.features.log_arrays import Events, NodeColumn, Nodes
from tclgraph.features.logarithm_kernels import log_columns
from tclgraph.features.moving_kernels import (
    LastTimes,
    RecencyRanks,
    last_times,
    update_ranks,
    update_times,
    write_moving,
    write_moving_of_target,
)
from tclgraph.features.nearby_kernels import (
    Nearby,
    count_nearby,
    empty_nearby,
    write_nearby,
    write_nearby_of_target,
)
from tclgraph.features.neighbor_kernels import (
    Lists,
    Pairs,
    choose_pairs,
    empty_lists,
    empty_pairs,
    has_pair,
    write_pairs,
)
from tclgraph.features.source_kernels import write_source
from tclgraph.features.walk_kernels import (
    NUM_LANES,
    Walks,
    empty_walks,
    walk_group,
    write_walk,
    write_walk_of_target,
)


class Queries(NamedTuple):
    """A block of queries about distinct targets, the columns."""

    source: IntArray
    time: FloatArray
    columns: IntArray
    sample_offset: FloatArray
    """Offset of every query with which `sample_rows` samples pairs; empty if all pairs count."""
    num_known: int
    """Number of events that the first query knows."""
    reveal: bool
    """Whether each query knows one event more than the query before."""
    split_by_repeat: bool
    """Whether a query has either pairs or candidate features; see `HistoryState.features`."""


@kernel
def compute_block(queries: Queries, events: Events, nodes: Nodes, ranks: RecencyRanks) -> Any:
    """Return the arrays of `HistoryFeatures`; the kernel changes `nodes` and `ranks`."""
    columns, first_target = queries.columns, events.first_target
    num_queries, num_columns = len(queries.source), len(columns)
    num_nodes, num_targets = len(nodes.table), len(ranks.as_target)
    source_table = np.zeros((num_queries, NUM_SOURCE_FEATURES), np.float32)
    steady = np.empty((num_columns, NUM_STEADY), np.float32)
    candidate_query = np.empty(num_queries, np.int64)
    num_rows, num_changes = 0, 0
    change_start = np.zeros(num_queries + 1, np.int64)
    change_column = np.empty(0, np.int64)
    change = np.empty((0, NUM_STEADY), np.float32)
    moving = np.empty((num_queries, NUM_MOVING, num_columns), np.float32)
    pairs = empty_pairs(num_queries, num_targets, len(queries.sample_offset) > 0)
    lists = empty_lists(num_targets)
    column_of = np.full(num_targets, -1, np.int64)
    for column in range(num_columns):
        column_of[columns[column]] = column
        write_steady(columns[column], events, nodes, steady[column])
    times = last_times(columns, events, nodes)
    changed = no_changes(num_targets)
    nearby = empty_nearby(num_nodes, num_targets)
    walks = empty_walks(num_nodes)
    for query in range(num_queries):
        known = queries.num_known + query if queries.reveal else queries.num_known
        source, now = queries.source[query], queries.time[query]
        slide_windows(known, now, events, nodes, changed)
        max_changes = num_changes + changed.number[0]
        change_column = _with_room(change_column, max_changes)
        change = _with_room(change, max_changes)
        num_changes = _write_changes(
            num_changes, column_of, events, nodes, changed, times, change_column, change
        )
        write_source(source, now, events, nodes, source_table[query])
        count_nearby(query, source, known, events, nodes, nearby)
        lane = query % NUM_LANES
        if lane == 0:
            end_of_group = min(query + NUM_LANES, num_queries)
            _choose_pairs(query, end_of_group, queries, events, nodes, lists, pairs)
            targets = pairs.target[pairs.start[query] : pairs.start[end_of_group]]
            if num_columns == num_targets:
                targets = targets[:0]  # all targets have a column
            group = queries.source[query:end_of_group]
            walk_group(group, columns, targets, known, queries.reveal, events, nodes, walks)
        if not (queries.split_by_repeat and pairs.start[query + 1] > pairs.start[query]):
            rows = moving[num_rows]
            write_walk(lane, columns, first_target, walks, rows)
            write_moving(columns, now, events, times, ranks, rows)
            write_nearby(column_of, nearby, rows)
            candidate_query[num_rows] = query
            num_rows += 1
            change_start[num_rows] = num_changes
        last = nodes.table[source, NodeColumn.LAST_INSTANCE]
        write_pairs(query, source, last, now, events, lists, pairs)
        _write_candidates(query, now, events, nodes, ranks, nearby, walks, pairs)
        if queries.reveal:
            update_ranks(known, events, nodes, ranks)
            record_events(known, known + 1, events, nodes, changed)
    num_changes = change_start[num_rows]
    num_pairs, num_neighbors = pairs.start[num_queries], pairs.neighbor_start[num_queries]
    log_columns(steady, STEADY_IS_LOGARITHM)
    log_columns(change[:num_changes], STEADY_IS_LOGARITHM)
    return (
        source_table,
        candidate_query[:num_rows],
        (
            steady,
            change_start[: num_rows + 1],
            change_column[:num_changes],
            change[:num_changes],
            moving[:num_rows],
        ),
        (pairs.neighbor_start, pairs.neighbor_target[:num_neighbors].copy()),
        (
            pairs.start,
            pairs.target[:num_pairs].copy(),
            pairs.log_weight[:num_pairs].copy(),
            pairs.inputs[:num_pairs],
        ),
    )


@kernel(**BORROWING)
def _write_candidates(
    query: int,
    now: float,
    events: Events,
    nodes: Nodes,
    ranks: RecencyRanks,
    nearby: Nearby,
    walks: Walks,
    pairs: Pairs,
) -> None:
    """Write the candidate features of the targets of a query's pairs, then all logarithms."""
    lane = query % NUM_LANES
    first, end = pairs.start[query], pairs.start[query + 1]
    for index in range(first, end):
        target, features = pairs.target[index], pairs.inputs[index, NUM_PAIR_FEATURES:]
        write_steady_of_target(target, events, nodes, pairs.steady, features)
        write_moving_of_target(target, now, events, nodes, ranks, features)
        write_nearby_of_target(query, target, nearby, features)
        write_walk_of_target(lane, target, events.first_target, walks, features)
    log_columns(pairs.inputs[first:end], PAIR_IS_LOGARITHM)


@kernel(**BORROWING)
def _choose_pairs(
    first: int,
    end: int,
    queries: Queries,
    events: Events,
    nodes: Nodes,
    lists: Lists,
    pairs: Pairs,
) -> None:
    """Choose the pairs of a group of queries; `nodes` is the state before the first of them."""
    for query in range(first, end):
        source, true_target = queries.source[query], -1
        last = nodes.table[source, NodeColumn.LAST_INSTANCE]
        if queries.reveal:
            event = queries.num_known + query
            true_target = events.node[2 * event + 1] - events.first_target
            last = _last_instance(source, last, queries.num_known + first, event, events)
        offset = queries.sample_offset[query] if len(queries.sample_offset) > 0 else -1.0
        choose_pairs(query, last, true_target, offset, events, lists, pairs)
        if queries.split_by_repeat and not has_pair(query, true_target, pairs):
            pairs.start[query + 1] = pairs.start[query]


@kernel(**INLINED)
def _last_instance(node: int, last: int, first_event: int, end_event: int, events: Events) -> int:
    """Return the last instance of a node after further events, given the last one before them."""
    for event in range(end_event - 1, first_event - 1, -1):
        if events.node[2 * event] == node:
            return 2 * event
        if events.node[2 * event + 1] == node:
            return 2 * event + 1
    return last


@kernel(**BORROWING)
def _write_changes(
    position: int,
    column_of: IntArray,
    events: Events,
    nodes: Nodes,
    changed: Changed,
    times: LastTimes,
    change_column: IntArray,
    change: Any,
) -> int:
    """Write the changed targets that have a column; return the position after the last."""
    for index in range(changed.number[0]):
        target = changed.targets[index]
        column = column_of[target]
        if column >= 0:
            change_column[position] = column
            write_steady(target, events, nodes, change[position])
            update_times(column, target, events, nodes, times)
            position += 1
    forget_changes(changed)
    return position


@kernel
def _with_room(array: Any, num_rows: int) -> Any:
    """Return the array, or a copy twice as long if it has fewer rows than this number."""
    if num_rows <= len(array):
        return array
    shape = (2 * num_rows,) + array.shape[1:]  # noqa: RUF005  # as numba supports
    longer = np.empty(shape, array.dtype)
    longer[: len(array)] = array
    return longer
