"""The nearby features that count events around the latest neighbors of a source."""

from typing import Any, NamedTuple

import numpy as np

from tclgraph.arrays import FloatArray, IntArray
from tclgraph.compilation import kernel
from tclgraph.features.columns import NUM_NEARBY_FEATURES, NUM_SPARSE_FEATURES, NearbyColumn
from tclgraph.features.instance_kernels import previous_instance
from tclgraph.features.state_arrays import Events

MAX_NEIGHBORS = 20
"""Number of latest neighbors of the source to look at."""
MAX_SOURCE_EVENTS = 100
"""Number of latest events of the source among which these neighbors are searched."""
MAX_NEIGHBOR_EVENTS = 20
"""Number of latest events to look at of each neighbor."""
MAX_EARLIER_EVENTS = 5
"""Number of earlier events to look at of a node that interacted with a neighbor."""


class NearbyWorkspace(NamedTuple):
    """Nearby features of all targets, for one query at a time."""

    features: FloatArray
    """[nearby features, T]"""
    reached: IntArray
    """[T] Targets with a sparse feature other than 0, as many as the kernels say."""
    last_query: IntArray
    """[N] Last query that visited each node as a neighbor."""


@kernel
def nearby_workspace(num_nodes: int, num_targets: int) -> Any:
    """Return a workspace in which all features are 0."""
    return NearbyWorkspace(
        np.zeros((NUM_NEARBY_FEATURES, num_targets)),
        np.empty(num_targets, np.int64),
        np.full(num_nodes, -1, np.int64),
    )


@kernel
def count_nearby(
    query: int,
    source: int,
    num_known: int,
    events: Events,
    last_instance: IntArray,
    nearby: NearbyWorkspace,
) -> Any:
    """Compute the sparse features of one query; return the number of targets reached."""
    node, previous = events.node, events.previous
    last_query = nearby.last_query
    num_reached = 0
    num_neighbors = 0
    step = 0
    instance = last_instance[source]
    while instance >= 0 and num_neighbors < MAX_NEIGHBORS and step < MAX_SOURCE_EVENTS:
        neighbor = node[instance ^ 1]
        if last_query[neighbor] != query:
            last_query[neighbor] = query
            num_neighbors += 1
            num_reached = _count_around(
                last_instance[neighbor],
                source,
                num_neighbors,
                num_known,
                events,
                nearby,
                num_reached,
            )
        instance = previous_instance(instance, node, previous)
        step += 1
    for index in range(num_reached):
        for column in range(NUM_SPARSE_FEATURES):
            value = nearby.features[column, nearby.reached[index]]
            nearby.features[column, nearby.reached[index]] = np.log1p(value)
    return num_reached


@kernel
def _count_around(
    instance: int,
    source: int,
    rank: int,
    num_known: int,
    events: Events,
    nearby: NearbyWorkspace,
    num_reached: int,
) -> Any:
    """Count the events around the neighbor of this rank, given its latest instance."""
    node, previous, following = events.node, events.previous, events.following
    features, reached, first_target = nearby.features, nearby.reached, events.first_target
    neighbor = node[instance]
    weight = 1.0 / rank
    num_events = 0
    while instance >= 0 and num_events < MAX_NEIGHBOR_EVENTS:
        other = instance ^ 1
        if node[other] != source:
            column = NearbyColumn.NEIGHBOR_EVENTS
            if node[other] >= first_target:
                target = node[other] - first_target
                num_reached = _add(target, column, weight, features, reached, num_reached)
            else:
                earlier = previous_instance(other, node, previous)
                num_earlier = 0
                while earlier >= 0 and num_earlier < MAX_EARLIER_EVENTS:
                    if node[earlier ^ 1] != neighbor:
                        target = node[earlier ^ 1] - first_target
                        num_reached = _add(target, column, weight, features, reached, num_reached)
                    earlier = previous_instance(earlier, node, previous)
                    num_earlier += 1
            # The log may hold events after the query, so the link is compared with `num_known`.
            after = following[other]
            if after >= 0 and (after >> 1) < num_known and node[after ^ 1] != neighbor:
                target = node[after ^ 1] - first_target
                if rank == 1:
                    column = NearbyColumn.NEXT_AFTER_LATEST
                else:
                    column = NearbyColumn.NEXT_AFTER_EARLIER
                num_reached = _add(target, column, weight, features, reached, num_reached)
        instance = previous_instance(instance, node, previous)
        num_events += 1
    return num_reached


@kernel
def _add(
    target: int,
    column: int,
    weight: float,
    features: FloatArray,
    reached: IntArray,
    num_reached: int,
) -> Any:
    """Add to a feature of a target; list the target if it had none before."""
    is_new = True
    for other in range(NUM_SPARSE_FEATURES):
        if features[other, target] != 0.0:
            is_new = False
    if is_new:
        reached[num_reached] = target
        num_reached += 1
    features[column, target] += weight
    return num_reached


@kernel
def clear_nearby(num_reached: int, nearby: NearbyWorkspace) -> None:
    """Set the sparse features of the reached targets to 0 again."""
    for index in range(num_reached):
        for column in range(NUM_SPARSE_FEATURES):
            nearby.features[column, nearby.reached[index]] = 0.0


@kernel
def write_nearby(candidates: IntArray, nearby: NearbyWorkspace, first_row: int, table: Any) -> None:
    """Copy the features of candidates to `table` from `first_row` on, one column for each."""
    features = nearby.features
    for row in range(NUM_NEARBY_FEATURES):
        for column in range(len(candidates)):
            table[first_row + row, column] = features[row, candidates[column]]
