"""Updates of the activity and the neighbors of all nodes, and the activity features."""

from typing import Any, NamedTuple

import numpy as np

from tclgraph.arrays import IntArray
from tclgraph.compilation import kernel
from tclgraph.features.columns import ActivityColumn
from tclgraph.features.state_arrays import NOT_NEW, Activity, Events, Neighbors
from tclgraph.features.window_kernels import NUM_WINDOWS, change_window


class RecencyRanks(NamedTuple):
    """Number of targets with a later last event than each; equal for all that have no event."""

    as_target: IntArray
    """[T] Ranks by the last event as a target."""
    by_event: IntArray
    """[T] Ranks by the last event in either role."""


@kernel
def record_events(
    first_event: int, end_event: int, events: Events, activity: Activity, neighbors: Neighbors
) -> None:
    """Update the state with the events from `first_event` to before `end_event`."""
    node, first_target = events.node, events.first_target
    for event in range(first_event, end_event):
        source, target = node[2 * event], node[2 * event + 1] - first_target
        activity.last_instance[node[2 * event + 1]] = 2 * event + 1
        # After the target, because a self-loop counts as its source's.
        activity.last_instance[source] = 2 * event
        activity.num_as_target[target] += 1
        activity.last_as_target[target] = event
        if first_target == 0:  # in a one-mode graph the source is a candidate, too
            activity.last_as_source[source] = event
        if events.previous_neighbor[2 * event] != NOT_NEW:
            for instance in (2 * event, 2 * event + 1):
                neighbors.newest[node[instance]] = instance
                neighbors.num_neighbors[node[instance]] += 1
            neighbors.num_first_as_target[target] += 1
        for window in range(NUM_WINDOWS):
            change_window(event, window, 1, events, activity)


@kernel
def recency_ranks(events: Events, activity: Activity) -> Any:
    """Return the ranks of all targets by their last event."""
    return RecencyRanks(
        _ranks(activity.last_as_target), _ranks(activity.last_instance[events.first_target :])
    )


@kernel
def _ranks(last: IntArray) -> Any:
    """Return for each entry the number of greater entries; negative entries share the last rank."""
    rank = np.empty(len(last), np.int64)
    order = np.argsort(-last, kind="mergesort")
    num_active = 0
    for position in range(len(order)):
        if last[order[position]] >= 0:
            num_active += 1
        rank[order[position]] = min(position, num_active)
    return rank


@kernel
def update_ranks(event: int, events: Events, activity: Activity, ranks: RecencyRanks) -> None:
    """Update the ranks with an event that the activity does not contain yet."""
    node, first_target = events.node, events.first_target
    source, target = node[2 * event], node[2 * event + 1] - first_target
    _move_to_front(target, activity.last_as_target[target] < 0, ranks.as_target)
    if first_target == 0 and source != target:
        _move_to_front(source, activity.last_instance[source] < 0, ranks.by_event)
    _move_to_front(target, activity.last_instance[first_target + target] < 0, ranks.by_event)


@kernel
def _move_to_front(target: int, is_first: bool, rank: IntArray) -> None:
    """Give a target rank 0; its first event also moves the rank that inactive targets share."""
    previous_rank = rank[target]
    for other in range(len(rank)):
        if rank[other] < previous_rank or is_first:
            rank[other] += 1
    rank[target] = 0


@kernel
def write_activity(
    candidates: IntArray,
    now: float,
    events: Events,
    activity: Activity,
    neighbors: Neighbors,
    ranks: RecencyRanks,
    log_count: Any,
    table: Any,
) -> None:
    """Write the activity features of candidates, one column of `table` for each.

    `log_count[n]` is log(1 + n), for every number that can occur.
    """
    time, in_window, num_as_target = events.time, activity.in_window, activity.num_as_target
    last_as_target, last_as_source = activity.last_as_target, activity.last_as_source
    for column in range(len(candidates)):
        candidate = candidates[column]
        if num_as_target[candidate] > 0:
            elapsed = now - time[last_as_target[candidate]]
            table[ActivityColumn.AS_TARGET_AGE, column] = np.log1p(elapsed)
            table[ActivityColumn.WAS_TARGET, column] = 1.0
            table[ActivityColumn.NUM_AS_TARGET, column] = log_count[num_as_target[candidate]]
        if last_as_source[candidate] >= 0:
            elapsed = now - time[last_as_source[candidate]]
            table[ActivityColumn.AS_SOURCE_AGE, column] = np.log1p(elapsed)
            table[ActivityColumn.WAS_SOURCE, column] = 1.0
        table[ActivityColumn.AS_TARGET_RANK, column] = log_count[ranks.as_target[candidate]]
        table[ActivityColumn.EVENT_RANK, column] = log_count[ranks.by_event[candidate]]
    # One feature at a time from here on, so that memory is written in order.
    for window in range(2 * NUM_WINDOWS):
        row = ActivityColumn.AS_TARGET_HOUR + window
        for column in range(len(candidates)):
            table[row, column] = log_count[in_window[window, candidates[column]]]
    num_neighbors = neighbors.num_neighbors[events.first_target :]
    num_first_as_target = neighbors.num_first_as_target
    for column in range(len(candidates)):
        table[ActivityColumn.NUM_NEIGHBORS, column] = log_count[num_neighbors[candidates[column]]]
    for column in range(len(candidates)):
        number = num_first_as_target[candidates[column]]
        table[ActivityColumn.NUM_FIRST_AS_TARGET, column] = log_count[number]
