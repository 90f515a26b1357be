"""The latest instance of each node before any event of a complete stream."""

import numpy as np

from tclgraph.arrays import IntArray
from tclgraph.dependency_graph.graph import DependencyGraph
from tclgraph.sampling.dependency_subgraphs import singleton


class LastInstances:
    """Finds a node's latest instance strictly before an event by binary search.

    It is built once from a complete graph, for training. The current state of a growing graph is
    `DependencyGraph.last_instance`.
    """

    def __init__(self, graph: DependencyGraph) -> None:
        node = graph.node
        # A self-loop has two instances of the same node; the source's instance represents it.
        is_second_side = np.zeros(len(node), dtype=bool)
        is_second_side[1::2] = node[1::2] == node[0::2]
        instance = np.flatnonzero(~is_second_side)
        # (node, event) as one number; the stride leaves room for the index after the last event.
        self._stride = len(graph) + 1
        number = node[instance] * self._stride + instance // 2
        order = np.argsort(number)
        self._number = number[order]
        self._instance = instance[order]

    def before(self, node: IntArray, event: IntArray) -> IntArray:
        """Return the latest instance of each node before its event, or else its singleton."""
        entry = np.searchsorted(self._number, node * self._stride + event) - 1
        is_known = (entry >= 0) & (self._number[entry] // self._stride == node)
        return np.where(is_known, self._instance[entry], singleton(node))
