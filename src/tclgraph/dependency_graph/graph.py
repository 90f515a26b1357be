"""The temporal dependency interaction graph (TDIG; section "Preliminaries" of the paper).

Event e makes two *instances*, 2e for its source and 2e + 1 for its target. An instance depends on
both instances of its node's previous event, so one number per instance, that event's index, is the
whole graph. Only appending is possible, and appending piece by piece gives exactly what building
at once gives. "Previous" goes by the order of events: simultaneous events follow each other at an
interval of 0. Both instances of a self-loop are the same node at the same event; each depends on
the event before, not on the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tclgraph.arrays import FloatArray, IntArray
from tclgraph.events.node_space import NodeSpace
from tclgraph.events.stream import EventStream

NONE = -1
"""In place of an event or instance that does not exist."""
NOT_FIRST = -2
"""In place of a first meeting, where two meet who had met before."""


class DependencyGraph:
    """Grows with every event; memory is linear in the number of events.

    >>> stream = EventStream.from_columns(list("aab"), list("xyx"), [0.0, 5.0, 7.0])
    >>> graph = DependencyGraph(NodeSpace.of(stream))
    >>> graph.append(stream)
    >>> graph.previous.tolist(), graph.interval.tolist()
    ([-1, -1, 0, -1, -1, 0], [0.0, 0.0, 5.0, 0.0, 0.0, 7.0])
    """

    def __init__(self, space: NodeSpace) -> None:
        self.space = space
        self.last_instance: IntArray = np.full(space.num_nodes, NONE, dtype=np.int64)
        """Each node's latest instance, or NONE. A self-loop counts as its source's."""
        self._num_events = 0
        # Room for more than there is, doubled when it runs out: appending stays cheap.
        self._node = np.empty(0, dtype=np.int64)
        self._previous = np.empty(0, dtype=np.int64)
        self._following = np.empty(0, dtype=np.int64)
        self._met_before = np.empty(0, dtype=np.int64)
        self._interval = np.empty(0)
        self._time = np.empty(0)
        self._acquainted: set[int] = set()  # pairs, as one number each
        self._last_first = np.full(space.num_nodes, NONE, dtype=np.int64)

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
    def following(self) -> IntArray:
        """Instance of the same node at its next event, or NONE; of a self-loop, its source's."""
        return self._following[: 2 * len(self)]

    @property
    def met_before(self) -> IntArray:
        """Where two nodes meet for the first time: each one's first meeting before this, or NONE.

        Elsewhere NOT_FIRST. Nobody gets to know themselves.
        """
        return self._met_before[: 2 * len(self)]

    @property
    def interval(self) -> FloatArray:
        """Seconds since that event (Δ in the paper); 0 where there is none."""
        return self._interval[: 2 * len(self)]

    @property
    def time(self) -> FloatArray:
        """Of every event."""
        return self._time[: len(self)]

    def append(self, events: EventStream) -> None:
        """Let these events happen, after all that happened so far."""
        self.extend(self.space.nodes(events), events.time)

    def extend(self, nodes: IntArray, time: FloatArray) -> None:
        """The same, given the node of every instance."""
        start, stop = len(self), len(self) + len(time)
        self._reserve(stop)
        self._time[start:stop] = time
        node = self._node[2 * start : 2 * stop]
        node[:] = nodes
        self._num_events = stop

        order = np.argsort(node, kind="stable")  # node by node, each in the order of events
        instance = order + 2 * start
        before = np.empty_like(instance)
        before[1:] = instance[:-1]
        is_first = np.ones(len(order), dtype=bool)
        is_first[1:] = node[order[1:]] != node[order[:-1]]
        before[is_first] = self.last_instance[node[order[is_first]]]
        # The second side of a self-loop looks past the first.
        is_twin = np.zeros(len(order), dtype=bool)
        is_twin[1:] = ~is_first[1:] & (instance[1:] // 2 == instance[:-1] // 2)
        before[is_twin] = before[np.flatnonzero(is_twin) - 1]

        previous = np.where(before == NONE, NONE, before // 2)
        self._previous[instance] = previous
        self._following[2 * start : 2 * stop] = NONE
        is_next = (before != NONE) & ~is_twin
        own = before[is_next]
        own -= (own & 1) & (self._node[own] == self._node[own ^ 1])
        self._following[own] = instance[is_next]
        gap = self._time[instance // 2] - self._time[previous]
        self._interval[instance] = np.where(previous == NONE, 0.0, gap)

        is_last = np.append(is_first[1:], True)[: len(order)]
        latest = np.where(is_twin, instance - 1, instance)[is_last]
        self.last_instance[node[order[is_last]]] = latest
        self._introduce(start)

    def _introduce(self, start: int) -> None:
        """Note who meets for the first time, from this event on."""
        self._met_before[2 * start : 2 * len(self)] = NOT_FIRST
        source, target = self.node[2 * start :: 2], self.node[2 * start + 1 :: 2]
        pair = np.minimum(source, target) * self.space.num_nodes + np.maximum(source, target)
        distinct, where = np.unique(pair, return_index=True)
        for at in np.argsort(where).tolist():  # one of each pair, in the order of events
            one, event = int(distinct[at]), start + int(where[at])
            if one in self._acquainted or source[event - start] == target[event - start]:
                continue
            self._acquainted.add(one)
            for instance in (2 * event, 2 * event + 1):
                self._met_before[instance] = self._last_first[self._node[instance]]
                self._last_first[self._node[instance]] = instance

    def _reserve(self, num_events: int) -> None:
        if num_events <= len(self._time):
            return
        capacity = max(num_events, 2 * len(self._time))
        self._node = _grown(self._node, 2 * capacity)
        self._previous = _grown(self._previous, 2 * capacity)
        self._following = _grown(self._following, 2 * capacity)
        self._met_before = _grown(self._met_before, 2 * capacity)
        self._interval = _grown(self._interval, 2 * capacity)
        self._time = _grown(self._time, capacity)


def _grown(array: NDArray[Any], size: int) -> NDArray[Any]:
    larger = np.empty(size, dtype=array.dtype)
    larger[: len(array)] = array
    return larger
