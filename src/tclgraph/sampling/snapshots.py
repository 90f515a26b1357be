"""Snapshots of a stream: one weighted graph of interactions for each time window.

Windows have equal length in time, not in events, so some may be empty. A window includes its start
and excludes its end; the last window includes the last event. Self-loops are left out.
"""

from dataclasses import dataclass

import numpy as np

from tclgraph.arrays import FloatArray, IntArray
from tclgraph.events.node_space import NodeSpace
from tclgraph.events.stream import EventStream

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjacency:
    """A symmetric matrix in CSR format: row i is neighbor[start[i]:start[i + 1]], ascending."""

    start: IntArray
    neighbor: IntArray
    weight: FloatArray
    """Number of events between the two nodes, in either direction."""

    @property
    def degree(self) -> IntArray:
        """Number of neighbors of each node."""
        return np.diff(self.start)

    @property
    def row(self) -> IntArray:
        """Row of each entry."""
        return np.repeat(np.arange(len(self.start) - 1), self.degree)

    def entries(self, rows: IntArray) -> IntArray:
        """Return the indices of the entries of these rows, row by row.

        >>> triangle = adjacency(np.array([0, 1, 1, 2, 2, 0]), 3)
        >>> triangle.neighbor[triangle.entries(np.array([2, 0]))].tolist()
        [0, 1, 1, 2]
        """
        count = self.degree[rows]
        before = np.cumsum(count) - count
        entry: IntArray = np.arange(count.sum()) + np.repeat(self.start[rows] - before, count)
        return entry


def windows(time: FloatArray, count: int) -> IntArray:
    """Return the window of every event when `count` windows divide the time evenly.

    If all events have the same time, they are all in the last window.

    >>> windows(np.array([0.0, 2.4, 2.5, 9.9, 10.0]), 4).tolist()
    [0, 0, 1, 3, 3]
    """
    elapsed = time - time[:1]
    if not len(time) or elapsed[-1] == 0:
        return np.full(len(time), count - 1)
    # The sum keeps an event at a border in the later window, however its time was rounded.
    window: IntArray = (elapsed * count / elapsed[-1] + _ROUNDING).astype(np.int64)
    return window.clip(max=count - 1)


def adjacency(nodes: IntArray, num_nodes: int) -> Adjacency:
    """Return the adjacency of events, given their nodes as source, target, source, target, ..."""
    source, target = nodes[0::2], nodes[1::2]
    is_loop = source == target
    source, target = source[~is_loop], target[~is_loop]
    cell = np.concatenate([source * num_nodes + target, target * num_nodes + source])
    distinct, weight = np.unique(cell, return_counts=True)
    return Adjacency(
        start=np.searchsorted(distinct, np.arange(num_nodes + 1) * num_nodes),
        neighbor=distinct % num_nodes,
        weight=weight.astype(np.float64),
    )


def snapshots(events: EventStream, count: int, *, cumulative: bool) -> list[Adjacency]:
    """Return one graph per window; if `cumulative`, it includes the events of earlier windows."""
    space = NodeSpace.of(events)
    nodes = space.nodes(events)
    # Events are sorted by time, and so are their windows.
    border = 2 * np.searchsorted(windows(events.time, count), np.arange(count + 1))
    return [
        adjacency(nodes[0 if cumulative else border[window] : border[window + 1]], space.num_nodes)
        for window in range(count)
    ]
