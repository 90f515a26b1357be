"""Neighbors in the static graph of a stream, without times, directions and repeats; and samples.

The state of a node in the last layer of a graph network depends on its neighbors in the layer
below, these depend on their neighbors, and so on. A tree of samples would grow with every layer.
Here each layer samples once for every distinct node that it needs, so that no layer has more rows
than there are nodes.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tclgraph.arrays import IntArray
from tclgraph.events.node_space import NodeSpace
from tclgraph.events.stream import EventStream


class Hop(NamedTuple):
    """Rows of a layer's nodes, and of their sampled neighbors, in the layer below."""

    own: IntArray
    """Row of each node itself, [node]."""
    neighbor: IntArray
    """Rows of the sampled neighbors, [node, sample]."""


class StaticNeighbors:
    """Neighbors of every node in CSR format.

    Self-loops are left out, but a node without other neighbors is its own only neighbor.

    >>> events = EventStream.from_columns(list("aab"), list("xyx"), range(3))
    >>> StaticNeighbors(events).of(2).tolist()  # x interacted with a and b
    [0, 1]
    """

    def __init__(self, events: EventStream) -> None:
        space = NodeSpace.of(events)
        node = space.nodes(events)
        source, target = node[0::2], node[1::2]
        is_pair = source != target
        source, target = source[is_pair], target[is_pair]
        isolated = np.setdiff1d(np.arange(space.num_nodes), np.concatenate([source, target]))
        node = np.concatenate([source, target, isolated])
        neighbor = np.concatenate([target, source, isolated])
        # (node, neighbor) as one number, to find distinct pairs.
        link = np.unique(node * space.num_nodes + neighbor)
        self._neighbor = link % space.num_nodes
        self.degree: IntArray = np.bincount(link // space.num_nodes, minlength=space.num_nodes)
        """Number of neighbors; 1 for a node without other neighbors."""
        self._start = np.cumsum(self.degree) - self.degree

    def of(self, node: int) -> IntArray:
        """Return the neighbors of a node, ascending."""
        start = self._start[node]
        neighbors: IntArray = self._neighbor[start : start + self.degree[node]]
        return neighbors

    def sample(self, nodes: IntArray, count: int, random: np.random.Generator) -> IntArray:
        """Draw neighbors uniformly and with replacement, [node, count]."""
        offset = random.integers(self.degree[nodes, None], size=(len(nodes), count))
        drawn: IntArray = self._neighbor[self._start[nodes, None] + offset]
        return drawn

    def sample_hops(
        self, nodes: IntArray, counts: Sequence[int], random: np.random.Generator
    ) -> tuple[IntArray, list[Hop]]:
        """Sample the neighbors that a stack of layers needs to compute states of these nodes.

        `nodes` are distinct. `counts` holds the number of neighbors per node from the last layer to
        the first one. Return the nodes of the input layer, and the hops from the first layer to the
        last one.
        """
        hops = []
        for count in counts:
            neighbor = self.sample(nodes, count, random)
            needed = np.concatenate([nodes, neighbor.ravel()])
            distinct, row = np.unique(needed, return_inverse=True)
            hops.append(Hop(row[: len(nodes)], row[len(nodes) :].reshape(neighbor.shape)))
            nodes = distinct
        return nodes, hops[::-1]
