"""The most recent neighbors of nodes, from events strictly before a time.

Events at the query time itself do not count, whatever their place in the log, so simultaneous
events do not see each other. A neighbor is given by its instance at the shared event, which also
determines the time. A self-loop counts once, with the node as its own neighbor.
"""

from dataclasses import dataclass

import numpy as np

from tclgraph.arrays import BoolArray, FloatArray, IntArray
from tclgraph.compilation import kernel
from tclgraph.dependency_graph.graph import NONE, DependencyGraph
from tclgraph.events.node_space import NodeSpace
from tclgraph.events.stream import EventStream
from tclgraph.sampling.last_instances import LastInstances
from tclgraph.sampling.negatives import uniform_negatives


@dataclass(frozen=True, slots=True)
class RecentNeighbors:
    """Neighbors of many queries: one row per query, the latest neighbor first."""

    instance: IntArray
    """Instance of each neighbor; NONE at positions without a neighbor."""
    node: IntArray
    """Node of each neighbor; 0 at positions without a neighbor."""
    time: FloatArray
    """Time of the shared event in seconds; the query time at positions without a neighbor."""

    @property
    def is_real(self) -> BoolArray:
        """Mask of the positions that hold a neighbor."""
        real: BoolArray = self.instance != NONE
        return real

    @property
    def count(self) -> IntArray:
        """Number of neighbors in each row."""
        count: IntArray = self.is_real.sum(axis=1)
        return count

    def then(self, other: "RecentNeighbors") -> "RecentNeighbors":
        """Return these rows, followed by other rows."""
        return RecentNeighbors(
            np.concatenate([self.instance, other.instance]),
            np.concatenate([self.node, other.node]),
            np.concatenate([self.time, other.time]),
        )

    def of(self, rows: IntArray, most: int) -> "RecentNeighbors":
        """Return the given rows with at most the `most` latest neighbors of each."""
        return RecentNeighbors(
            self.instance[rows, :most], self.node[rows, :most], self.time[rows, :most]
        )


def recent_neighbors(
    graph: DependencyGraph, latest: IntArray, time: FloatArray, count: int
) -> RecentNeighbors:
    """Return at most `count` neighbors of each node from events strictly before its time.

    A node is given by one of its instances, from which its events are followed backwards: its last
    one (`graph.last_instance`), or any other that is not earlier than the events looked for. A
    negative instance stands for a node without events.

    >>> from tclgraph.events.node_space import NodeSpace
    >>> graph = DependencyGraph(NodeSpace(kind="one-mode", num_sources=4, num_targets=4))
    >>> graph.extend(np.array([0, 1, 2, 0, 0, 3]), np.array([1.0, 2.0, 2.0]))
    >>> recent_neighbors(graph, graph.last_instance[[0, 0]], np.array([2.0, 9.0]), 2).node.tolist()
    [[1, 0], [3, 2]]
    """
    shape = len(latest), count
    neighbors = RecentNeighbors(
        np.full(shape, NONE), np.zeros(shape, dtype=np.int64), np.repeat(time, count).reshape(shape)
    )
    _walk_back(
        latest,
        time,
        graph.node,
        graph.previous,
        graph.time,
        neighbors.instance,
        neighbors.node,
        neighbors.time,
    )
    return neighbors


@dataclass(frozen=True, slots=True)
class TimedNodes:
    """The distinct (node, time) pairs whose states a batch of events needs."""

    node: IntArray
    latest: IntArray
    """Last instance of each node strictly before its time; negative if there is none."""
    time: FloatArray
    position: IntArray
    """Indices of the source, the true target and the negatives of each event in these arrays."""


class TimedBatches:
    """Divides the training stream into batches of consecutive events, with negatives."""

    def __init__(self, train: EventStream, batch_size: int, num_negatives: int) -> None:
        self.graph = DependencyGraph(NodeSpace.of(train))
        self.graph.append(train)
        self._last = LastInstances(self.graph)
        self._batch_size, self._num_negatives = batch_size, num_negatives
        self._candidates = np.unique(train.target)
        if len(self._candidates) == 1:  # no other target to draw from the training events
            self._candidates = np.arange(train.num_targets)

    def __len__(self) -> int:
        return -(-len(self.graph) // self._batch_size)

    def events(self, batch: int) -> IntArray:
        """Return the indices of the events of a batch."""
        first = batch * self._batch_size
        return np.arange(first, min(first + self._batch_size, len(self.graph)))

    def draw(self, batch: int, random: np.random.Generator) -> TimedNodes:
        """Return a batch with newly drawn negatives."""
        graph, event = self.graph, self.events(batch)
        first_target = graph.space.first_target
        parties = graph.node[2 * event[0] : 2 * event[-1] + 2].reshape(-1, 2)
        negatives = uniform_negatives(
            parties[:, 1] - first_target, self._candidates, self._num_negatives, random
        )
        node = np.concatenate([parties, negatives + first_target], axis=1)
        # The first event at the same time: all events before it are strictly earlier.
        first = np.searchsorted(graph.time, graph.time[event])
        pairs = node * len(graph) + first[:, None]
        distinct, position = np.unique(pairs, return_inverse=True)
        distinct_node, distinct_first = np.divmod(distinct, len(graph))
        return TimedNodes(
            node=distinct_node,
            latest=self._last.before(distinct_node, distinct_first),
            time=graph.time[distinct_first],
            position=position.reshape(node.shape),
        )


@kernel
def _walk_back(
    latest: IntArray,
    query_time: FloatArray,
    node: IntArray,
    previous: IntArray,
    time: FloatArray,
    neighbor: IntArray,
    neighbor_node: IntArray,
    neighbor_time: FloatArray,
) -> None:
    """Write the neighbors of each query to the last three arrays, latest first."""
    for query in range(len(latest)):
        own = latest[query]
        count = 0
        while own >= 0 and count < neighbor.shape[1]:
            event = own >> 1
            if time[event] < query_time[query]:
                neighbor[query, count] = own ^ 1
                neighbor_node[query, count] = node[own ^ 1]
                neighbor_time[query, count] = time[event]
                count += 1
            event = previous[own]
            if event < 0:
                break
            own = 2 * event if node[2 * event] == node[own] else 2 * event + 1
