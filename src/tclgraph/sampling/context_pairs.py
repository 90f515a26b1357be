"""Context pairs of a graph: two nodes that a random walk visits within a window.

DySAT starts random walks of a fixed length at every node and takes as a pair any two nodes that are
at most a window apart on the same walk. A step goes to a neighbor with a probability proportional
to the edge weight and does not depend on earlier steps. The partner k steps ahead of a node is
therefore the end of a walk of k steps from the node. The partner k steps behind has the same
distribution once a walk is long enough, because the walk is reversible on an undirected graph. So
partners are drawn directly, by short walks, and no long walk is stored.
"""

import numpy as np

from tclgraph.arrays import IntArray
from tclgraph.sampling.snapshots import Adjacency

_WALK_LENGTH = 20
_WINDOW = 10


class ContextPairs:
    """Draws context partners of nodes; every node that is asked for must have neighbors."""

    def __init__(self, graph: Adjacency) -> None:
        self._graph = graph
        self._cumulative_weight = np.concatenate([[0.0], np.cumsum(graph.weight)])
        # A walk of 20 nodes has 19 pairs that are one step apart, and 10 that are ten steps apart.
        num_pairs = _WALK_LENGTH - np.arange(1, _WINDOW + 1)
        self._distance_share = np.cumsum(num_pairs) / num_pairs.sum()

    def draw(self, node: IntArray, count: int, random: np.random.Generator) -> IntArray:
        """Return `count` random partners of each node, [node, count]."""
        current = np.repeat(node, count)
        distance = 1 + np.searchsorted(
            self._distance_share, random.random(len(current)), side="right"
        )
        order = np.argsort(-distance, kind="stable")  # the longest walks first
        remaining = np.bincount(distance, minlength=_WINDOW + 1)[::-1].cumsum()[::-1]
        for steps in range(1, _WINDOW + 1):
            moving = order[: remaining[steps]]
            current[moving] = self._step(current[moving], random)
        return current.reshape(len(node), count)

    def _step(self, node: IntArray, random: np.random.Generator) -> IntArray:
        start, stop = self._graph.start[node], self._graph.start[node + 1]
        low, high = self._cumulative_weight[start], self._cumulative_weight[stop]
        drawn = low + (high - low) * random.random(len(node))
        entry = np.searchsorted(self._cumulative_weight, drawn, side="right") - 1
        # Rounding can lead to the first entry of the next row.
        reached: IntArray = self._graph.neighbor[np.minimum(entry, stop - 1)]
        return reached
