"""The nearby feature that a random walk over neighbors gives.

The walks of several queries are taken at the same time, each in its own *lane*: an edge is followed
once for all of them. The edges change little from query to query. A node that gains a neighbor
within a group of queries has several *versions* of its choices, each for some of the lanes.
"""

from typing import Any, NamedTuple

import numpy as np

from tclgraph.arrays import IntArray
from tclgraph.compilation import kernel
from tclgraph.features.block import MOVING_FEATURES
from tclgraph.features.columns import NUM_ACTIVITY_FEATURES, NearbyColumn
from tclgraph.features.log_arrays import NOT_NEW, Events, Hop, NodeColumn, Nodes
from tclgraph.features.logarithm_kernels import log_all
from tclgraph.lanes import load, store

MAX_CHOICES = 64
"""Number of newest neighbors among which each step chooses."""
NUM_LANES = 16
"""Number of queries in a group."""
WALK_SCALE = 10.0
"""Factor of the probability, in multiples of that of a uniform choice, before the logarithm."""
_MOVING_ROW = MOVING_FEATURES.index(NUM_ACTIVITY_FEATURES + NearbyColumn.WALK)
# Columns of a row of choices: their number, the first lane they are for, the row with the version
# for the lanes before, and the choices.
_COUNT, _FIRST_LANE, _EARLIER, _FIRST_CHOICE = range(4)


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
    """Choices at nodes that walks have passed, and the walks of a group of queries.

    Choices are copied from the linked lists once, so that later walks read them from adjacent
    memory. Arrays have rows for all nodes, but those that are not used take no memory.
    """

    choices: IntArray
    """[rows, _FIRST_CHOICE + MAX_CHOICES] Newest neighbors of a node. Row 0 belongs to no node."""
    row_of: IntArray
    """[N] Row with the latest version of each node, or 0 if it has none."""
    changed: IntArray
    """[2 · NUM_LANES] Nodes with several versions, as many as `sizes` says."""
    sizes: IntArray
    """[2] Number of rows of `choices` in use, and of changed nodes."""
    is_from: Any
    """[NUM_LANES + 1, NUM_LANES] Entry (k, lane) is 1 from lane k on, else 0."""
    here: Chances
    there: Chances


_ROWS, _CHANGED = range(2)


@kernel
def empty_walks(num_nodes: int, num_queries: int) -> Any:
    """Return arrays for this number of queries, without stored choices."""
    is_from = np.zeros((NUM_LANES + 1, NUM_LANES), np.float32)
    for first in range(NUM_LANES):
        is_from[first, first:] = 1.0
    return Walks(
        np.empty((num_nodes + 2 * num_queries + 1, _FIRST_CHOICE + MAX_CHOICES), np.int32),
        np.zeros(num_nodes, np.int32),
        np.empty(2 * NUM_LANES, np.int32),
        np.array([1, 0]),
        is_from,
        _empty_chances(num_nodes),
        _empty_chances(num_nodes),
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
        for lane in range(len(source) - 1):
            _reveal(num_known + lane, lane + 1, events, nodes, walks)
    _forget(walks.there)
    for lane in range(len(source)):
        walks.there.value[_row_of(source[lane], walks.there), lane] = WALK_SCALE * num_targets
    _step(walks.there, walks.here, events, nodes, walks)
    _step(walks.here, walks.there, events, nodes, walks)
    _step(walks.there, walks.here, events, nodes, walks)
    for index in range(walks.sizes[_CHANGED]):
        row = walks.row_of[walks.changed[index]]
        walks.choices[row, _FIRST_LANE] = 0
        walks.choices[row, _EARLIER] = 0
    walks.sizes[_CHANGED] = 0
    if reveal:
        _reveal(num_known + len(source) - 1, 0, events, nodes, walks)


@kernel
def _step(before: Chances, after: Chances, events: Events, nodes: Nodes, walks: Walks) -> None:
    """Take a step of all walks."""
    choices, value, row_of = walks.choices, after.value, after.row_of
    _forget(after)
    num_rows = 1
    for row in range(1, before.num_rows[0]):
        node = before.node[row]
        if walks.row_of[node] == 0:
            _store_choices(node, events, nodes, walks)
        version = np.int64(walks.row_of[node])
        end_lane = np.int64(NUM_LANES)
        while version > 0:
            count = max(choices[version, _COUNT], 1)
            share = load(before.value, row, 0, NUM_LANES) * np.float32(1.0 / count)
            first_lane = np.int64(choices[version, _FIRST_LANE])
            if first_lane > 0 or end_lane < NUM_LANES:
                is_from = load(walks.is_from, first_lane, 0, NUM_LANES)
                share = share * (is_from - load(walks.is_from, end_lane, 0, NUM_LANES))
            for choice in range(_FIRST_CHOICE, _FIRST_CHOICE + choices[version, _COUNT]):
                reached = choices[version, choice]
                place = np.int64(row_of[reached])
                if place > 0:
                    store(value, place, 0, load(value, place, 0, NUM_LANES) + share)
                else:
                    row_of[reached] = num_rows
                    after.node[num_rows] = reached
                    store(value, num_rows, 0, share)
                    num_rows += 1
            end_lane = first_lane
            version = np.int64(choices[version, _EARLIER])
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
def _store_choices(node: int, events: Events, nodes: Nodes, walks: Walks) -> None:
    """Copy the newest neighbors of a node before the group to a row."""
    choices = walks.choices[walks.sizes[_ROWS]]
    walks.row_of[node] = walks.sizes[_ROWS]
    walks.sizes[_ROWS] += 1
    choices[_COUNT] = min(nodes.table[node, NodeColumn.NUM_NEIGHBORS], MAX_CHOICES)
    choices[_FIRST_LANE] = 0
    choices[_EARLIER] = 0
    instance = nodes.table[node, NodeColumn.NEWEST_NEIGHBOR]
    for choice in range(_FIRST_CHOICE, _FIRST_CHOICE + choices[_COUNT]):
        choices[choice] = events.hops[instance, Hop.NEIGHBOR]
        instance = events.previous_neighbor[instance]


@kernel
def _reveal(event: int, first_lane: int, events: Events, nodes: Nodes, walks: Walks) -> None:
    """Add versions, from a lane on, in which the two nodes of a new pair are neighbors."""
    if events.previous_neighbor[2 * event] == NOT_NEW:
        return
    for instance in (2 * event, 2 * event + 1):
        node = events.node[instance]
        if walks.row_of[node] == 0:
            _store_choices(node, events, nodes, walks)
        before = walks.choices[walks.row_of[node]]
        after = walks.choices[walks.sizes[_ROWS]]
        number = min(before[_COUNT] + 1, MAX_CHOICES)
        after[_COUNT] = number
        after[_FIRST_LANE] = first_lane
        after[_EARLIER] = walks.row_of[node] if first_lane > 0 else 0
        after[_FIRST_CHOICE] = events.node[instance ^ 1]
        after[_FIRST_CHOICE + 1 : _FIRST_CHOICE + number] = before[
            _FIRST_CHOICE : _FIRST_CHOICE + number - 1
        ]
        if first_lane > 0 and before[_EARLIER] == 0:
            walks.changed[walks.sizes[_CHANGED]] = node
            walks.sizes[_CHANGED] += 1
        walks.row_of[node] = walks.sizes[_ROWS]
        walks.sizes[_ROWS] += 1


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
