"""The training stream as a few graphs: who met whom, and how often, window by window.

Windows are equally long in time, not in events, so that some may be empty. A window begins with
its first instant and ends before the next one's; the last one holds the last event too. Nobody
meets themselves here: self-loops are left out.
"""

from dataclasses import dataclass

import numpy as np

from tclgraph.arrays import FloatArray, IntArray
from tclgraph.events.node_space import NodeSpace
from tclgraph.events.stream import EventStream


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjacency:
    """A symmetric matrix by its rows: row i is neighbor[start[i]:start[i + 1]], ascending."""

    start: IntArray
    neighbor: IntArray
    weight: FloatArray
    """Number of events between the two, in either direction."""

    @property
    def degree(self) -> IntArray:
        """How many others each node has met."""
        return np.diff(self.start)

    @property
    def row(self) -> IntArray:
        """Beside each neighbor, whose it is."""
        return np.repeat(np.arange(len(self.start) - 1), self.degree)

    def entries(self, rows: IntArray) -> IntArray:
        """Where the neighbors of these rows stand, one row after the other.

        >>> triangle = adjacency(np.array([0, 1, 1, 2, 2, 0]), 3)
        >>> triangle.neighbor[triangle.entries(np.array([2, 0]))].tolist()
        [0, 1, 1, 2]
        """
        count = self.degree[rows]
        before = np.cumsum(count) - count
        found: IntArray = np.arange(count.sum()) + np.repeat(self.start[rows] - before, count)
        return found


def windows(time: FloatArray, count: int) -> IntArray:
    """The window of every event, of so many that share the time evenly.

    Where no time passes, all is in the last one, which is then the only one that has an instant.

    >>> windows(np.array([0.0, 2.4, 2.5, 9.9, 10.0]), 4).tolist()
    [0, 0, 1, 3, 3]
    """
    elapsed = time - time[:1]
    if not len(time) or elapsed[-1] == 0:
        return np.full(len(time), count - 1)
    # Multiplied first: an event on a border is then on the right side of it.
    which: IntArray = (elapsed * count / elapsed[-1]).astype(np.int64)
    return which.clip(max=count - 1)


def adjacency(nodes: IntArray, num_nodes: int) -> Adjacency:
    """Of events, given the nodes of each, source and target in turn."""
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
    """One graph for each window; cumulative: of its events and of all before."""
    space = NodeSpace.of(events)
    nodes = space.nodes(events)
    # Events are in the order of time, so windows are too.
    border = 2 * np.searchsorted(windows(events.time, count), np.arange(count + 1))
    return [
        adjacency(nodes[0 if cumulative else border[at] : border[at + 1]], space.num_nodes)
        for at in range(count)
    ]
