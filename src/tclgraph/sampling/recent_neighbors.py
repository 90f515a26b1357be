"""The neighbours that nodes met last, strictly before a time.

Simultaneous events do not see each other: what happened at the very time that is asked for does not
count, whatever its place in the log. A neighbour is given by its instance at the event where it was
met, which also tells when that was. Meeting oneself counts once.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit

from tclgraph.arrays import BoolArray, FloatArray, IntArray
from tclgraph.dependency_graph.graph import NONE, DependencyGraph
from tclgraph.events.node_space import NodeSpace
from tclgraph.events.stream import EventStream
from tclgraph.sampling.last_instances import LastInstances
from tclgraph.sampling.negatives import uniform_negatives


@dataclass(frozen=True, slots=True)
class RecentNeighbors:
    """One row per query, the latest neighbour first."""

    instance: IntArray
    """NONE where there are no more."""
    node: IntArray
    """0 there."""
    time: FloatArray
    """When they were met, in seconds; there the time that was asked for."""

    @property
    def is_real(self) -> BoolArray:
        real: BoolArray = self.instance != NONE
        return real

    @property
    def count(self) -> IntArray:
        """How many each row has."""
        count: IntArray = self.is_real.sum(axis=1)
        return count

    def of(self, rows: IntArray, most: int) -> "RecentNeighbors":
        """Of some rows only the latest ones, so many at most."""
        return RecentNeighbors(
            self.instance[rows, :most], self.node[rows, :most], self.time[rows, :most]
        )


def recent_neighbors(
    graph: DependencyGraph, latest: IntArray, time: FloatArray, count: int
) -> RecentNeighbors:
    """At most so many neighbours of some nodes, each strictly before its time.

    A node is given by one of its instances, from which its past is followed back: its last one
    (`graph.last_instance`), or any later than those looked for. A negative one has no past.

    >>> from tclgraph.events.node_space import NodeSpace
    >>> graph = DependencyGraph(NodeSpace(kind="one-mode", num_sources=4, num_targets=4))
    >>> graph.extend(np.array([0, 1, 2, 0, 0, 3]), np.array([1.0, 2.0, 2.0]))
    >>> recent_neighbors(graph, graph.last_instance[[0, 0]], np.array([2.0, 9.0]), 2).node.tolist()
    [[1, 0], [3, 2]]
    """
    shape = len(latest), count
    found = RecentNeighbors(
        np.full(shape, NONE), np.zeros(shape, dtype=np.int64), np.repeat(time, count).reshape(shape)
    )
    _walk(
        latest,
        time,
        graph.node,
        graph.previous,
        graph.time,
        found.instance,
        found.node,
        found.time,
    )
    return found


@dataclass(frozen=True, slots=True)
class TimedNodes:
    """The distinct (node, time) pairs that a batch of events asks for."""

    node: IntArray
    latest: IntArray
    """Each node's last instance strictly before its time, negative without one."""
    time: FloatArray
    position: IntArray
    """Where a source, its true target and its negatives are among them, a row per event."""


class TimedBatches:
    """The training stream in batches of consecutive events, with negatives."""

    def __init__(self, train: EventStream, batch_size: int, num_negatives: int) -> None:
        self.graph = DependencyGraph(NodeSpace.of(train))
        self.graph.append(train)
        self._last = LastInstances(self.graph)
        self._batch_size, self._num_negatives = batch_size, num_negatives
        self._candidates = np.unique(train.target)
        if len(self._candidates) == 1:  # nothing else was ever met, so anything else will do
            self._candidates = np.arange(train.num_targets)

    def __len__(self) -> int:
        return -(-len(self.graph) // self._batch_size)

    def events(self, batch: int) -> IntArray:
        first = batch * self._batch_size
        return np.arange(first, min(first + self._batch_size, len(self.graph)))

    def draw(self, batch: int, random: np.random.Generator) -> TimedNodes:
        """A batch with fresh negatives."""
        graph, event = self.graph, self.events(batch)
        first_target = graph.space.first_target
        both = graph.node[2 * event[0] : 2 * event[-1] + 2].reshape(-1, 2)
        negatives = uniform_negatives(
            both[:, 1] - first_target, self._candidates, self._num_negatives, random
        )
        node = np.concatenate([both, negatives + first_target], axis=1)
        # The first of the events at a time: what is before it is strictly earlier.
        first = np.searchsorted(graph.time, graph.time[event])
        pairs = node * len(graph) + first[:, None]
        distinct, position = np.unique(pairs, return_inverse=True)
        node_of, first_of = np.divmod(distinct, len(graph))
        return TimedNodes(
            node=node_of,
            latest=self._last.before(node_of, first_of),
            time=graph.time[first_of],
            position=position.reshape(node.shape),
        )


@njit(cache=True, nogil=True)
def _walk(
    latest: IntArray,
    asked: FloatArray,
    node: IntArray,
    previous: IntArray,
    time: FloatArray,
    met: IntArray,
    met_node: IntArray,
    met_time: FloatArray,
) -> None:
    for query in range(len(latest)):
        own = latest[query]
        found = 0
        while own >= 0 and found < met.shape[1]:
            event = own >> 1
            if time[event] < asked[query]:
                met[query, found] = own ^ 1
                met_node[query, found] = node[own ^ 1]
                met_time[query, found] = time[event]
                found += 1
            event = previous[own]
            if event < 0:
                break
            own = 2 * event if node[2 * event] == node[own] else 2 * event + 1
