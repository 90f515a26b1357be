"""Who is around whom in a graph: the ends of short random walks.

Walks of a fixed length are started at every node, and two nodes are a pair if they are on the same
walk, at most a window apart. Steps go to a neighbor in proportion to its weight, whatever came
before, so a node's partner k steps on is where k steps from the node end (and so is the one k steps
back, once a walk has gone on for a while: on an undirected graph nobody can tell in which direction
it went). Pairs are drawn that way when they are wanted, and no walk is ever kept.
"""

import numpy as np

from tclgraph.arrays import IntArray
from tclgraph.sampling.snapshots import Adjacency

_WALK_LENGTH = 20
_WINDOW = 10


class ContextPairs:
    """Partners of nodes that have neighbors."""

    def __init__(self, graph: Adjacency) -> None:
        self._graph = graph
        self._ahead = np.concatenate([[0.0], np.cumsum(graph.weight)])
        # A walk of 20 has 19 pairs of neighbors on it, and 10 that are ten steps apart.
        pairs = _WALK_LENGTH - np.arange(1, _WINDOW + 1)
        self._longest_step = np.cumsum(pairs) / pairs.sum()

    def draw(self, node: IntArray, count: int, random: np.random.Generator) -> IntArray:
        """So many partners of each node, [node, count]."""
        at = np.repeat(node, count)
        distance = 1 + np.searchsorted(self._longest_step, random.random(len(at)), side="right")
        walking = np.argsort(-distance, kind="stable")  # those with the longest way first
        remaining = np.bincount(distance, minlength=_WINDOW + 1)[::-1].cumsum()[::-1]
        for steps in range(1, _WINDOW + 1):
            moving = walking[: remaining[steps]]
            at[moving] = self._step(at[moving], random)
        return at.reshape(len(node), count)

    def _step(self, node: IntArray, random: np.random.Generator) -> IntArray:
        start, stop = self._graph.start[node], self._graph.start[node + 1]
        low, high = self._ahead[start], self._ahead[stop]
        place = low + (high - low) * random.random(len(node))
        found = np.searchsorted(self._ahead, place, side="right") - 1
        # Rounding could lead just beyond the row.
        reached: IntArray = self._graph.neighbor[np.minimum(found, stop - 1)]
        return reached
