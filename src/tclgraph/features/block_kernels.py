"""The loop over a block of queries, which calls the kernels of every group of features."""

from typing import Any, NamedTuple

import numpy as np

from tclgraph.arrays import FloatArray, IntArray
from tclgraph.compilation import kernel
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
from tclgraph.features.log_arrays import Events, Nodes
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
    count_nearby,
    empty_nearby,
    write_nearby,
    write_nearby_of_target,
)
from tclgraph.features.neighbor_kernels import (
    choose_pairs,
    empty_lists,
    empty_pairs,
    list_neighbors,
    write_pairs,
)
from tclgraph.features.source_kernels import write_source
from tclgraph.features.walk_kernels import (
    NUM_LANES,
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
    sample_at: FloatArray
    """Offset of every query with which `sample_rows` samples pairs; empty if all pairs count."""
    num_known: int
    """Number of events that the first query knows."""
    reveal: bool
    """Whether each query knows one event more than the query before."""


@kernel
def compute_block(queries: Queries, events: Events, nodes: Nodes, ranks: RecencyRanks) -> Any:
    """Return the arrays of `HistoryFeatures`; the kernel changes `nodes` and `ranks`."""
    columns, first_target = queries.columns, events.first_target
    num_queries, num_columns = len(queries.source), len(columns)
    num_nodes, num_targets = len(nodes.table), len(ranks.as_target)
    is_sampled = len(queries.sample_at) > 0
    source_table = np.zeros((num_queries, NUM_SOURCE_FEATURES), np.float32)
    steady = np.empty((num_columns, NUM_STEADY), np.float32)
    change_start = np.zeros(num_queries + 1, np.int64)
    change_column = np.empty(0, np.int64)
    change = np.empty((0, NUM_STEADY), np.float32)
    moving = np.empty((num_queries, NUM_MOVING, num_columns), np.float32)
    pairs = empty_pairs(num_queries, num_targets, is_sampled)
    lists = empty_lists(num_targets)
    steady_row = np.empty(NUM_STEADY, np.float32)

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
        end = change_start[query] + changed.number[0]
        if end > len(change_column):
            change_column = _grown(change_column, 2 * end)
            change = _grown_table(change, 2 * end)
        change_start[query + 1] = _write_changes(
            change_start[query], column_of, events, nodes, changed, times, change_column, change
        )
        write_source(source, now, events, nodes, source_table[query])
        count_nearby(query, source, known, events, nodes, nearby)
        lane = query % NUM_LANES
        if lane == 0:
            group = queries.source[query : query + NUM_LANES]
            walk_group(group, known, queries.reveal, num_targets, events, nodes, walks)
        write_walk(lane, columns, first_target, walks, moving[query])
        write_moving(columns, now, first_target > 0, times, ranks, moving[query])
        write_nearby(column_of, nearby, moving[query])
        list_neighbors(query, source, known, events, nodes, lists, pairs)
        offset = queries.sample_at[query] if is_sampled else -1.0
        true_target = events.node[2 * known + 1] - first_target if is_sampled else -1
        choose_pairs(query, true_target, offset, lists, pairs)
        write_pairs(query, source, now, events, nodes, lists, pairs)
        for index in range(pairs.start[query], pairs.start[query + 1]):
            target, features = pairs.target[index], pairs.inputs[index, NUM_PAIR_FEATURES:]
            write_steady_of_target(target, events, nodes, steady_row, features)
            write_moving_of_target(target, now, events, nodes, ranks, features)
            write_nearby_of_target(query, target, nearby, features)
            write_walk_of_target(lane, target, first_target, walks, features)
        if queries.reveal:
            update_ranks(known, events, nodes, ranks)
            record_events(known, known + 1, events, nodes, changed)
    num_changes, num_pairs = change_start[num_queries], pairs.start[num_queries]
    num_neighbors = pairs.neighbor_start[num_queries]
    log_columns(steady, STEADY_IS_LOGARITHM)
    log_columns(change[:num_changes], STEADY_IS_LOGARITHM)
    log_columns(pairs.inputs[:num_pairs], PAIR_IS_LOGARITHM)
    return (
        source_table,
        (steady, change_start, change_column[:num_changes], change[:num_changes], moving),
        (pairs.neighbor_start, pairs.neighbor_target[:num_neighbors].copy()),
        (
            pairs.start,
            pairs.target[:num_pairs].copy(),
            pairs.log_weight[:num_pairs].copy(),
            pairs.inputs[:num_pairs].copy(),
        ),
    )


@kernel
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
def _grown(array: Any, room: int) -> Any:
    larger = np.empty(room, array.dtype)
    larger[: len(array)] = array
    return larger


@kernel
def _grown_table(array: Any, room: int) -> Any:
    larger = np.empty((room, array.shape[1]), array.dtype)
    larger[: len(array)] = array
    return larger
