"""Groups of events that can be processed in parallel, and the latest instances of nodes.

A model that updates both parties of each event has to process the events of a node in order, but
events without a common node are independent. The groups are the t-batches of JODIE.
"""

from typing import NamedTuple

import numpy as np

from tclgraph.arrays import IntArray
from tclgraph.compilation import kernel
from tclgraph.dependency_graph.graph import NONE


class TBatches(NamedTuple):
    """Events sorted by group."""

    order: IntArray
    """All events, group by group, in order of time within a group."""
    start: IntArray
    """Start of each group in `order`, and the end of the last group."""


def t_batches(source: IntArray, target: IntArray) -> TBatches:
    """Divide events into the fewest groups in which no node occurs in two events of a group.

    The events of a node are in later and later groups. Sources and targets share one numbering. A
    self-loop is one event of its node.

    >>> order, start = t_batches(np.array([0, 1, 0, 1]), np.array([5, 6, 6, 7]))
    >>> order.tolist(), start.tolist()  # (0, 5) and (1, 6) in parallel, then (0, 6) and (1, 7)
    ([0, 1, 2, 3], [0, 2, 4])
    """
    if not len(source):
        return TBatches(np.empty(0, dtype=np.int64), np.zeros(1, dtype=np.int64))
    group = _groups(source, target, int(max(source.max(), target.max())) + 1)
    return TBatches(
        np.argsort(group, kind="stable"), np.concatenate([[0], np.cumsum(np.bincount(group))])
    )


@kernel
def _groups(source: IntArray, target: IntArray, num_nodes: int) -> IntArray:
    """Return the first group after the groups of both parties' earlier events, for each event."""
    next_group = np.zeros(num_nodes, dtype=np.int64)
    group = np.empty(len(source), dtype=np.int64)
    for event in range(len(source)):
        group[event] = max(next_group[source[event]], next_group[target[event]])
        next_group[source[event]] = next_group[target[event]] = group[event] + 1
    return group


class LatestInstances:
    """Finds a node's latest instance before any event of a stretch of a stream.

    In contrast to `LastInstances` the stretch may begin anywhere in the stream, with the latest
    instances before it. A self-loop counts as its source's instance.

    >>> before = np.array([-1, -1, 3, 6, -1, -1])
    >>> latest = LatestInstances(np.array([4, 0, 2, 5, 0, 4]), first=14, earlier=before)
    >>> latest.before(np.array([4, 4, 4, 2, 3]), np.array([7, 8, 10, 8, 9])).tolist()
    [-1, 14, 19, 3, 6]
    """

    def __init__(self, node: IntArray, first: int = 0, earlier: IntArray | None = None) -> None:
        """Take the node of the instances from `first` on, and each node's latest one before."""
        self._first, self._earlier = first, earlier
        is_second_side = np.zeros(len(node), dtype=bool)
        is_second_side[1::2] = node[1::2] == node[0::2]
        instance = np.flatnonzero(~is_second_side)
        # (node, instance) as one number; the stride leaves room for what comes after the last.
        self._stride = len(node) + 1
        self._number = np.sort(node[instance] * self._stride + instance)

    def before(self, node: IntArray, event: IntArray) -> IntArray:
        """Return the latest instance of each node strictly before an event, or NONE."""
        earlier = NONE if self._earlier is None else self._earlier[node]
        if not len(self._number):
            return np.broadcast_to(earlier, node.shape).copy()
        entry = np.searchsorted(self._number, node * self._stride + 2 * event - self._first) - 1
        number = self._number[entry]
        is_known = (entry >= 0) & (number // self._stride == node)
        return np.where(is_known, self._first + number % self._stride, earlier)
