"""Updates of all nodes as the log moves on, and the activity features.

An event changes the steady features of few targets. A block therefore stores them once, before its
first query, and then for each query the rows that changed since the query before. The ages and the
ranks change with every query; they are among the moving features (see `moving_kernels`).
"""

from typing import Any, NamedTuple

import numpy as np

from tclgraph.arrays import IntArray
from tclgraph.compilation import BORROWING, INLINED, kernel
from tclgraph.features.block import NUM_STEADY, STEADY_FEATURES
from tclgraph.features.columns import NUM_WINDOWS, ActivityColumn
from tclgraph.features.link_kernels import is_new_pair
from tclgraph.features.log_arrays import Events, NodeColumn, Nodes

# Positions among the steady features.
_WAS_TARGET, _WAS_SOURCE, _NUM_AS_TARGET, _AS_TARGET_SHORT, _NUM_NEIGHBORS, _NUM_FIRST_AS_TARGET = (
    STEADY_FEATURES.index(column)
    for column in (
        ActivityColumn.WAS_TARGET,
        ActivityColumn.WAS_SOURCE,
        ActivityColumn.NUM_AS_TARGET,
        ActivityColumn.AS_TARGET_SHORT,
        ActivityColumn.NUM_NEIGHBORS,
        ActivityColumn.NUM_FIRST_AS_TARGET,
    )
)


class Changed(NamedTuple):
    """Targets whose activity changed since the list was last emptied."""

    targets: IntArray
    """[T] The targets, as many as `number` says."""
    is_listed: Any
    """[T] Whether each target is among them."""
    number: IntArray
    """[1]"""


@kernel
def no_changes(num_targets: int) -> Any:
    """Return an empty list of changed targets."""
    return Changed(
        np.empty(num_targets, np.int64), np.zeros(num_targets, np.bool_), np.zeros(1, np.int64)
    )


@kernel(**BORROWING)
def forget_changes(changed: Changed) -> None:
    """Empty the list of changed targets."""
    for index in range(changed.number[0]):
        changed.is_listed[changed.targets[index]] = False
    changed.number[0] = 0


@kernel(**INLINED)
def _mark(target: int, changed: Changed) -> None:
    if target >= 0 and not changed.is_listed[target]:
        changed.is_listed[target] = True
        changed.targets[changed.number[0]] = target
        changed.number[0] += 1


@kernel(**BORROWING)
def record_events(
    first_event: int, end_event: int, events: Events, nodes: Nodes, changed: Changed
) -> None:
    """Update the nodes with the events from `first_event` to before `end_event`."""
    node, table = events.node, nodes.table
    for event in range(first_event, end_event):
        source, target = node[2 * event], node[2 * event + 1]
        table[target, NodeColumn.LAST_INSTANCE] = 2 * event + 1
        # After the target, because a self-loop counts as an event of its source.
        table[source, NodeColumn.LAST_INSTANCE] = 2 * event
        table[target, NodeColumn.NUM_AS_TARGET] += 1
        table[target, NodeColumn.LAST_AS_TARGET] = event
        table[source, NodeColumn.LAST_AS_SOURCE] = event
        if is_new_pair(event, events):
            table[source, NodeColumn.NUM_NEIGHBORS] += 1
            table[target, NodeColumn.NUM_NEIGHBORS] += 1
            table[target, NodeColumn.NUM_FIRST_AS_TARGET] += 1
        for window in range(NUM_WINDOWS):
            _change_window(event, window, 1, events, nodes)
        _mark(target - events.first_target, changed)
        _mark(source - events.first_target, changed)


@kernel(**INLINED)
def _change_window(event: int, window: int, change: int, events: Events, nodes: Nodes) -> None:
    """Add `change` to the window's numbers of both nodes of an event."""
    source, target = events.node[2 * event], events.node[2 * event + 1]
    nodes.table[target, NodeColumn.AS_TARGET_SHORT + window] += change
    nodes.table[source, NodeColumn.AS_SOURCE_SHORT + window] += change
    if source == target:
        nodes.table[source, NodeColumn.LOOPS_SHORT + window] += change


@kernel(**BORROWING)
def slide_windows(
    num_known: int, now: float, events: Events, nodes: Nodes, changed: Changed
) -> None:
    """Let all windows end at `now`, which may be earlier than where they ended before."""
    time, start, node = events.time, nodes.window_start, events.node
    for window in range(NUM_WINDOWS):
        length = events.windows[window]
        while True:
            if start[window] < num_known and now - time[start[window]] >= length:
                event, change = start[window], -1
                start[window] += 1
            elif start[window] > 0 and now - time[start[window] - 1] < length:
                start[window] -= 1
                event, change = start[window], 1
            else:
                break
            _change_window(event, window, change, events, nodes)
            _mark(node[2 * event + 1] - events.first_target, changed)
            _mark(node[2 * event] - events.first_target, changed)


@kernel(**INLINED)
def write_steady(target: int, events: Events, nodes: Nodes, features: Any) -> None:
    """Write the steady features of a target before the logarithm, in their order."""
    state = nodes.table[events.first_target + target]
    features[_WAS_TARGET] = state[NodeColumn.NUM_AS_TARGET] > 0
    features[_WAS_SOURCE] = state[NodeColumn.LAST_AS_SOURCE] >= 0
    features[_NUM_AS_TARGET] = state[NodeColumn.NUM_AS_TARGET]
    for window in range(2 * NUM_WINDOWS):
        features[_AS_TARGET_SHORT + window] = state[NodeColumn.AS_TARGET_SHORT + window]
    features[_NUM_NEIGHBORS] = state[NodeColumn.NUM_NEIGHBORS]
    features[_NUM_FIRST_AS_TARGET] = state[NodeColumn.NUM_FIRST_AS_TARGET]


@kernel(**INLINED)
def write_steady_of_target(
    target: int, events: Events, nodes: Nodes, steady: Any, features: Any
) -> None:
    """Write the steady features of a target to its candidate features, before the logarithm.

    `steady` is memory for as many numbers.
    """
    write_steady(target, events, nodes, steady)
    for position in range(NUM_STEADY):
        features[STEADY_FEATURES[position]] = steady[position]
