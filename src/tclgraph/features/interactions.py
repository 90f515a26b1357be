"""Who has interacted with whom, for every event of a dependency graph.

What this file derives from a log does not depend on the time of a query, so one `InteractionLog`
serves any number of `HistoryState`s over the same graph.
"""

import numpy as np

from tclgraph.arrays import IntArray
from tclgraph.dependency_graph.graph import NONE, DependencyGraph, grown
from tclgraph.events.pair_table import PairTable
from tclgraph.features.columns import MAX_PAIRS
from tclgraph.features.link_kernels import link_events
from tclgraph.features.log_arrays import Events, NodeLinks
from tclgraph.features.time_scale import TimeScale

_MIN_LISTED = 4 * (MAX_PAIRS + 1)


class InteractionLog:
    """Extends a dependency graph by links between events of the same node or the same two nodes.

    The graph may grow. `Events.neighbors` leaves out self-loops; the lists of latest neighbors
    include them.

    >>> from tclgraph.events.node_space import NodeSpace
    >>> from tclgraph.events.stream import EventStream
    >>> from tclgraph.features.log_arrays import PairLink
    >>> from tclgraph.features.time_scale import TimeScale
    >>> stream = EventStream.from_columns(list("aaa"), list("xyx"), [0.0, 5.0, 7.0])
    >>> graph = DependencyGraph(NodeSpace.of(stream))
    >>> graph.append(stream)
    >>> log = InteractionLog(graph, TimeScale.measure(graph))
    >>> log.events().pairs[:, PairLink.PREVIOUS].tolist()
    [-1, -1, 0]
    """

    def __init__(
        self, graph: DependencyGraph, time_scale: TimeScale, num_choices: int | None = None
    ) -> None:
        """Take a graph that may already have events, and the scale of the training events.

        The unit of the walk feature is a uniform choice among `num_choices` targets; None: all.
        """
        self.graph = graph
        self._num_events = 0
        # Lengths of `Events.lists` and `Events.neighbors` that are in use.
        self._sizes: IntArray = np.zeros(2, np.int64)
        # Arrays have room to spare and double when it runs out, as those of the graph.
        space = graph.space
        self._arrays = Events.empty(
            space.first_target, space.num_nodes, num_choices or space.num_targets, time_scale
        )
        self._pair_table = PairTable()
        self._last_of_pair: IntArray = np.empty(0, np.int64)
        self._links = NodeLinks.empty(graph.space.num_nodes, graph.space.num_targets)

    def events(self) -> Events:
        """Return the arrays of all events that the graph has now."""
        num_events = len(self.graph)
        if self._num_events < num_events:
            self._update()
        arrays = self._arrays
        return arrays._replace(
            time=self.graph.time,
            node=self.graph.node,
            **{
                name: getattr(arrays, name)[: 2 * num_events]
                for name in ("hops", "totals", "is_new")
            },
            pairs=arrays.pairs[:num_events],
            pair_times=arrays.pair_times[:num_events],
            earlier_targets=arrays.earlier_targets[:num_events],
        )

    def _update(self) -> None:
        """Add the events that the graph has gained."""
        event = self._num_events
        self._num_events = len(self.graph)
        self._reserve(self._num_events)
        source, target = self.graph.node[2 * event :: 2], self.graph.node[2 * event + 1 :: 2]
        # A pair does not depend on the direction.
        entry = self._pair_table.add(np.minimum(source, target), np.maximum(source, target))
        if len(self._pair_table) > len(self._last_of_pair):
            size = max(len(self._pair_table), 2 * len(self._last_of_pair))
            num_known = len(self._last_of_pair)
            self._last_of_pair = grown(self._last_of_pair, size)
            self._last_of_pair[num_known:] = NONE
        while event < self._num_events:
            event = link_events(
                event, entry, self._last_of_pair, self._links, self._sizes, self.events()
            )
            if event < self._num_events:
                lists, neighbors = self._arrays.lists, self._arrays.neighbors
                self._arrays = self._arrays._replace(
                    lists=grown(lists, max(_MIN_LISTED, 2 * len(lists))),
                    neighbors=grown(neighbors, max(_MIN_LISTED, 2 * len(neighbors))),
                )

    def _reserve(self, num_events: int) -> None:
        """Make room for this number of events in all."""
        arrays = self._arrays
        if num_events <= len(arrays.pairs):
            return
        room = max(num_events, 2 * len(arrays.pairs))
        is_bipartite = arrays.first_target > 0
        pairs = _in_cache_lines(arrays.pairs, room)
        self._arrays = arrays._replace(
            hops=grown(arrays.hops, 2 * room),
            pairs=pairs,
            pair_times=pairs.view(np.float64),
            totals=grown(arrays.totals, 2 * room),
            is_new=grown(arrays.is_new, 2 * room),
            earlier_targets=grown(arrays.earlier_targets, room if is_bipartite else 0),
        )


def _in_cache_lines(table: IntArray, num_rows: int) -> IntArray:
    """Copy rows of 64 bytes to a longer table in which each row lies in one line of the cache."""
    size = table.shape[1] * table.itemsize
    memory = np.empty(num_rows * size + size, np.uint8)
    start = -memory.ctypes.data % size
    longer = memory[start : start + num_rows * size].view(table.dtype).reshape(num_rows, -1)
    longer[: len(table)] = table
    return longer
