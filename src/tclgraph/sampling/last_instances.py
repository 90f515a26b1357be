"""Where each node stood just before any event of a finished stream."""

import numpy as np

from tclgraph.arrays import IntArray
from tclgraph.dependency_graph.graph import DependencyGraph
from tclgraph.sampling.dependency_subgraphs import singleton


class LastInstances:
    """A node's latest instance strictly before an event, by binary search.

    Built once from a whole graph, for training; a live graph's `last_instance` tells the present.
    """

    def __init__(self, graph: DependencyGraph) -> None:
        node = graph.node
        # Where an event is a self-loop, its source's instance stands for the node.
        is_twin = np.zeros(len(node), dtype=bool)
        is_twin[1::2] = node[1::2] == node[0::2]
        instance = np.flatnonzero(~is_twin)
        # (node, event) as one number; the stride leaves room for the event after the last.
        self._stride = len(graph) + 1
        number = node[instance] * self._stride + instance // 2
        order = np.argsort(number)
        self._number = number[order]
        self._instance = instance[order]

    def before(self, node: IntArray, event: IntArray) -> IntArray:
        """Latest instances of nodes before events, singletons where there is none."""
        place = np.searchsorted(self._number, node * self._stride + event) - 1
        is_known = (place >= 0) & (self._number[place] // self._stride == node)
        return np.where(is_known, self._instance[place], singleton(node))
