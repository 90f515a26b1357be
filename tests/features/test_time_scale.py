import numpy as np
import pytest

from tclgraph.dependency_graph.graph import DependencyGraph
from tclgraph.events.node_space import NodeSpace
from tclgraph.events.stream import EventStream
from tclgraph.features.columns import ActivityColumn, PairColumn, SourceColumn
from tclgraph.features.interactions import InteractionLog
from tclgraph.features.state import HistoryState
from tclgraph.features.time_scale import TimeScale


def graph_of(stream: EventStream) -> DependencyGraph:
    graph = DependencyGraph(NodeSpace.of(stream))
    graph.append(stream)
    return graph


@pytest.mark.parametrize("factor", [1.0, 1000.0, 0.001])
def test_the_scale_is_in_mean_intervals(factor: float) -> None:
    # The intervals are 4 and 16 of a, and 20 of x.
    time = factor * np.array([0.0, 4.0, 20.0])
    scale = TimeScale.measure(graph_of(EventStream.from_columns(list("aaa"), list("xyx"), time)))
    mean = factor * 40 / 3
    assert scale.unit == pytest.approx(1e-5 * mean)
    assert scale.windows == pytest.approx((0.1 * mean, 3 * mean, 30 * mean))


def test_an_event_at_the_start_of_a_window_is_left_out() -> None:
    # Times are tenths, so 1.3 - 0.4 is rounded to less than three times 0.4 - 0.1.
    stream = EventStream.from_columns(list("aa"), list("xx"), [0.1, 0.4])
    query = 1.3
    assert query - 0.4 < 3 * (0.4 - 0.1)
    graph = graph_of(stream)
    log = InteractionLog(graph, TimeScale.measure(graph))
    features = HistoryState(log).features(stream.source[:1], np.array([query]))
    assert features.source[0, SourceColumn.AS_SOURCE_MEDIUM] == 0.0


def test_without_a_positive_interval_all_ages_are_0_and_all_windows_empty() -> None:
    stream = EventStream.from_columns(list("aa"), list("xx"), [3.0, 3.0])
    graph = graph_of(stream)
    scale = TimeScale.measure(graph)
    assert scale == TimeScale(0.0, (0.0, 0.0, 0.0))
    log = InteractionLog(graph, scale)
    features = HistoryState(log).features(stream.source[:1], np.array([9.0]))
    source, pair, candidate = features.source[0], features.pair[0], features.candidate.to_dense()[0]
    assert source[[SourceColumn.EVENT_AGE, SourceColumn.AS_SOURCE_LONG]].tolist() == [0.0, 0.0]
    assert pair[[PairColumn.AGE, PairColumn.IN_LONG]].tolist() == [0.0, 0.0]
    columns = [ActivityColumn.AS_TARGET_AGE, ActivityColumn.AS_TARGET_LONG]
    assert candidate[columns, 0].tolist() == [0.0, 0.0]
    assert pair[PairColumn.NUM_FORWARD] == pytest.approx(np.log(3.0))
