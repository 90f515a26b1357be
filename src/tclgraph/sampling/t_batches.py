"""Groups of events that can be handled at once by models that update both parties of each event.

Such a model must have handled a node's earlier events before a later one, but events of different
nodes do not wait for each other (the t-batches of JODIE).
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from tclgraph.arrays import IntArray
from tclgraph.dependency_graph.graph import NONE


class TBatches(NamedTuple):
    """Events by the group that they are in."""

    order: IntArray
    """All events, group by group, and within a group as they happened."""
    start: IntArray
    """Where each group begins in `order`, and at last where the last one ends."""


def t_batches(source: IntArray, target: IntArray) -> TBatches:
    """As few groups as can be, so that no node is in a group twice and each one's order is kept.

    Sources and targets are counted in one numbering. The two sides of a self-loop are one event's.

    >>> order, start = t_batches(np.array([0, 1, 0, 1]), np.array([5, 6, 6, 7]))
    >>> order.tolist(), start.tolist()  # 0-5 and 1-6 at once, then 0-6 and 1-7
    ([0, 1, 2, 3], [0, 2, 4])
    """
    if not len(source):
        return TBatches(np.empty(0, dtype=np.int64), np.zeros(1, dtype=np.int64))
    group = _groups(source, target, int(max(source.max(), target.max())) + 1)
    return TBatches(
        np.argsort(group, kind="stable"), np.concatenate([[0], np.cumsum(np.bincount(group))])
    )


@njit(cache=True, nogil=True)
def _groups(source: IntArray, target: IntArray, num_nodes: int) -> IntArray:
    """The first group in which neither party still waits for an earlier event."""
    free = np.zeros(num_nodes, dtype=np.int64)
    group = np.empty(len(source), dtype=np.int64)
    for event in range(len(source)):
        group[event] = max(free[source[event]], free[target[event]])
        free[source[event]] = free[target[event]] = group[event] + 1
    return group


class LatestEvents:
    """Which event a node last had, in one role, before any event of a stretch of a stream.

    >>> latest = LatestEvents(np.array([4, 2, 4]), first=7, earlier=np.array([-1, -1, 3, 6, -1]))
    >>> latest.before(np.array([4, 4, 4, 2, 3]), np.array([7, 8, 10, 8, 9])).tolist()
    [-1, 7, 9, 3, 6]
    """

    def __init__(self, node: IntArray, first: int = 0, earlier: IntArray | None = None) -> None:
        """`node` is who has event `first`, first + 1, ...; `earlier` is each node's last before."""
        self._first, self._earlier = first, earlier
        # (node, event) as one number; the stride leaves room for the event after the last.
        self._stride = len(node) + 1
        number = node * self._stride + np.arange(len(node))
        self._number = np.sort(number)

    def before(self, node: IntArray, event: IntArray) -> IntArray:
        """Latest events of nodes strictly before events, NONE where there is none."""
        earlier = NONE if self._earlier is None else self._earlier[node]
        if not len(self._number):
            return np.broadcast_to(earlier, node.shape).copy()
        wanted = np.searchsorted(self._number, node * self._stride + event - self._first) - 1
        found = self._number[wanted]
        is_here = (wanted >= 0) & (found // self._stride == node)
        return np.where(is_here, self._first + found % self._stride, earlier)
