"""Random walks along events with strictly increasing times (the corpus of CTDNE).

A walk begins with an event, from its source to its target, and continues along later events of the
current node. After the first event the direction of an event does not matter; otherwise every walk
in a bipartite graph would end at its first target. A walk ends when the current node has no later
event, or when it has its full length.
"""

from typing import Literal, TypeAlias

import numpy as np

from tclgraph.arrays import FloatArray, IntArray
from tclgraph.compilation import kernel
from tclgraph.dependency_graph.graph import NONE, DependencyGraph
from tclgraph.dependency_graph.interval_scaling import IntervalScale

Bias: TypeAlias = Literal["uniform", "exponential"]
"""How the next event is drawn. uniform: all later events of the node are equally likely.
exponential: the probability decays with time, by a factor of e per mean gap between a node's
events."""


class TemporalWalks:
    """Draws walks from a complete graph; memory is linear in the number of events.

    >>> from tclgraph.events.node_space import NodeSpace
    >>> from tclgraph.events.stream import EventStream
    >>> stream = EventStream.from_columns(list("aab"), list("xyx"), [0.0, 5.0, 7.0])
    >>> graph = DependencyGraph(NodeSpace.of(stream))
    >>> graph.append(stream)
    >>> walks = TemporalWalks(graph, "uniform").draw(20, 4, np.random.default_rng(0))
    >>> sorted({tuple(walk) for walk in walks.tolist()})  # only x has a later event
    [(0, 2, 1, -1), (0, 3, -1, -1), (1, 2, -1, -1)]
    """

    def __init__(self, graph: DependencyGraph, bias: Bias) -> None:
        self._node = graph.node.copy()
        self._time = graph.time.copy()
        # A self-loop has two instances of the same node, but is one event.
        is_second_side = np.zeros(len(self._node), dtype=bool)
        is_second_side[1::2] = self._node[1::2] == self._node[0::2]
        instance = np.flatnonzero(~is_second_side)
        self._instance = instance[np.argsort(self._node[instance], kind="stable")]
        count = np.bincount(self._node[instance], minlength=graph.space.num_nodes)
        self._start = np.concatenate([[0], np.cumsum(count)])
        if bias == "uniform":
            log_weight = np.zeros(len(instance))
        else:
            elapsed = self._time[self._instance // 2] - self._time[0]
            log_weight = -IntervalScale.measure(graph).scaled(elapsed, "linear")
        self._log_tail = _log_tails(self._start, log_weight)

    def draw(self, count: int, length: int, random: np.random.Generator) -> IntArray:
        """Return the nodes of random walks, [count, length]; NONE after the end of a walk."""
        first = random.integers(len(self._time), size=count)
        walks: IntArray = _walk(
            first,
            length,
            self._node,
            self._time,
            self._start,
            self._instance,
            self._log_tail,
            random,
        )
        return walks


@kernel
def _log_tails(start: IntArray, log_weight: FloatArray) -> FloatArray:
    """Return the log of the summed weights of each event and all later events of the same node."""
    log_tail = log_weight.copy()
    for node in range(len(start) - 1):
        for entry in range(start[node + 1] - 2, start[node] - 1, -1):
            # Weights decrease with time, so the first weight of a tail is its largest.
            log_tail[entry] += np.log1p(np.exp(log_tail[entry + 1] - log_tail[entry]))
    return log_tail


@kernel
def _walk(
    first: IntArray,
    length: int,
    node: IntArray,
    time: FloatArray,
    start: IntArray,
    instance: IntArray,
    log_tail: FloatArray,
    random: np.random.Generator,
) -> IntArray:
    """Return one walk that begins with each of these events."""
    walks = np.full((len(first), length), NONE, np.int64)
    for walk in range(len(first)):
        now = time[first[walk]]
        walks[walk, 0] = node[2 * first[walk]]
        walks[walk, 1] = node[2 * first[walk] + 1]
        for step in range(2, length):
            current = walks[walk, step - 1]
            end = start[current + 1]
            low, high = start[current], end
            while low < high:  # find the first event after now
                middle = (low + high) // 2
                if time[instance[middle] // 2] > now:
                    high = middle
                else:
                    low = middle + 1
            if low == end:
                break
            # An event or a later one is drawn with probability exp(its tail - the first tail).
            least = log_tail[low] + np.log(1.0 - random.random())
            high = end - 1
            while low < high:  # find the last event with at least this tail
                middle = (low + high + 1) // 2
                if log_tail[middle] >= least:
                    low = middle
                else:
                    high = middle - 1
            now = time[instance[low] // 2]
            walks[walk, step] = node[instance[low] ^ 1]
    return walks
