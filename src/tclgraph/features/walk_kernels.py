"""The nearby feature that is the probability of a random walk.

No walk is sampled: the probabilities of all nodes after each step are computed exactly, for a group
of queries at the same time. Each query has its own *lane*, and an edge is followed once for all of
them. The edges change little from query to query: a node that gains neighbors within a group has
one more of them from some lane on.
"""

from typing import Any, NamedTuple

import numpy as np

from tclgraph.arrays import IntArray
from tclgraph.compilation import BORROWING, INLINED, kernel
from tclgraph.features.block import MOVING_FEATURES
from tclgraph.features.columns import NUM_ACTIVITY_FEATURES, NearbyColumn
from tclgraph.features.link_kernels import is_new_pair
from tclgraph.features.log_arrays import Events, NodeColumn, Nodes
from tclgraph.features.logarithm_kernels import log_all
from tclgraph.lanes import load, prefetch, store

MAX_CHOICES = (64, 64, 32)
"""Number of newest neighbors among which each step chooses; the last starts from most nodes."""
NUM_LANES = 32
"""Number of queries in a group."""
WALK_SCALE = 10.0
"""Factor of the probability, in multiples of that of a uniform choice, before the logarithm."""
_INTS_PER_CACHE_LINE = 16
_MOVING_ROW = MOVING_FEATURES.index(NUM_ACTIVITY_FEATURES + NearbyColumn.WALK)


class Probabilities(NamedTuple):
    """Probabilities of nodes in every lane. Row 0 belongs to no node and is 0."""

    value: Any
    """[rows, NUM_LANES]"""
    node: IntArray
    """[rows] Node that each row belongs to."""
    row_of: IntArray
    """[N] Row of each node, or 0 if it has none."""
    num_rows: IntArray
    """[1] Number of rows in use."""


class Walks(NamedTuple):
    """Probabilities for a group of queries, and the edges that change within the group."""

    result: Probabilities
    """Probabilities after the last step, in the scale of the feature."""
    scratch: Probabilities
    """Work memory for the steps before."""
    is_from: Any
    """[NUM_LANES + 1, NUM_LANES] Entry (k, lane) is 1 if lane >= k, else 0."""
    gain_lane: IntArray
    """[rows, NUM_LANES] Lanes from which on a node has one neighbor more."""
    num_gains: IntArray
    """[rows] Number of such lanes."""
    gaining: IntArray
    """[rows] Node that each row belongs to. Row 0 belongs to no node."""
    gains_of: IntArray
    """[N] Row of each node in these arrays, or 0 if it gains no neighbor."""
    num_gaining: IntArray
    """[1] Number of rows in use."""
    after_rows: IntArray
    """[choices of the last step + 1] Work memory for it."""


@kernel
def empty_walks(num_nodes: int) -> Any:
    """Return arrays for groups of queries."""
    is_from = np.zeros((NUM_LANES + 1, NUM_LANES), np.float32)
    for first in range(NUM_LANES):
        is_from[first, first:] = 1.0
    return Walks(
        _empty_probabilities(num_nodes),
        _empty_probabilities(num_nodes),
        is_from,
        np.empty((2 * NUM_LANES + 1, NUM_LANES), np.int64),
        np.zeros(2 * NUM_LANES + 1, np.int64),
        np.empty(2 * NUM_LANES + 1, np.int64),
        np.zeros(num_nodes, np.int32),
        np.ones(1, np.int64),
        np.empty(MAX_CHOICES[2] + 1, np.int32),
    )


@kernel
def _empty_probabilities(num_nodes: int) -> Any:
    return Probabilities(
        np.zeros((num_nodes + 1, NUM_LANES), np.float32),
        np.empty(num_nodes + 1, np.int32),
        np.zeros(num_nodes, np.int32),
        np.ones(1, np.int64),
    )


