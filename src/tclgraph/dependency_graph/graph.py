"""The temporal dependency interaction graph (TDIG; section "Preliminaries" of the paper).

Event e has two *instances*: 2e for its source and 2e + 1 for its target. An instance depends on
both instances of its node's previous event, so the index of this event, one number per instance,
represents the graph. Events can only be appended, and appending them in pieces gives the same graph
as appending them at once. "Previous" refers to the order of events: simultaneous events follow each
other at an interval of 0. Both instances of a self-loop belong to the same node and event; each
depends on the node's event before, and not on the other.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tclgraph.arrays import FloatArray, IntArray
from tclgraph.events.node_space import NodeSpace
from tclgraph.events.stream import EventStream

NONE = -1
"""Stands for an event or instance that does not exist."""

Scalar = TypeVar("Scalar", bound=np.generic)


class DependencyGraph:
    """A graph that grows with every event; its memory is linear in the number of events.

    >>> stream = EventStream.from_columns(list("aab"), list("xyx"), [0.0, 5.0, 7.0])
    >>> graph = DependencyGraph(NodeSpace.of(stream))
    >>> graph.append(stream)
    >>> graph.previous.tolist(), graph.interval.tolist()
    ([-1, -1, 0, -1, -1, 0], [0.0, 0.0, 5.0, 0.0, 0.0, 7.0])
    """

    def __init__(self, space: NodeSpace) -> None:
        self.space = space
        self.last_instance: IntArray = np.full(space.num_nodes, NONE, dtype=np.int64)
        """Latest instance of each node, or NONE. A self-loop counts as its source's."""
        self._num_events = 0
        # Arrays have room to spare and double when it runs out, so that appending is cheap.
        self._node = np.empty(0, dtype=np.int64)
        self._previous = np.empty(0, dtype=np.int64)
        self._interval = np.empty(0)
        self._time = np.empty(0)

    def __len__(self) -> int:
        return self._num_events

    @property
    def node(self) -> IntArray:
        """Node of every instance."""
        return self._node[: 2 * len(self)]

    @property
    def previous(self) -> IntArray:
        """Event on whose two instances every instance depends, or NONE."""
        return self._previous[: 2 * len(self)]

    @property
    def interval(self) -> FloatArray:
        """Seconds since the previous event of every instance (Δ in the paper), or 0 without one."""
        return self._interval[: 2 * len(self)]

    @property
    def time(self) -> FloatArray:
        """Time of every event."""
        return self._time[: len(self)]

    def append(self, events: EventStream) -> None:
        """Append events, none of which is before the last event of the graph."""
        self.extend(self.space.nodes(events), events.time)

    def extend(self, nodes: IntArray, time: FloatArray) -> None:
        """Append events given by the node of every instance and the time of every event."""
        start, stop = len(self), len(self) + len(time)
        self._reserve(stop)
        self._time[start:stop] = time
        node = self._node[2 * start : 2 * stop]
        node[:] = nodes
        self._num_events = stop

        order = np.argsort(node, kind="stable")  # by node, and by event within a node
        instance = order + 2 * start
        before = np.empty_like(instance)
        before[1:] = instance[:-1]
        is_first = np.ones(len(order), dtype=bool)
        is_first[1:] = node[order[1:]] != node[order[:-1]]
        before[is_first] = self.last_instance[node[order[is_first]]]
        # The second instance of a self-loop depends on the same event as the first.
        is_twin = np.zeros(len(order), dtype=bool)
        is_twin[1:] = ~is_first[1:] & (instance[1:] // 2 == instance[:-1] // 2)
        before[is_twin] = before[np.flatnonzero(is_twin) - 1]

        previous = np.where(before == NONE, NONE, before // 2)
        self._previous[instance] = previous
        gap = self._time[instance // 2] - self._time[previous]
        self._interval[instance] = np.where(previous == NONE, 0.0, gap)

        is_last = np.append(is_first[1:], True)[: len(order)]
        latest = np.where(is_twin, instance - 1, instance)[is_last]
        self.last_instance[node[order[is_last]]] = latest

    def _reserve(self, num_events: int) -> None:
        """Make room for this number of events in all."""
        if num_events <= len(self._time):
            return
        capacity = max(num_events, 2 * len(self._time))
        self._node = grown(self._node, 2 * capacity)
        self._previous = grown(self._previous, 2 * capacity)
        self._interval = grown(self._interval, 2 * capacity)
        self._time = grown(self._time, capacity)


def grown(array: NDArray[Scalar], size: int) -> NDArray[Scalar]:
    """Return a copy of an array with `size` rows, of which the additional ones are arbitrary."""
    larger = np.empty((size, *array.shape[1:]), dtype=array.dtype)
    larger[: len(array)] = array
    return larger
