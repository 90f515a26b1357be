"""Walks along events whose times strictly increase (CTDNE's corpus).

A walk begins with an event, from its source to its target, and goes on from node to node along
later events of the node where it stands. Who acted and who was acted upon makes no difference then:
an event can be walked in both directions, or walks in a bipartite graph would end at the first
target. It ends where nothing later happens, or at its full length.
"""

from typing import Literal, TypeAlias

import numpy as np
from numba import njit

from tclgraph.arrays import FloatArray, IntArray
from tclgraph.dependency_graph.graph import NONE, DependencyGraph
from tclgraph.dependency_graph.interval_scaling import IntervalScale

Bias: TypeAlias = Literal["uniform", "exponential"]
"""uniform: all later events of a node are equally likely to be next. exponential: each is e times
less likely than one that is sooner by the mean gap between a node's events."""


class TemporalWalks:
    """Of a finished graph, with all its events sorted by node; memory is linear in their number.

    >>> from tclgraph.events.node_space import NodeSpace
    >>> from tclgraph.events.stream import EventStream
    >>> stream = EventStream.from_columns(list("aab"), list("xyx"), [0.0, 5.0, 7.0])
    >>> graph = DependencyGraph(NodeSpace.of(stream))
    >>> graph.append(stream)
    >>> walks = TemporalWalks(graph, "uniform").draw(20, 4, np.random.default_rng(0))
    >>> sorted({tuple(walk) for walk in walks.tolist()})  # b, x have nothing later, a has y
    [(0, 2, 1, -1), (0, 3, -1, -1), (1, 2, -1, -1)]
    """

    def __init__(self, graph: DependencyGraph, bias: Bias) -> None:
        self._node = graph.node.copy()
        self._time = graph.time.copy()
        # A self-loop is one event of its node, not two.
        is_twin = np.zeros(len(self._node), dtype=bool)
        is_twin[1::2] = self._node[1::2] == self._node[0::2]
        instance = np.flatnonzero(~is_twin)
        self._instance = instance[np.argsort(self._node[instance], kind="stable")]
        count = np.bincount(self._node[instance], minlength=graph.space.num_nodes)
        self._start = np.concatenate([[0], np.cumsum(count)])
        if bias == "uniform":
            log_weight = np.zeros(len(instance))
        else:
            elapsed = self._time[self._instance // 2] - self._time[0]
            log_weight = -elapsed / IntervalScale.measure(graph).mean
        self._log_tail = _log_tails(self._start, log_weight)

    def draw(self, count: int, length: int, random: np.random.Generator) -> IntArray:
        """Nodes of so many walks, [count, length]: two or more each, then NONE."""
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


@njit(cache=True, nogil=True)
def _log_tails(start: IntArray, log_weight: FloatArray) -> FloatArray:
    """For each of a node's events, the log of its weight and that of the node's later ones."""
    tail = log_weight.copy()
    for node in range(len(start) - 1):
        for place in range(start[node + 1] - 2, start[node] - 1, -1):
            # Weights fall as times rise, so that this one is the largest of its tail.
            tail[place] += np.log1p(np.exp(tail[place + 1] - tail[place]))
    return tail


@njit(cache=True, nogil=True)
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
    """Let a walk begin with each of these events."""
    walks = np.full((len(first), length), NONE, np.int64)
    for walk in range(len(first)):
        now = time[first[walk]]
        walks[walk, 0] = node[2 * first[walk]]
        walks[walk, 1] = node[2 * first[walk] + 1]
        for step in range(2, length):
            here = walks[walk, step - 1]
            end = start[here + 1]
            low, high = start[here], end
            while low < high:  # the first event after now
                middle = (low + high) // 2
                if time[instance[middle] // 2] > now:
                    high = middle
                else:
                    low = middle + 1
            if low == end:
                break
            # An event or a later one is chosen with probability exp(its tail - that of the first).
            least = log_tail[low] + np.log(1.0 - random.random())
            high = end - 1
            while low < high:  # the last event with at least that
                middle = (low + high + 1) // 2
                if log_tail[middle] >= least:
                    low = middle
                else:
                    high = middle - 1
            now = time[instance[low] // 2]
            walks[walk, step] = node[instance[low] ^ 1]
    return walks