@kernel(**BORROWING)
def walk_group(
    source: IntArray,
    columns: IntArray,
    pair_targets: IntArray,
    num_known: int,
    reveal: bool,
    events: Events,
    nodes: Nodes,
    walks: Walks,
) -> None:
    """Compute the walk feature of up to NUM_LANES queries for the given targets.

    The features are in `Walks.result` afterwards, before the logarithm. The first query knows the
    first `num_known` events, as `nodes` does. With `reveal`, each query knows one event more than
    the query before.
    """
    if reveal:
        for lane in range(1, len(source)):
            _note_gains(num_known + lane - 1, lane, events, walks)
    result, scratch, first_target = walks.result, walks.scratch, events.first_target
    _forget(scratch)
    for lane in range(len(source)):
        scratch.value[_row_of(source[lane], scratch), lane] = WALK_SCALE * events.num_choices
    _forget(result)
    _step(MAX_CHOICES[0], scratch, result, events, nodes, walks)
    _forget(scratch)
    _step(MAX_CHOICES[1], result, scratch, events, nodes, walks)
    _forget(result)
    for targets in (columns, pair_targets):
        for target in targets:
            _row_of(first_target + target, result)
    _last_step(MAX_CHOICES[2], scratch, result, events, nodes, walks)
    for row in range(1, walks.num_gaining[0]):
        walks.gains_of[walks.gaining[row]] = 0
    walks.num_gaining[0] = 1


@kernel(**BORROWING)
def _note_gains(event: int, lane: int, events: Events, walks: Walks) -> None:
    """Note that the nodes of a new pair have one neighbor more from a lane on."""
    if not is_new_pair(event, events):
        return
    for instance in (2 * event, 2 * event + 1):
        node = events.node[instance]
        row = np.int64(walks.gains_of[node])
        if row == 0:
            row = walks.num_gaining[0]
            walks.num_gaining[0] += 1
            walks.gains_of[node] = row
            walks.gaining[row] = node
            walks.num_gains[row] = 0
        walks.gain_lane[row, walks.num_gains[row]] = lane
        walks.num_gains[row] += 1


@kernel(**BORROWING)
def _step(
    most: int,
    before: Probabilities,
    after: Probabilities,
    events: Events,
    nodes: Nodes,
    walks: Walks,
) -> None:
    """Compute the probabilities after a step with at most so many choices."""
    neighbors, value, row_of = events.neighbors, after.value, after.row_of
    num_rows = after.num_rows[0]
    for row in range(1, before.num_rows[0]):
        _prefetch_next_rows(row, most, before, events, nodes)
        for gain in range(_num_gains(before.node[row], walks) + 1):
            first, end = _choices(before.node[row], gain, most, events, nodes)
            share = _share(row, gain, before, walks) * np.float32(1.0 / max(end - first, 1))
            for choice in range(first, end):
                reached = neighbors[choice]
                after_row = np.int64(row_of[reached])
                if after_row > 0:
                    store(value, after_row, 0, load(value, after_row, 0, NUM_LANES) + share)
                else:
                    row_of[reached] = num_rows
                    after.node[num_rows] = reached
                    store(value, num_rows, 0, share)
                    num_rows += 1
    after.num_rows[0] = num_rows


@kernel(**BORROWING)
def _last_step(
    most: int,
    before: Probabilities,
    after: Probabilities,
    events: Events,
    nodes: Nodes,
    walks: Walks,
) -> None:
    """Compute the same for the last step, but only for nodes that have a row already."""
    value, row_of, after_rows = after.value, after.row_of, walks.after_rows
    for row in range(1, before.num_rows[0]):
        _prefetch_next_rows(row, most, before, events, nodes)
        for gain in range(_num_gains(before.node[row], walks) + 1):
            first, end = _choices(before.node[row], gain, most, events, nodes)
            share = _share(row, gain, before, walks) * np.float32(1.0 / max(end - first, 1))
            num_after = 0
            for choice in range(first, end):
                # Without a branch, because the processor cannot guess which nodes have a row.
                after_row = row_of[events.neighbors[choice]]
                after_rows[num_after] = after_row
                num_after += after_row > 0
            for index in range(num_after):
                after_row = np.int64(after_rows[index])
                store(value, after_row, 0, load(value, after_row, 0, NUM_LANES) + share)


