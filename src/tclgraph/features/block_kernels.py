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
)
from tclgraph.features.block import (
    NUM_MOVING,
    NUM_STEADY,
    PAIR_IS_LOGARITHM,
    STEADY_FEATURES,
    STEADY_IS_LOGARITHM,
)
from tclgraph.features.columns import (
    MAX_PAIRS,
    NUM_ACTIVITY_FEATURES,
    NUM_CANDIDATE_FEATURES,
    NUM_PAIR_FEATURES,
    NUM_SOURCE_FEATURES,
    NearbyColumn,
    PairColumn,
)
from tclgraph.features.latest_kernels import SAMPLED_PAIRS, list_latest, sample_rows
from tclgraph.features.log_arrays import Events, Hop, NodeColumn, Nodes, Total
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
from tclgraph.features.pair_kernels import count_after_latest, write_pair
from tclgraph.features.source_kernels import write_source
from tclgraph.features.walk_kernels import (
    NUM_LANES,
    empty_walks,
    walk_chance,
    walk_group,
    write_walk,
)


class Pairs(NamedTuple):
    """Neighbors and pairs of the queries so far, as in `HistoryFeatures`."""

    neighbor_start: IntArray
    neighbor_target: IntArray
    start: IntArray
    target: IntArray
    log_weight: Any
    inputs: Any


class Lists(NamedTuple):
    """The neighbors of one query at a time."""

    instance: IntArray
    """[MAX_PAIRS] Latest instance with each neighbor, the latest first."""
    row_of: IntArray
    """[T] Position of each target among them, -1 if it is none of them."""
    row: IntArray
    """[MAX_PAIRS] Positions of the pairs that have features."""
    count: Any
    """[MAX_PAIRS] How often each neighbor came next after the latest one."""


