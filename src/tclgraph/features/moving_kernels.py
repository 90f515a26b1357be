"""The moving features of candidates that are not nearby features: ages and ranks."""

from typing import Any, NamedTuple

import numpy as np

from tclgraph.arrays import IntArray
from tclgraph.compilation import BORROWING, INLINED, kernel
from tclgraph.features.block import MOVING_FEATURES
from tclgraph.features.columns import ActivityColumn
from tclgraph.features.log_arrays import Events, NodeColumn, Nodes
from tclgraph.features.logarithm_kernels import log_all

# Rows of the moving features.
_TARGET_AGE, _SOURCE_AGE, _TARGET_RANK, _EVENT_RANK = (
    MOVING_FEATURES.index(column)
    for column in (
        ActivityColumn.AS_TARGET_AGE,
        ActivityColumn.AS_SOURCE_AGE,
        ActivityColumn.AS_TARGET_RANK,
        ActivityColumn.EVENT_RANK,
    )
)


class RecencyRanks(NamedTuple):
    """Number of targets with a later last event than each; equal for all that have no event."""

    as_target: IntArray
    """[T] Ranks by the last event as a target."""
    by_event: IntArray
    """[T] Ranks by the last event in either role; the same array in a bipartite graph."""


class LastTimes(NamedTuple):
    """When each of K candidates was last a target and last a source."""

    time: Any
    """[2, K] Time of the event, 0 if there is none."""
    exists: Any
    """[2, K] 1 if there is such an event, else 0."""


def recency_ranks(events: Events, nodes: Nodes) -> RecencyRanks:
    """Return the ranks of all targets by their last event."""
    targets = nodes.table[events.first_target :]
    as_target = _ranks(targets[:, NodeColumn.LAST_AS_TARGET])
    if events.first_target > 0:
        return RecencyRanks(as_target, as_target)
    return RecencyRanks(as_target, _ranks(targets[:, NodeColumn.LAST_INSTANCE]))


def _ranks(last: IntArray) -> IntArray:
    """Return for each entry the number of greater entries; negative entries share the last rank.

    >>> _ranks(np.array([3, -1, 7, -1])).tolist()
    [1, 2, 0, 2]
    """
    order = np.argsort(-last)
    rank = np.empty(len(last), np.int32)
    rank[order] = np.arange(len(last))
    return np.minimum(rank, np.count_nonzero(last >= 0), dtype=np.int32)


@kernel(**BORROWING)
def update_ranks(event: int, events: Events, nodes: Nodes, ranks: RecencyRanks) -> None:
    """Update the ranks with an event that the nodes do not contain yet."""
    node, first_target, table = events.node, events.first_target, nodes.table
    source, target = node[2 * event], node[2 * event + 1]
    is_first = table[target, NodeColumn.NUM_AS_TARGET] == 0
    _move_to_front(target - first_target, is_first, ranks.as_target)
    if first_target == 0:
        if source != target:
            is_first = table[source, NodeColumn.LAST_INSTANCE] < 0
            _move_to_front(source, is_first, ranks.by_event)
        _move_to_front(target, table[target, NodeColumn.LAST_INSTANCE] < 0, ranks.by_event)


@kernel(**INLINED)
def _move_to_front(target: int, is_first: bool, rank: IntArray) -> None:
    """Give a target rank 0; its first event also moves the rank that inactive targets share."""
    limit = np.int32(len(rank) + 1) if is_first else rank[target]
    for other in range(len(rank)):
        rank[other] += np.int32(rank[other] < limit)
    rank[target] = 0


@kernel
def last_times(columns: IntArray, events: Events, nodes: Nodes) -> Any:
    """Return the last times of these targets."""
    times = LastTimes(np.zeros((2, len(columns))), np.zeros((2, len(columns)), np.float32))
    for column in range(len(columns)):
        update_times(column, columns[column], events, nodes, times)
    return times


@kernel(**INLINED)
def update_times(column: int, target: int, events: Events, nodes: Nodes, times: LastTimes) -> None:
    """Update the last times of the target in a column."""
    state = nodes.table[events.first_target + target]
    for role in range(2):
        last = state[NodeColumn.LAST_AS_TARGET + role]
        if last >= 0:
            times.time[role, column] = events.time[last]
            times.exists[role, column] = 1.0


@kernel(error_model="numpy")
def write_moving(
    columns: IntArray,
    now: float,
    events: Events,
    times: LastTimes,
    ranks: RecencyRanks,
    rows: Any,
) -> None:
    """Write the ages and ranks of all columns to a query's moving features, [NUM_MOVING, K]."""
    is_bipartite, inverse_unit = events.first_target > 0, events.inverse_unit
    for role in range(1 if is_bipartite else 2):
        time, exists = times.time[role], times.exists[role]
        row = rows[_TARGET_AGE if role == 0 else _SOURCE_AGE]
        for column in range(len(columns)):
            row[column] = np.float32((now - time[column]) * inverse_unit) * exists[column]
    target_rank, event_rank = rows[_TARGET_RANK], rows[_EVENT_RANK]
    for column in range(len(columns)):
        target_rank[column] = ranks.as_target[columns[column]]
    if is_bipartite:
        rows[_SOURCE_AGE] = 0.0
    else:
        for column in range(len(columns)):
            event_rank[column] = ranks.by_event[columns[column]]
        log_all(rows[_SOURCE_AGE])
        log_all(event_rank)
    log_all(rows[_TARGET_AGE])
    log_all(target_rank)
    if is_bipartite:
        event_rank[:] = target_rank


@kernel(**INLINED)
def write_moving_of_target(
    target: int,
    now: float,
    events: Events,
    nodes: Nodes,
    ranks: RecencyRanks,
    features: Any,
) -> None:
    """Write the ages and ranks of one target to its candidate features, before the logarithm."""
    state = nodes.table[events.first_target + target]
    for role in range(2):
        last = state[NodeColumn.LAST_AS_TARGET + role]
        age = MOVING_FEATURES[_TARGET_AGE] if role == 0 else MOVING_FEATURES[_SOURCE_AGE]
        features[age] = (now - events.time[last]) * events.inverse_unit if last >= 0 else 0.0
    features[MOVING_FEATURES[_TARGET_RANK]] = ranks.as_target[target]
    features[MOVING_FEATURES[_EVENT_RANK]] = ranks.by_event[target]
