"""The nearby features that count events around the latest neighbors of a source."""

from typing import Any, NamedTuple

import numpy as np

from tclgraph.arrays import FloatArray, IntArray
from tclgraph.compilation import BORROWING, INLINED, kernel
from tclgraph.features.block import MOVING_FEATURES
from tclgraph.features.columns import NUM_ACTIVITY_FEATURES, NUM_SPARSE_FEATURES, NearbyColumn
from tclgraph.features.log_arrays import NUM_EARLIER_TARGETS, Events, Hop, NodeColumn, Nodes
from tclgraph.features.logarithm_kernels import log_one_plus
from tclgraph.lanes import prefetch

MAX_NEIGHBORS = 20
"""Number of latest neighbors of the source to look at."""
MAX_SOURCE_EVENTS = 100
"""Number of latest events of the source among which these neighbors are searched."""
MAX_NEIGHBOR_EVENTS = 20
"""Number of latest events to look at of each neighbor."""
_FIRST_ROW = MOVING_FEATURES.index(NUM_ACTIVITY_FEATURES)


class Nearby(NamedTuple):
    """Counted features of all targets before the logarithm, for one query at a time."""

    weight: FloatArray
    """[T, NUM_SPARSE_FEATURES] Valid for the targets that the latest query has reached."""
    target_query: IntArray
    """[T] Latest query that reached each target."""
    reached: IntArray
    """[T] Targets that the latest query has reached, as many as `num_reached` says."""
    num_reached: IntArray
    """[1]"""
    node_query: IntArray
    """[N] Latest query that visited each node as a neighbor."""
    neighbor: IntArray
    """[MAX_NEIGHBORS] Neighbors of the source of the latest query, the latest first."""
    instance: IntArray
    """[MAX_NEIGHBORS] Instance of each neighbor that is counted next."""


@kernel
def empty_nearby(num_nodes: int, num_targets: int) -> Any:
    """Return arrays that no query has used."""
    return Nearby(
        np.empty((num_targets, NUM_SPARSE_FEATURES)),
        np.full(num_targets, -1, np.int64),
        np.empty(num_targets, np.int64),
        np.zeros(1, np.int64),
        np.full(num_nodes, -1, np.int64),
        np.empty(MAX_NEIGHBORS, np.int64),
        np.empty(MAX_NEIGHBORS, np.int64),
    )


@kernel(**BORROWING)
def count_nearby(
    query: int, source: int, num_known: int, events: Events, nodes: Nodes, nearby: Nearby
) -> None:
    """Count for one query; the query's number must differ from those before.

    All neighbors go back through their events side by side, one event at a time, so that the cache
    misses of their next events overlap.
    """
    nearby.num_reached[0] = 0
    num_neighbors = _list_neighbors(query, source, events, nodes, nearby)
    for index in range(num_neighbors):
        nearby.instance[index] = nodes.table[nearby.neighbor[index], NodeColumn.LAST_INSTANCE]
        _prefetch_instance(nearby.instance[index], events)
    for _ in range(MAX_NEIGHBOR_EVENTS):
        for index in range(num_neighbors):
            instance = nearby.instance[index]
            if instance >= 0:
                _count_event(query, instance, source, index + 1, num_known, events, nearby)
                nearby.instance[index] = events.hops[instance, Hop.PREVIOUS]
                _prefetch_instance(nearby.instance[index], events)


@kernel(**BORROWING)
def _list_neighbors(query: int, source: int, events: Events, nodes: Nodes, nearby: Nearby) -> int:
    """List the source's latest neighbors, and return their number."""
    number = 0
    step = 0
    instance = nodes.table[source, NodeColumn.LAST_INSTANCE]
    while instance >= 0 and number < MAX_NEIGHBORS and step < MAX_SOURCE_EVENTS:
        neighbor = events.hops[instance, Hop.NEIGHBOR]
        if nearby.node_query[neighbor] != query:
            nearby.node_query[neighbor] = query
            nearby.neighbor[number] = neighbor
            prefetch(nodes.table, neighbor)
            number += 1
        instance = events.hops[instance, Hop.PREVIOUS]
        step += 1
    return number


@kernel(**INLINED)
def _prefetch_instance(instance: int, events: Events) -> None:
    if instance >= 0:
        prefetch(events.hops, instance)
        if events.first_target > 0:
            prefetch(events.earlier_targets, instance >> 1)


@kernel(**INLINED)
def _count_event(
    query: int,
    instance: int,
    source: int,
    rank: int,
    num_known: int,
    events: Events,
    nearby: Nearby,
) -> None:
    """Count what an event of the neighbor of this rank reaches; `instance` is the neighbor's."""
    hops, first_target = events.hops, events.first_target
    other = hops[instance, Hop.NEIGHBOR]
    if other == source:
        return
    neighbor, weight = nearby.neighbor[rank - 1], 1.0 / rank
    if other >= first_target:
        _add(query, other - first_target, NearbyColumn.NEIGHBOR_EVENTS, weight, nearby)
    else:
        earlier = events.earlier_targets[instance >> 1]
        for index in range(NUM_EARLIER_TARGETS):
            target = earlier[index]
            if target < 0:
                break
            if target + first_target != neighbor:
                _add(query, target, NearbyColumn.NEIGHBOR_EVENTS, weight, nearby)
    # The log may hold events after the query, so the link is compared with `num_known`.
    after = hops[instance ^ 1, Hop.NEXT]
    following = hops[instance ^ 1, Hop.NEXT_NEIGHBOR]
    if after >= 0 and (after >> 1) < num_known and following != neighbor:
        column = NearbyColumn.NEXT_AFTER_LATEST if rank == 1 else NearbyColumn.NEXT_AFTER_EARLIER
        _add(query, following - first_target, column, weight, nearby)


@kernel(**INLINED)
def _add(query: int, target: int, column: int, weight: float, nearby: Nearby) -> None:
    """Add to a feature of a target; list the target if the query reaches it for the first time."""
    if nearby.target_query[target] != query:
        nearby.target_query[target] = query
        nearby.weight[target, :] = 0.0
        nearby.reached[nearby.num_reached[0]] = target
        nearby.num_reached[0] += 1
    nearby.weight[target, column] += weight


@kernel(**BORROWING)
def write_nearby(column_of: IntArray, nearby: Nearby, rows: Any) -> None:
    """Write the counted features of the reached targets to the moving features of a query."""
    rows[_FIRST_ROW : _FIRST_ROW + NUM_SPARSE_FEATURES] = 0.0
    for index in range(nearby.num_reached[0]):
        target = nearby.reached[index]
        column = column_of[target]
        if column >= 0:
            for feature in range(NUM_SPARSE_FEATURES):
                value = log_one_plus(nearby.weight[target, feature])
                rows[_FIRST_ROW + feature, column] = value


@kernel(**INLINED)
def write_nearby_of_target(query: int, target: int, nearby: Nearby, features: Any) -> None:
    """Write the counted features of one target to its candidate features, before the logarithm."""
    is_reached = nearby.target_query[target] == query
    for feature in range(NUM_SPARSE_FEATURES):
        value = nearby.weight[target, feature] if is_reached else 0.0
        features[NUM_ACTIVITY_FEATURES + feature] = value