@kernel
def compute_block(
    source: IntArray,
    now: FloatArray,
    columns: IntArray,
    reveal: bool,
    offset: FloatArray,
    num_known: int,
    events: Events,
    nodes: Nodes,
    ranks: RecencyRanks,
) -> Any:
    """Return the arrays of `HistoryFeatures` for a block of queries about distinct targets.

    The first query knows the first `num_known` events. With `reveal`, each query knows one event
    more than the query before. With an offset for every query, pairs are sampled (`sample_rows`)
    as training needs them. The kernel changes `nodes` and `ranks`.
    """
    num_queries, num_columns = len(source), len(columns)
    num_nodes, num_targets = len(nodes.table), len(ranks.as_target)
    source_table = np.zeros((num_queries, NUM_SOURCE_FEATURES), np.float32)
    steady = np.empty((num_columns, NUM_STEADY), np.float32)
    change_start = np.zeros(num_queries + 1, np.int64)
    change_column = np.empty(0, np.int64)
    change = np.empty((0, NUM_STEADY), np.float32)
    moving = np.empty((num_queries, NUM_MOVING, num_columns), np.float32)
    pairs = _empty_pairs(num_queries, num_targets, len(offset) > 0)

    column_of = np.full(num_targets, -1, np.int64)
    for column in range(num_columns):
        column_of[columns[column]] = column
        write_steady(columns[column], events, nodes, steady[column])
    steady_row = np.empty(NUM_STEADY, np.float32)
    times = last_times(columns, events, nodes)
    changed = no_changes(num_targets)
    nearby = empty_nearby(num_nodes, num_targets)
    walks = empty_walks(num_nodes, num_queries)
    lists = Lists(
        np.empty(MAX_PAIRS, np.int64),
        np.full(num_targets, -1, np.int64),
        np.arange(MAX_PAIRS),
        np.empty(MAX_PAIRS, np.float32),
    )
    for query in range(num_queries):
        known = num_known + query if reveal else num_known
        asking, time = source[query], now[query]
        slide_windows(known, time, events, nodes, changed)
        end = change_start[query] + changed.number[0]
        if end > len(change_column):
            change_column = _grown(change_column, 2 * end)
            change = _grown_table(change, 2 * end)
        change_start[query + 1] = _write_changes(
            change_start[query], column_of, events, nodes, changed, times, change_column, change
        )
        write_source(asking, time, events, nodes, source_table[query])
        count_nearby(query, asking, known, events, nodes, nearby)
        lane = query % NUM_LANES
        if lane == 0:
            group = source[query : query + NUM_LANES]
            walk_group(group, known, reveal, num_targets, events, nodes, walks)
        write_walk(lane, columns, events.first_target, walks, moving[query])
        write_moving(columns, time, events.first_target > 0, times, ranks, moving[query])
        write_nearby(column_of, nearby, moving[query])
        num_neighbors = _list_neighbors(query, asking, known, events, nodes, lists, pairs)
        if len(offset):
            true_row = lists.row_of[events.node[2 * known + 1] - events.first_target]
            weights = pairs.log_weight[pairs.start[query] :]
            num_pairs = sample_rows(num_neighbors, true_row, offset[query], lists.row, weights)
        else:
            num_pairs = num_neighbors
        pairs.start[query + 1] = pairs.start[query] + num_pairs
        _write_pairs(query, asking, time, num_neighbors, events, nodes, lists, pairs)
        for index in range(pairs.start[query], pairs.start[query + 1]):
            features, target = pairs.inputs[index, NUM_PAIR_FEATURES:], pairs.target[index]
            write_moving_of_target(target, time, events, nodes, ranks, features)
            chance = walk_chance(lane, events.first_target + target, walks)
            features[NUM_ACTIVITY_FEATURES + NearbyColumn.WALK] = chance
            write_nearby_of_target(query, target, nearby, features)
            write_steady(target, events, nodes, steady_row)
            for position in range(NUM_STEADY):
                features[STEADY_FEATURES[position]] = steady_row[position]
        if reveal:
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
def _empty_pairs(num_queries: int, num_targets: int, is_sampled: bool) -> Any:
    """Return arrays with room for all pairs; what is not used takes no memory."""
    most = min(MAX_PAIRS, num_targets)
    room = num_queries * (min(SAMPLED_PAIRS + 1, most) if is_sampled else most)
    return Pairs(
        np.zeros(num_queries + 1, np.int64),
        np.empty(num_queries * most, np.int64),
        np.zeros(num_queries + 1, np.int64),
        np.empty(room, np.int64),
        np.empty(room if is_sampled else 0, np.float32),
        np.empty((room, NUM_PAIR_FEATURES + NUM_CANDIDATE_FEATURES), np.float32),
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
def _list_neighbors(
    query: int,
    source: int,
    num_known: int,
    events: Events,
    nodes: Nodes,
    lists: Lists,
    pairs: Pairs,
) -> int:
    """List the latest neighbors of a source; return their number."""
    start = pairs.neighbor_start[query]
    for index in range(pairs.neighbor_start[max(query - 1, 0)], start):
        lists.row_of[pairs.neighbor_target[index]] = -1
    last = nodes.table[source, NodeColumn.LAST_INSTANCE]
    count: int = list_latest(last, num_known, events, lists.instance)
    for row in range(count):
        target = events.hops[lists.instance[row], Hop.NEIGHBOR] - events.first_target
        pairs.neighbor_target[start + row] = target
        lists.row_of[target] = row
    pairs.neighbor_start[query + 1] = start + count
    return count


@kernel
def _write_pairs(
    query: int,
    source: int,
    now: float,
    num_neighbors: int,
    events: Events,
    nodes: Nodes,
    lists: Lists,
    pairs: Pairs,
) -> None:
    """Write the pair features of all chosen rows of a query."""
    if num_neighbors == 0:
        return
    last = nodes.table[source, NodeColumn.LAST_INSTANCE]
    num_events = events.totals[last, Total.EVENTS]
    lists.count[:num_neighbors] = 0.0
    num_after = count_after_latest(source, last, lists.row_of, events, lists.count)
    start = pairs.start[query]
    for index in range(start, pairs.start[query + 1]):
        row = lists.row[index - start]
        features = pairs.inputs[index]
        write_pair(lists.instance[row], row, num_events, now, events, features)
        features[PairColumn.NEXT_AFTER_LATEST] = lists.count[row]
        features[PairColumn.NUM_AFTER_LATEST] = num_after
        pairs.target[index] = pairs.neighbor_target[pairs.neighbor_start[query] + row]


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
