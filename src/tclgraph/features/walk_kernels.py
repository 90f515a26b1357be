"""The nearby feature that a random walk over neighbors gives.

The walks of several queries are taken at the same time, each in its own *lane*: an edge is followed
once for all of them. The edges change little from query to query: a node that gains neighbors
within a group of queries has one more of them from some lane on.
"""

from typing import Any, NamedTuple

import numpy as np

from tclgraph.arrays import IntArray
from tclgraph.compilation import kernel
from tclgraph.features.block import MOVING_FEATURES
from tclgraph.features.columns import NUM_ACTIVITY_FEATURES, NearbyColumn
from tclgraph.features.link_kernels import is_new_pair
from tclgraph.features.log_arrays import Events, NodeColumn, Nodes
from tclgraph.features.logarithm_kernels import log_all
from tclgraph.lanes import load, store

MAX_CHOICES = 64
"""Number of newest neighbors among which each step chooses."""
NUM_LANES = 16
"""Number of queries in a group."""
WALK_SCALE = 10.0
"""Factor of the probability, in multiples of that of a uniform choice, before the logarithm."""
_MOVING_ROW = MOVING_FEATURES.index(NUM_ACTIVITY_FEATURES + NearbyColumn.WALK)


class Chances(NamedTuple):
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
    """The walks of a group of queries."""

    here: Chances
    there: Chances
    is_from: Any
    """[NUM_LANES + 1, NUM_LANES] Entry (k, lane) is 1 from lane k on, else 0."""
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


@kernel
def empty_walks(num_nodes: int) -> Any:
    """Return arrays for groups of queries."""
    is_from = np.zeros((NUM_LANES + 1, NUM_LANES), np.float32)
    for first in range(NUM_LANES):
        is_from[first, first:] = 1.0
    return Walks(
        _empty_chances(num_nodes),
        _empty_chances(num_nodes),
        is_from,
        np.empty((2 * NUM_LANES + 1, NUM_LANES), np.int64),
        np.zeros(2 * NUM_LANES + 1, np.int64),
        np.empty(2 * NUM_LANES + 1, np.int64),
        np.zeros(num_nodes, np.int32),
        np.ones(1, np.int64),
    )


@kernel
def _empty_chances(num_nodes: int) -> Any:
    return Chances(
        np.zeros((num_nodes + 1, NUM_LANES), np.float32),
        np.empty(num_nodes + 1, np.int32),
        np.zeros(num_nodes, np.int32),
        np.ones(1, np.int64),
    )


@kernel
def walk_group(
    source: IntArray,
    num_known: int,
    reveal: bool,
    num_targets: int,
    events: Events,
    nodes: Nodes,
    walks: Walks,
) -> None:
    """Take the walks of at most NUM_LANES queries; the features are in `Walks.here` then.

    The first query knows the first `num_known` events, as `nodes` does. With `reveal`, each query
    knows one event more than the query before.
    """
    if reveal:
        for lane in range(1, len(source)):
            _note_gains(num_known + lane - 1, lane, events, walks)
    _forget(walks.there)
    for lane in range(len(source)):
        walks.there.value[_row_of(source[lane], walks.there), lane] = WALK_SCALE * num_targets
    _step(walks.there, walks.here, events, nodes, walks)
    _step(walks.here, walks.there, events, nodes, walks)
    _step(walks.there, walks.here, events, nodes, walks)
    for row in range(1, walks.num_gaining[0]):
        walks.gains_of[walks.gaining[row]] = 0
    walks.num_gaining[0] = 1


@kernel
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


@kernel
def _step(before: Chances, after: Chances, events: Events, nodes: Nodes, walks: Walks) -> None:
    """Take a step of all walks."""
    neighbors, value, row_of = events.neighbors, after.value, after.row_of
    _forget(after)
    num_rows = 1
    for row in range(1, before.num_rows[0]):
        node = before.node[row]
        start = events.neighbor_start[node]
        gains = np.int64(walks.gains_of[node])
        num_gains = walks.num_gains[gains] if gains > 0 else 0
        end = start + nodes.table[node, NodeColumn.NUM_NEIGHBORS]
        first_lane = np.int64(0)
        for gain in range(num_gains + 1):
            share = load(before.value, row, 0, NUM_LANES)
            end_lane = walks.gain_lane[gains, gain] if gain < num_gains else np.int64(NUM_LANES)
            if num_gains > 0:
                is_from = load(walks.is_from, first_lane, 0, NUM_LANES)
                share = share * (is_from - load(walks.is_from, end_lane, 0, NUM_LANES))
            first_choice = max(start, end - MAX_CHOICES)
            share = share * np.float32(1.0 / max(end - first_choice, 1))
            for choice in range(first_choice, end):
                reached = neighbors[choice]
                place = np.int64(row_of[reached])
                if place > 0:
                    store(value, place, 0, load(value, place, 0, NUM_LANES) + share)
                else:
                    row_of[reached] = num_rows
                    after.node[num_rows] = reached
                    store(value, num_rows, 0, share)
                    num_rows += 1
            first_lane = end_lane
            end += 1
    after.num_rows[0] = num_rows


@kernel
def _forget(chances: Chances) -> None:
    for row in range(1, chances.num_rows[0]):
        chances.row_of[chances.node[row]] = 0
    chances.num_rows[0] = 1


@kernel
def _row_of(node: int, chances: Chances) -> Any:
    """Return the row of a node; a new one is 0."""
    row = np.int64(chances.row_of[node])
    if row == 0:
        row = chances.num_rows[0]
        chances.num_rows[0] += 1
        chances.row_of[node] = row
        chances.node[row] = node
        chances.value[row] = 0.0
    return row


@kernel
def write_walk(lane: int, columns: IntArray, first_target: int, walks: Walks, rows: Any) -> None:
    """Write the walk feature of all columns to the moving features of a query."""
    feature, value, row_of = rows[_MOVING_ROW], walks.here.value, walks.here.row_of
    for column in range(len(columns)):
        feature[column] = value[row_of[first_target + columns[column]], lane]
    log_all(feature)


@kernel
def write_walk_of_target(
    lane: int, target: int, first_target: int, walks: Walks, features: Any
) -> None:
    """Write the walk feature of a target to its candidate features, before the logarithm."""
    row = walks.here.row_of[first_target + target]
    features[NUM_ACTIVITY_FEATURES + NearbyColumn.WALK] = walks.here.value[row, lane]
