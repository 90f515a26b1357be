"""Who ever met whom: a stream without its times, directions and repeats, and samples from that.

What a node is in the last layer of a graph network depends on its neighbors in the layer before,
these on theirs, and so on. Trees of samples would grow with every layer. Here each layer samples
once for every node that it needs, so that it never has more rows than there are nodes.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tclgraph.arrays import IntArray
from tclgraph.events.node_space import NodeSpace
from tclgraph.events.stream import EventStream


class Hop(NamedTuple):
    """Where the nodes of one layer, and their samples, are among the rows of the layer below."""

    own: IntArray
    """[node]"""
    neighbor: IntArray
    """[node, sample]"""


class StaticNeighbors:
    """Neighbors of every node, in one list (CSR). Nobody is their own, but for lack of others.

    >>> events = EventStream.from_columns(list("aab"), list("xyx"), range(3))
    >>> StaticNeighbors(events).of(2).tolist()  # x, after a and b
    [0, 1]
    """

    def __init__(self, events: EventStream) -> None:
        space = NodeSpace.of(events)
        node = space.nodes(events)
        source, target = node[0::2], node[1::2]
        is_pair = source != target
        source, target = source[is_pair], target[is_pair]
        lonely = np.setdiff1d(np.arange(space.num_nodes), np.concatenate([source, target]))
        one = np.concatenate([source, target, lonely])
        other = np.concatenate([target, source, lonely])
        link = np.unique(one * space.num_nodes + other)
        self._neighbor = link % space.num_nodes
        self.degree: IntArray = np.bincount(link // space.num_nodes, minlength=space.num_nodes)
        """Number of neighbors; 1 also for a node that has but itself."""
        self._start = np.cumsum(self.degree) - self.degree

    def of(self, node: int) -> IntArray:
        start = self._start[node]
        found: IntArray = self._neighbor[start : start + self.degree[node]]
        return found

    def sample(self, nodes: IntArray, count: int, random: np.random.Generator) -> IntArray:
        """Neighbors drawn uniformly and with replacement, [node, count]."""
        place = random.integers(self.degree[nodes, None], size=(len(nodes), count))
        found: IntArray = self._neighbor[self._start[nodes, None] + place]
        return found

    def sample_hops(
        self, nodes: IntArray, counts: Sequence[int], random: np.random.Generator
    ) -> tuple[IntArray, list[Hop]]:
        """What layers need to end with these nodes, each once; counts are from them outwards.

        Returns the nodes that go into the lowest layer, and the hops from there upwards.
        """
        hops = []
        for count in counts:
            neighbor = self.sample(nodes, count, random)
            everyone = np.concatenate([nodes, neighbor.ravel()])
            rows, place = np.unique(everyone, return_inverse=True)
            hops.append(Hop(place[: len(nodes)], place[len(nodes) :].reshape(neighbor.shape)))
            nodes = rows
        return nodes, hops[::-1]
