"""The state from which history features are computed: all nodes after a number of events."""

import numpy as np

from tclgraph.arrays import FloatArray, IntArray
from tclgraph.features.activity_kernels import record_events
from tclgraph.features.block import HistoryFeatures
from tclgraph.features.block_kernels import compute_block
from tclgraph.features.interactions import InteractionLog
from tclgraph.features.state_arrays import Activity, Neighbors
from tclgraph.features.window_kernels import slide_windows


class HistoryState:
    """Activity and neighbors of all nodes after the first events of a log.

    >>> from tclgraph.dependency_graph.graph import DependencyGraph
    >>> from tclgraph.events.node_space import NodeSpace
    >>> from tclgraph.events.stream import EventStream
    >>> from tclgraph.features.columns import PairColumn
    >>> stream = EventStream.from_columns(list("aab"), list("xyx"), [0.0, 5.0, 7.0])
    >>> graph = DependencyGraph(NodeSpace.of(stream))
    >>> graph.append(stream)
    >>> state = HistoryState(InteractionLog(graph))
    >>> features = state.features(source=np.array([0]), time=np.array([9.0]))
    >>> features.pair_target.tolist()
    [1, 0]
    >>> np.expm1(features.pair[:, PairColumn.AGE]).round(3).tolist()
    [4.0, 9.0]
    """

    def __init__(self, log: InteractionLog, num_events: int | None = None) -> None:
        """Start after the first `num_events` events of the log; None: after all."""
        space = log.graph.space
        self._log = log
        self._num_events = 0
        self._activity = Activity.empty(space.num_nodes, space.num_targets)
        self._neighbors = Neighbors.empty(space.num_nodes, space.num_targets)
        self.update(num_events)

    def update(self, num_events: int | None = None) -> None:
        """Move on to the state after the first `num_events` events of the log; None: after all."""
        events = self._log.events()
        end = len(events.time) if num_events is None else num_events
        assert self._num_events <= end <= len(events.time), "a state cannot go back to fewer events"
        record_events(self._num_events, end, events, self._activity, self._neighbors)
        self._num_events = end
        if end:
            # Advance the windows once, so that queries need not do it.
            slide_windows(end, events.time[end - 1], events, self._activity)

    def features(
        self,
        source: IntArray,
        time: FloatArray,
        columns: IntArray | None = None,
        *,
        reveal: bool = False,
    ) -> HistoryFeatures:
        """Return the features of each source at its time, about the targets `columns` or about all.

        With `reveal`, the queries are those of the next events of the log: the first query knows
        the events of this state, and each further query knows one event more. Times ascend then,
        and none is before the last known event. The state itself does not change.
        """
        events = self._log.events()
        if columns is None:
            columns = np.arange(self._log.graph.space.num_targets)
        if reveal:
            num_left = len(events.time) - self._num_events
            assert len(source) <= num_left, "the log has an event for every query"
        arrays = compute_block(
            # Copies, because numba compiles a kernel again for read-only arrays.
            np.array(source),
            np.array(time),
            np.array(columns),
            reveal,
            self._num_events,
            events,
            self._activity.copy(),
            self._neighbors.copy(),
        )
        source_table, candidate, pair_start, pair_target, pair, pair_candidate = arrays
        return HistoryFeatures(
            source=source_table,
            candidate=candidate,
            pair_start=pair_start,
            pair_target=pair_target,
            pair=pair,
            pair_candidate=pair_candidate,
        )
