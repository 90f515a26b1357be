"""The loop over a block of queries, which calls the kernels of every group of features."""

from typing import Any

import numpy as np

from tclgraph.arrays import FloatArray, IntArray
from tclgraph.compilation import kernel
from tclgraph.features.activity_kernels import (
    recency_ranks,
    record_events,
    update_ranks,
    write_activity,
)
from tclgraph.features.columns import (
    NUM_ACTIVITY_FEATURES,
    NUM_CANDIDATE_FEATURES,
    NUM_PAIR_FEATURES,
    NUM_SOURCE_FEATURES,
    NearbyColumn,
)
from tclgraph.features.nearby_kernels import (
    clear_nearby,
    count_nearby,
    nearby_workspace,
    write_nearby,
)
from tclgraph.features.pair_kernels import pair_workspace
from tclgraph.features.source_kernels import MAX_EVENTS, write_source
from tclgraph.features.state_arrays import Activity, Events, Neighbors
from tclgraph.features.walk_kernels import forget_choices, walk_workspace, write_walk
from tclgraph.features.window_kernels import slide_windows

PAIRS_PER_QUERY = 64
"""Number of pairs per query for which memory is reserved at first."""


@kernel
def compute_block(
    source: IntArray,
    now: FloatArray,
    columns: IntArray,
    reveal: bool,
    num_known: int,
    events: Events,
    activity: Activity,
    neighbors: Neighbors,
) -> Any:
    """Return the arrays of `HistoryFeatures`, in its order, for a block of queries.

    The first query knows the first `num_known` events. With `reveal`, each query knows one event
    more than the query before. The kernel changes `activity` and `neighbors`.
    """
    num_queries, num_targets = len(source), len(activity.num_as_target)
    num_nodes = len(activity.last_instance)
    source_table = np.zeros((num_queries, NUM_SOURCE_FEATURES), np.float32)
    table = np.zeros((num_queries, NUM_CANDIDATE_FEATURES, len(columns)), np.float32)
    pair_start = np.zeros(num_queries + 1, np.int64)
    room = PAIRS_PER_QUERY * num_queries
    pair_target = np.empty(room, np.int64)
    pair_table = np.empty((room, NUM_PAIR_FEATURES), np.float32)
    pair_candidate = np.zeros((room, NUM_CANDIDATE_FEATURES), np.float32)

    ranks = recency_ranks(events, activity)
    log_count = _log_counts(num_queries, activity, neighbors)
    pairs = pair_workspace(num_targets, MAX_EVENTS)
    nearby = nearby_workspace(num_nodes, num_targets)
    walks = walk_workspace(num_nodes)
    num_rows = 1
    for query in range(num_queries):
        known = num_known + query if reveal else num_known
        asking, time = source[query], now[query]
        slide_windows(known, time, events, activity)
        last_instance = activity.last_instance
        num_pairs = write_source(last_instance[asking], time, events, pairs, source_table[query])
        num_reached = count_nearby(query, asking, known, events, last_instance, nearby)
        walk_feature = nearby.features[NearbyColumn.WALK]
        num_rows = write_walk(asking, events, neighbors, walks, num_rows, walk_feature)

        start = pair_start[query]
        end = start + num_pairs
        pair_start[query + 1] = end
        if end > len(pair_target):
            pair_target = _grown(pair_target, start, 2 * end)
            pair_table = _grown_table(pair_table, start, 2 * end)
            pair_candidate = _grown_table(pair_candidate, start, 2 * end)
        neighbor = pairs.target[:num_pairs]
        pair_target[start:end] = neighbor
        pair_table[start:end] = pairs.features[:num_pairs]
        of_pairs, of_query = pair_candidate[start:end].T, table[query]
        write_activity(neighbor, time, events, activity, neighbors, ranks, log_count, of_pairs)
        write_nearby(neighbor, nearby, NUM_ACTIVITY_FEATURES, of_pairs)
        write_activity(columns, time, events, activity, neighbors, ranks, log_count, of_query)
        write_nearby(columns, nearby, NUM_ACTIVITY_FEATURES, of_query)
        clear_nearby(num_reached, nearby)

        if reveal:
            forget_choices(known, events, walks)
            update_ranks(known, events, activity, ranks)
            record_events(known, known + 1, events, activity, neighbors)
    num_pairs = pair_start[num_queries]
    return (
        source_table,
        table,
        pair_start,
        pair_target[:num_pairs].copy(),
        pair_table[:num_pairs].copy(),
        pair_candidate[:num_pairs].copy(),
    )


@kernel
def _log_counts(num_queries: int, activity: Activity, neighbors: Neighbors) -> Any:
    """Return log(1 + n) for every number n that can occur in a block."""
    most = max(
        activity.num_as_target.max(),
        activity.in_window.max(),
        neighbors.num_neighbors.max(),
        len(activity.num_as_target),
    )
    return np.log1p(np.arange(most + num_queries + 1)).astype(np.float32)


@kernel
def _grown(array: Any, used: int, room: int) -> Any:
    larger = np.empty(room, array.dtype)
    larger[:used] = array[:used]
    return larger


@kernel
def _grown_table(array: Any, used: int, room: int) -> Any:
    larger = np.zeros((room, array.shape[1]), array.dtype)
    larger[:used] = array[:used]
    return larger
