"""Streams, states and queries that the tests of history features share."""

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from tclgraph.arrays import FloatArray, IntArray, ScoreArray
from tclgraph.dependency_graph.graph import DependencyGraph
from tclgraph.events.node_space import NodeSpace
from tclgraph.events.stream import EventStream, GraphKind
from tclgraph.features.block import HistoryFeatures
from tclgraph.features.interactions import InteractionLog
from tclgraph.features.state import HistoryState
from tclgraph.features.time_scale import TimeScale
from tclgraph.testing.streams import streams
from tests.reference.history import Features, History

# Windows of an hour, a day and a week. Times of drawn streams are up to 20 ticks apart. A tick of a
# quarter hour or half a day puts events on both sides of the start of a window, and often on it.
TIME_SCALE = TimeScale(unit=2.0, windows=(3_600.0, 86_400.0, 604_800.0))
TICKS = (0.25, 900.0, 10_000.0, 43_200.0)
NUM_WITHOUT_EVENTS = 2


@st.composite
def spread_streams(draw: st.DrawFn) -> EventStream:
    stream = draw(streams())
    ticks = (stream.time - 1_082_040_961) * 4
    time = 1_082_040_961 + ticks * draw(st.sampled_from(TICKS))
    return EventStream.from_columns(stream.source, stream.target, time, kind=stream.kind)


def space_of(stream: EventStream) -> NodeSpace:
    """Return the node space of a stream, enlarged by nodes that have no events."""
    return NodeSpace(
        kind=stream.kind,
        num_sources=stream.num_sources + NUM_WITHOUT_EVENTS,
        num_targets=stream.num_targets + NUM_WITHOUT_EVENTS,
    )


def log_of(stream: EventStream) -> InteractionLog:
    graph = DependencyGraph(space_of(stream))
    graph.append(stream)
    return InteractionLog(graph, TIME_SCALE)


def history_of(stream: EventStream, time_scale: TimeScale = TIME_SCALE) -> History:
    columns = (stream.source.tolist(), stream.target.tolist(), stream.time.tolist())
    space = space_of(stream)
    events = list(zip(*columns, strict=True))
    return History(
        events, space.first_target, space.num_targets, time_scale.unit, time_scale.windows
    )


def all_sources(stream: EventStream, time: float) -> tuple[IntArray, FloatArray]:
    """Return a query of every source at the same time."""
    num_sources = space_of(stream).num_sources
    return np.arange(num_sources), np.full(num_sources, time)


def pairs_of(features: HistoryFeatures, query: int) -> slice:
    return slice(int(features.pair_start[query]), int(features.pair_start[query + 1]))


class Case:
    """A stream, a time after its end, and the features of all its sources at that time."""

    def __init__(self, stream: EventStream, now: float) -> None:
        self.now = now
        self.space = space_of(stream)
        self.sources = range(self.space.num_sources)
        self.history = history_of(stream)
        self.features = HistoryState(log_of(stream)).features(*all_sources(stream, now))
        self.candidate = self.features.candidate.to_dense()

    def assert_source_features(self, source: int) -> None:
        expected = self.history.source_features(source, self.now)
        assert_near(self.features.source[source][None], [expected])

    def assert_pair_features(self, source: int) -> None:
        neighbors = self.history.latest_neighbors(source)
        rows = pairs_of(self.features, source)
        targets = [neighbor - self.space.first_target for neighbor in neighbors]
        assert self.features.pair_target[rows].tolist() == targets
        expected = [self.history.pair_features(source, node, self.now) for node in neighbors]
        assert_near(self.features.pair[rows], expected)

    def assert_activity_features(self, source: int, columns: slice) -> None:
        targets = range(self.space.num_targets)
        expected = [self.history.activity_features(target, self.now) for target in targets]
        self._assert_candidates(source, columns, expected)

    def assert_nearby_features(self, source: int, columns: slice) -> None:
        self._assert_candidates(source, columns, self.history.nearby_features(source))

    def _assert_candidates(self, source: int, columns: slice, expected: list[Features]) -> None:
        """Compare the features of all candidates, and of those that are in a pair."""
        assert_near(self.candidate[source, columns].T, expected)
        rows = pairs_of(self.features, source)
        in_pairs = [expected[target] for target in self.features.pair_target[rows].tolist()]
        assert_near(self.features.pair_candidate[rows, columns], in_pairs)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    stream = draw(spread_streams())
    num_events = draw(st.integers(0, len(stream)))
    last_time = stream.time[max(num_events - 1, 0)]
    return Case(stream[:num_events], last_time + draw(st.sampled_from((0.0, *TICKS))))


def assert_near(table: ScoreArray, expected: Sequence[Features]) -> None:
    """Compare features, which are single-precision logarithms or shares, with the reference."""
    assert len(table) == len(expected)
    for row, features in zip(table, expected, strict=True):
        assert_allclose(row, list(features.values()), rtol=0, atol=1e-5, err_msg=str(features))


def assert_query_near(block: HistoryFeatures, query: int, alone: HistoryFeatures) -> None:
    """Assert that a query of a block has the features of the only query of another block."""
    rows = pairs_of(block, query)
    assert alone.pair_start.tolist() == [0, rows.stop - rows.start]
    assert_array_equal(block.pair_target[rows], alone.pair_target)
    # Walks of several queries add up in another order.
    for ours, theirs in (
        (block.source[query], alone.source[0]),
        (block.candidate.to_dense()[query], alone.candidate.to_dense()[0]),
        (block.pair_inputs[rows], alone.pair_inputs),
    ):
        assert_allclose(ours, theirs, rtol=0, atol=2e-6)


def long_stream(kind: GraphKind) -> EventStream:
    """Return a stream that exceeds all limits on events and neighbors.

    Source 0 has most events; it interacted with ten of its neighbors only at the beginning, and
    with most others again and again. Source 1 has four neighbors in its latest 130 events. Most
    events of source 2 are with one neighbor. Two targets have 70 more neighbors, and
    source 0 interacts with these two late.
    """
    random = np.random.default_rng(7)
    num_events = 3_600
    source = np.where(random.random(num_events) < 0.65, 0, random.integers(1, 6, num_events))
    target = random.integers(10, 100, num_events)
    target[:60] = random.integers(0, 10, 60)
    target[np.flatnonzero(source == 1)[-130:]] = random.integers(90, 94, 130)
    target[source == 2] = np.where(random.random(np.count_nonzero(source == 2)) < 0.8, 80, 81)
    source[60:200], target[60:200] = np.repeat(np.arange(6, 76), 2), np.tile([98, 99], 70)
    target[:1_000][(source[:1_000] == 0) & (target[:1_000] >= 98)] -= 50
    if kind == "one-mode":
        target += 76
        is_turned = random.random(num_events) < 0.3
        source, target = np.where(is_turned, target, source), np.where(is_turned, source, target)
    time = np.cumsum(random.choice([0.0, 60.0, 600.0, 3_600.0], size=num_events))
    return EventStream.from_columns(source, target, time, kind=kind)


def long_case(kind: GraphKind) -> tuple[Case, list[int]]:
    """Return the case of the long stream, and the ids of its sources 0, 1 and 2."""
    stream = long_stream(kind)
    return Case(stream, stream.time[-1] + 60.0), stream.sources.ids([0, 1, 2]).tolist()
