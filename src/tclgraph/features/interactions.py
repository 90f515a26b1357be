"""Who has interacted with whom, for every event of a dependency graph.

What this file derives from a log does not depend on the time of a query, so one `InteractionLog`
serves any number of `HistoryState`s over the same graph.
"""

import numpy as np

from tclgraph.arrays import IntArray
from tclgraph.dependency_graph.graph import NONE, DependencyGraph, grown
from tclgraph.features.instance_kernels import link_following
from tclgraph.features.state_arrays import NOT_NEW, Events


class InteractionLog:
    """Extends a dependency graph by links to following instances and to previous neighbors.

    The graph may grow. A self-loop adds no neighbor.

    >>> from tclgraph.events.node_space import NodeSpace
    >>> from tclgraph.events.stream import EventStream
    >>> stream = EventStream.from_columns(list("aaa"), list("xyx"), [0.0, 5.0, 7.0])
    >>> graph = DependencyGraph(NodeSpace.of(stream))
    >>> graph.append(stream)
    >>> events = InteractionLog(graph).events()
    >>> events.following.tolist(), events.previous_neighbor.tolist()
    ([2, 5, 4, -1, -1, -1], [-1, -1, 0, -1, -2, -2])
    """

    def __init__(self, graph: DependencyGraph) -> None:
        self.graph = graph
        self._num_events = 0
        # Arrays have room to spare and double when it runs out, as those of the graph.
        self._following = np.empty(0, dtype=np.int64)
        self._previous_neighbor = np.empty(0, dtype=np.int64)
        self._newest: IntArray = np.full(graph.space.num_nodes, NONE)
        self._pairs: set[int] = set()

    def events(self) -> Events:
        """Return the arrays of all events that the graph has now."""
        graph = self.graph
        self._update()
        return Events(
            node=graph.node,
            time=graph.time,
            previous=graph.previous,
            following=self._following[: 2 * len(graph)],
            previous_neighbor=self._previous_neighbor[: 2 * len(graph)],
            first_target=graph.space.first_target,
        )

    def _update(self) -> None:
        """Add the events that the graph has gained."""
        start, stop = self._num_events, len(self.graph)
        if start == stop:
            return
        if 2 * stop > len(self._following):
            size = max(2 * stop, 2 * len(self._following))
            self._following = grown(self._following, size)
            self._previous_neighbor = grown(self._previous_neighbor, size)
        node = self.graph.node
        link_following(start, node, self.graph.previous, self._following)
        self._previous_neighbor[2 * start : 2 * stop] = NOT_NEW
        for event in self._new_pairs(start):
            for instance in (2 * event, 2 * event + 1):
                self._previous_neighbor[instance] = self._newest[node[instance]]
                self._newest[node[instance]] = instance
        self._num_events = stop

    def _new_pairs(self, start: int) -> list[int]:
        """Return the new pairs among the events from `start` on, and remember them."""
        source, target = self.graph.node[2 * start :: 2], self.graph.node[2 * start + 1 :: 2]
        # A pair is one number that does not depend on the direction.
        pairs = np.minimum(source, target) * self.graph.space.num_nodes
        pairs += np.maximum(source, target)
        distinct, first_row = np.unique(pairs, return_index=True)
        rows = [
            row
            for pair, row in zip(distinct.tolist(), first_row.tolist(), strict=True)
            if pair not in self._pairs and source[row] != target[row]
        ]
        self._pairs.update(pairs[rows].tolist())
        return [start + row for row in sorted(rows)]