@kernel(**INLINED)
def _num_gains(node: int, walks: Walks) -> int:
    """Return how many neighbors a node gains within the group."""
    gains = np.int64(walks.gains_of[node])
    number: int = walks.num_gains[gains] if gains > 0 else 0
    return number


@kernel(**INLINED)
def _choices(node: int, gain: int, most: int, events: Events, nodes: Nodes) -> Any:
    """Return the first and the end of at most so many choices of a node after some gains."""
    start = events.neighbor_start[node]
    end = start + nodes.table[node, NodeColumn.NUM_NEIGHBORS] + gain
    return max(start, end - most), end


@kernel(**INLINED)
def _share(row: int, gain: int, before: Probabilities, walks: Walks) -> Any:
    """Return a row's probabilities in the lanes in which its node has gained `gain` neighbors.

    In the other lanes the result is 0.
    """
    share = load(before.value, row, 0, NUM_LANES)
    gains = np.int64(walks.gains_of[before.node[row]])
    if gains == 0:
        return share
    first = walks.gain_lane[gains, gain - 1] if gain > 0 else np.int64(0)
    end = walks.gain_lane[gains, gain] if gain < walks.num_gains[gains] else np.int64(NUM_LANES)
    is_from = load(walks.is_from, first, 0, NUM_LANES)
    return share * (is_from - load(walks.is_from, end, 0, NUM_LANES))


@kernel(**INLINED)
def _prefetch_next_rows(
    row: int, most: int, before: Probabilities, events: Events, nodes: Nodes
) -> None:
    """Prefetch what the next rows need, because a long log does not fit in cache.

    Neighbors are prefetched four rows ahead. The numbers that say where they are must be in the
    cache by then, so these are prefetched twelve rows ahead.
    """
    last = before.num_rows[0] - 1
    node = before.node[min(row + 4, last)]
    first, end = _choices(node, 0, most, events, nodes)
    for choice in range(first, end, _INTS_PER_CACHE_LINE):
        prefetch(events.neighbors, choice)
    later = before.node[min(row + 12, last)]
    prefetch(nodes.table, later)
    prefetch(events.neighbor_start, later)


@kernel(**BORROWING)
def _forget(probabilities: Probabilities) -> None:
    for row in range(1, probabilities.num_rows[0]):
        probabilities.row_of[probabilities.node[row]] = 0
    probabilities.num_rows[0] = 1


@kernel(**INLINED)
def _row_of(node: int, probabilities: Probabilities) -> Any:
    """Return the row of a node; a new one is 0."""
    row = np.int64(probabilities.row_of[node])
    if row == 0:
        row = probabilities.num_rows[0]
        probabilities.num_rows[0] += 1
        probabilities.row_of[node] = row
        probabilities.node[row] = node
        probabilities.value[row] = 0.0
    return row


@kernel(**BORROWING)
def write_walk(lane: int, columns: IntArray, first_target: int, walks: Walks, rows: Any) -> None:
    """Write the walk feature of all columns to the moving features of a query."""
    feature, value, row_of = rows[_MOVING_ROW], walks.result.value, walks.result.row_of
    for column in range(len(columns)):
        feature[column] = value[row_of[first_target + columns[column]], lane]
    log_all(feature)


@kernel(**INLINED)
def write_walk_of_target(
    lane: int, target: int, first_target: int, walks: Walks, features: Any
) -> None:
    """Write the walk feature of a target to its candidate features, before the logarithm."""
    row = walks.result.row_of[first_target + target]
    features[NUM_ACTIVITY_FEATURES + NearbyColumn.WALK] = walks.result.value[row, lane]
