"""The source features, and the loop over the source's events that computes the pair features."""

from typing import Any

import numpy as np

from tclgraph.compilation import kernel
from tclgraph.features.columns import RECENT_EVENTS, WINDOWS, PairColumn, SourceColumn
from tclgraph.features.instance_kernels import previous_instance
from tclgraph.features.pair_kernels import (
    PairWorkspace,
    count_pair_event,
    finish_pairs,
    start_pair,
)
from tclgraph.features.state_arrays import Events

MAX_EVENTS = 2_000
"""Number of a source's latest events that count. It bounds the work of a query."""


@kernel
def write_source(
    instance: int, now: float, events: Events, pairs: PairWorkspace, features: Any
) -> Any:
    """Write the features of the source with this latest instance, and of its pairs.

    Return the number of its neighbors, which are the rows of `pairs`. All `features` are 0 before.
    """
    node, previous, time = events.node, events.previous, events.time
    num_neighbors = 0
    step = 0
    latest, later = -1, -1  # the latest neighbor, and that of the event visited before
    if instance >= 0:
        features[SourceColumn.EVENT_AGE] = np.log1p(now - time[instance >> 1])
        features[SourceColumn.HAS_EVENT] = 1.0
        features[SourceColumn.LAST_AS_TARGET] = instance & 1
    while instance >= 0 and step < MAX_EVENTS:
        neighbor = node[instance ^ 1] - events.first_target
        is_forward = (instance & 1) == 0
        elapsed = now - time[instance >> 1]
        _count_source_event(elapsed, is_forward, features)
        if pairs.row_of[neighbor] < 0:
            start_pair(num_neighbors, neighbor, elapsed, is_forward, step, pairs)
            num_neighbors += 1
        count_pair_event(pairs.row_of[neighbor], elapsed, is_forward, step, pairs)
        if latest < 0:
            latest = neighbor
        elif neighbor == latest:
            pairs.features[pairs.row_of[later], PairColumn.NEXT_AFTER_LATEST] += 1.0
        later = neighbor
        instance = previous_instance(instance, node, previous)
        step += 1
    finish_pairs(num_neighbors, pairs)
    _finish_source(step, num_neighbors, pairs, features)
    return num_neighbors


@kernel
def _count_source_event(elapsed: float, is_source: bool, features: Any) -> None:
    if is_source and features[SourceColumn.WAS_SOURCE] == 0:
        features[SourceColumn.AS_SOURCE_AGE] = np.log1p(elapsed)
        features[SourceColumn.WAS_SOURCE] = 1.0
    hour = SourceColumn.AS_SOURCE_HOUR if is_source else SourceColumn.AS_TARGET_HOUR
    for window in range(len(WINDOWS)):
        if elapsed < WINDOWS[window]:
            features[hour + window] += 1.0


@kernel
def _finish_source(
    num_events: int, num_neighbors: int, pairs: PairWorkspace, features: Any
) -> None:
    """Turn the counts into features, and write those that need all events."""
    for row in range(num_neighbors):
        for index in range(len(RECENT_EVENTS)):
            if pairs.first_step[row] < RECENT_EVENTS[index]:
                features[SourceColumn.NEW_SHARE_1 + index] += 1.0 / RECENT_EVENTS[index]
    for column in range(SourceColumn.AS_SOURCE_HOUR, SourceColumn.AS_TARGET_WEEK + 1):
        features[column] = np.log1p(features[column])
    features[SourceColumn.NUM_EVENTS] = np.log1p(num_events)
    features[SourceColumn.NEIGHBORS_PER_EVENT] = num_neighbors / (num_events + 1)
    features[SourceColumn.NUM_NEIGHBORS] = np.log1p(num_neighbors)
