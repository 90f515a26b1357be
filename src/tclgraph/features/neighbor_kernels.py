"""The neighbors of queries, and the features of the pairs with them."""

from typing import Any, NamedTuple

import numpy as np

from tclgraph.arrays import IntArray
from tclgraph.compilation import kernel
from tclgraph.features.columns import (
    MAX_PAIRS,
    NUM_CANDIDATE_FEATURES,
    NUM_PAIR_FEATURES,
    PairColumn,
)
from tclgraph.features.latest_kernels import SAMPLED_PAIRS, list_latest, sample_rows
from tclgraph.features.log_arrays import Events, Hop, NodeColumn, Nodes, Total
from tclgraph.features.pair_kernels import count_after_latest, write_pair


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
    )


@kernel
def empty_lists(num_targets: int) -> Any:
    """Return the lists of a query without neighbors."""
    return Lists(
        np.empty(MAX_PAIRS, np.int64),
        np.full(num_targets, -1, np.int64),
        np.arange(MAX_PAIRS),
        np.empty(MAX_PAIRS, np.float32),
    )


@kernel
def list_neighbors(
    query: int,
    source: int,
    num_known: int,
    events: Events,
    nodes: Nodes,
    lists: Lists,
    pairs: Pairs,
) -> None:
    """List the latest neighbors of a query's source."""
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


@kernel
def choose_pairs(query: int, true_target: int, offset: float, lists: Lists, pairs: Pairs) -> None:
    """Choose which neighbors of a query have a pair: all, or a sample if there is an offset."""
    num_pairs = pairs.neighbor_start[query + 1] - pairs.neighbor_start[query]
    if offset >= 0.0:
        weights = pairs.log_weight[pairs.start[query] :]
        num_pairs = sample_rows(num_pairs, lists.row_of[true_target], offset, lists.row, weights)
    pairs.start[query + 1] = pairs.start[query] + num_pairs


@kernel
def write_pairs(
    query: int,
    source: int,
    now: float,
    events: Events,
    nodes: Nodes,
    lists: Lists,
    pairs: Pairs,
) -> None:
    """Write the pair features of all chosen rows of a query."""
    num_neighbors = pairs.neighbor_start[query + 1] - pairs.neighbor_start[query]
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
