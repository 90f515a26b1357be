"""The neighbors of queries, and the features of the pairs with them."""

from typing import Any, NamedTuple

import numpy as np

from tclgraph.arrays import IntArray
from tclgraph.compilation import BORROWING, kernel
from tclgraph.features.block import NUM_STEADY
from tclgraph.features.columns import (
    MAX_PAIRS,
    NUM_AFTER_FEATURES,
    NUM_CANDIDATE_FEATURES,
    NUM_PAIR_FEATURES,
    PairColumn,
)
from tclgraph.features.latest_kernels import (
    SAMPLED_PAIRS,
    first_counted,
    list_latest,
    sample_rows,
)
from tclgraph.features.log_arrays import NUM_LATEST, Events, Latest, Total
from tclgraph.features.pair_kernels import count_after_latest, write_pair
from tclgraph.features.walk_kernels import NUM_LANES
from tclgraph.lanes import prefetch


class Pairs(NamedTuple):
    """Neighbors and pairs of the queries so far, as in `HistoryFeatures`."""

    neighbor_start: IntArray
    neighbor_target: IntArray
    start: IntArray
    target: IntArray
    log_weight: Any
    inputs: Any
    steady: Any
    """[NUM_STEADY] Work memory: steady features of one target."""


class Lists(NamedTuple):
    """The neighbors of a group of queries, each in its own lane."""

    latest: IntArray
    """[NUM_LANES, MAX_PAIRS, Latest] The latest neighbors."""
    row: IntArray
    """[NUM_LANES, MAX_PAIRS] Positions among them of the pairs that have features."""
    row_of: IntArray
    """[T] Work memory: row of each target in the current list; -1 between calls."""
    count: Any
    """[MAX_PAIRS, NUM_AFTER_FEATURES] How often each neighbor came next after the latest ones."""


@kernel
def empty_pairs(num_queries: int, num_targets: int, is_sampled: bool) -> Any:
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
        np.empty(NUM_STEADY, np.float32),
    )


@kernel
def empty_lists(num_targets: int) -> Any:
    """Return the lists of a group of queries without neighbors."""
    row = np.empty((NUM_LANES, MAX_PAIRS), np.int64)
    row[:] = np.arange(MAX_PAIRS)
    return Lists(
        np.empty((NUM_LANES, MAX_PAIRS, NUM_LATEST), np.int32),
        row,
        np.full(num_targets, -1, np.int64),
        np.empty((MAX_PAIRS, NUM_AFTER_FEATURES), np.float32),
    )


@kernel(**BORROWING)
def choose_pairs(
    query: int,
    last: int,
    true_target: int,
    offset: float,
    events: Events,
    lists: Lists,
    pairs: Pairs,
) -> None:
    """List the latest neighbors of a query's source, given its last instance, and choose pairs.

    All neighbors have a pair, or a sample of them if there is an offset.
    """
    lane, neighbor_start, start = query % NUM_LANES, pairs.neighbor_start[query], pairs.start[query]
    latest, row_of = lists.latest[lane], lists.row_of
    count: int = list_latest(last, events, row_of, latest)
    pairs.neighbor_start[query + 1] = neighbor_start + count
    num_chosen = count
    if offset >= 0.0:
        weights = pairs.log_weight[start:]
        num_chosen = sample_rows(count, row_of[true_target], offset, lists.row[lane], weights)
    for row in range(count):
        target = latest[row, Latest.TARGET]
        pairs.neighbor_target[neighbor_start + row] = target
        row_of[target] = -1
    for index in range(num_chosen):
        pairs.target[start + index] = latest[lists.row[lane, index], Latest.TARGET]
    pairs.start[query + 1] = start + num_chosen


@kernel(**BORROWING)
def has_pair(query: int, target: int, pairs: Pairs) -> bool:
    """Return whether a query has a pair with a target."""
    for index in range(pairs.start[query], pairs.start[query + 1]):
        if pairs.target[index] == target:
            return True
    return False


@kernel(**BORROWING)
def write_pairs(
    query: int, source: int, last: int, now: float, events: Events, lists: Lists, pairs: Pairs
) -> None:
    """Write the pair features of all chosen rows of a query, given the source's last instance."""
    lane = query % NUM_LANES
    start, num_chosen = pairs.start[query], pairs.start[query + 1] - pairs.start[query]
    if num_chosen == 0:
        return
    rows, latest_of_lane = lists.row[lane, :num_chosen], lists.latest[lane]
    _prefetch_pairs(rows, latest_of_lane, events)
    num_after = _count_after_latest(source, last, rows, latest_of_lane, events, lists)
    oldest = events.totals[last, Total.OLDEST] >> 1
    for index in range(num_chosen):
        row = rows[index]
        latest, features = latest_of_lane[row], pairs.inputs[start + index]
        instance, listed = latest[Latest.INSTANCE], latest[Latest.FIRST_COUNTED]
        first = first_counted(instance >> 1, listed, oldest, events)
        write_pair(instance, row, first, last, now, events, features)
        features[PairColumn.NUM_AFTER_LATEST] = num_after
        for column in range(NUM_AFTER_FEATURES):
            features[PairColumn.NEXT_AFTER_LATEST + column] = lists.count[row, column]


@kernel(**BORROWING)
def _count_after_latest(
    source: int, last: int, rows: IntArray, latest: IntArray, events: Events, lists: Lists
) -> Any:
    """Write `Lists.count` of these rows.

    Return how often another event followed one with the latest neighbor.
    """
    for row in rows:
        lists.count[row, :] = 0.0
        lists.row_of[latest[row, Latest.TARGET]] = row
    num_after = count_after_latest(source, last, lists.row_of, events, lists.count)
    for row in rows:
        lists.row_of[latest[row, Latest.TARGET]] = -1
    return num_after


@kernel(**BORROWING)
def _prefetch_pairs(rows: IntArray, latest: IntArray, events: Events) -> None:
    """Prefetch the links of the chosen pairs, so that cache misses overlap."""
    for row in rows:
        prefetch(events.pairs, latest[row, Latest.INSTANCE] >> 1)
        if latest[row, Latest.FIRST_COUNTED] >= 0:
            prefetch(events.pairs, latest[row, Latest.FIRST_COUNTED])
