"""The state from which history features are computed: all nodes after a number of events."""

import numpy as np

from tclgraph.arrays import FloatArray, IntArray
from tclgraph.features.activity_kernels import (
    forget_changes,
    no_changes,
    record_events,
    slide_windows,
)
from tclgraph.features.block import CandidateFeatures, HistoryFeatures
from tclgraph.features.block_kernels import Queries, compute_block
from tclgraph.features.interactions import InteractionLog
from tclgraph.features.log_arrays import Nodes
from tclgraph.features.moving_kernels import recency_ranks


class HistoryState:
    """Activity and neighbors of all nodes after the first events of a log.

    >>> from tclgraph.dependency_graph.graph import DependencyGraph
    >>> from tclgraph.events.node_space import NodeSpace
    >>> from tclgraph.events.stream import EventStream
    >>> from tclgraph.features.columns import PairColumn
    >>> from tclgraph.features.time_scale import TimeScale
    >>> stream = EventStream.from_columns(list("aab"), list("xyx"), [0.0, 5.0, 7.0])
    >>> graph = DependencyGraph(NodeSpace.of(stream))
    >>> graph.append(stream)
    >>> state = HistoryState(InteractionLog(graph, TimeScale(1.0, (2.0, 5.0, 10.0))))
    >>> features = state.features(source=np.array([0]), time=np.array([9.0]))
    >>> features.pair_target.tolist()
    [1, 0]
    >>> np.expm1(features.pair[:, PairColumn.AGE]).round(3).tolist()
    [4.0, 9.0]
    """

    def __init__(self, log: InteractionLog, num_events: int | None = None) -> None:
        """Start after the first `num_events` events of the log; None: after all."""
        self._log = log
        self._num_events = 0
        self._nodes = Nodes.empty(log.graph.space.num_nodes)
        self._changed = no_changes(log.graph.space.num_targets)
        self.update(num_events)

    def update(self, num_events: int | None = None) -> None:
        """Move on to the state after the first `num_events` events of the log; None: after all."""
        events = self._log.events()
        end = len(events.time) if num_events is None else num_events
        assert end >= self._num_events, "a state cannot go back to fewer events"
        assert end <= len(events.time), "a state cannot go beyond the events of the log"
        record_events(self._num_events, end, events, self._nodes, self._changed)
        self._num_events = end
        if end:
            # Advance the windows once, so that queries need not do it.
            slide_windows(end, events.time[end - 1], events, self._nodes, self._changed)
        forget_changes(self._changed)

    @property
    def num_bytes(self) -> int:
        """Memory of the state without the log."""
        return int(self._nodes.table.nbytes)

    def copy(self) -> "HistoryState":
        """Return a state of the same log that is updated independently."""
        state = HistoryState(self._log, 0)
        state._num_events, state._nodes = self._num_events, self._nodes.copy()
        return state

    def features(
        self,
        source: IntArray,
        time: FloatArray,
        columns: IntArray | None = None,
        *,
        reveal: bool = False,
        sample_offset: FloatArray | None = None,
        split_by_repeat: bool = False,
    ) -> HistoryFeatures:
        """Return the features of each source at its time, about distinct targets or about all.

        With `reveal`, the queries are those of the next events of the log: the first query knows
        the events of this state, and each further query knows one event more. Times ascend then,
        and none is before the last known event. The state itself does not change. `sample_offset`
        has a number between 0 and 1 for every query, with which training samples the pairs of
        sources that have many; the pair of the event is among them. With `split_by_repeat`, a query
        has pairs only if the pair of its event is among them, and candidate features only if it has
        no pairs. Both need `reveal`.
        """
        assert reveal or (sample_offset is None and not split_by_repeat), "set reveal for this"
        events = self._log.events()
        if columns is None:
            columns = np.arange(self._log.graph.space.num_targets)
        if reveal:
            num_left = len(events.time) - self._num_events
            assert len(source) <= num_left, "with reveal, the log needs an event for every query"
        queries = Queries(
            # Copies, because numba compiles a kernel again for read-only arrays.
            source=np.array(source),
            time=np.array(time),
            columns=np.array(columns),
            sample_offset=np.empty(0) if sample_offset is None else sample_offset,
            num_known=self._num_events,
            reveal=reveal,
            split_by_repeat=split_by_repeat,
        )
        ranks = recency_ranks(events, self._nodes)
        arrays = compute_block(queries, events, self._nodes.copy(), ranks)
        source_table, candidate_query, candidate, neighbors, pairs = arrays
        steady, change_start, change_column, change, moving = candidate
        neighbor_start, neighbor_target = neighbors
        pair_start, pair_target, pair_log_weight, pair_inputs = pairs
        return HistoryFeatures(
            source=source_table,
            candidate=CandidateFeatures(
                steady=steady,
                change_start=change_start,
                change_column=change_column,
                change=change,
                moving=moving,
            ),
            candidate_query=candidate_query,
            neighbor_start=neighbor_start,
            neighbor_target=neighbor_target,
            pair_start=pair_start,
            pair_target=pair_target,
            pair_log_weight=pair_log_weight,
            pair_inputs=pair_inputs,
        )
