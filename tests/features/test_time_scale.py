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
    assert scale.windows == pytest.approx((0.1 * mean, mean, 10 * mean))


def test_an_event_at_the_start_of_a_window_is_left_out() -> None:
    stream = EventStream.from_columns(list("aa"), list("xx"), [0.1, 0.4])
    graph = graph_of(stream)
    scale = TimeScale.measure(graph)
    features = HistoryState(InteractionLog(graph, scale)).features(
        stream.source[:1],
        np.array([0.7]),  # rounded, 0.7 - 0.4 is less than the interval
    )
    assert 0.7 - 0.4 < 0.4 - 0.1
    assert features.source[0, SourceColumn.AS_SOURCE_MEDIUM] == 0.0


def test_without_a_positive_interval_all_ages_are_0_and_all_windows_empty() -> None:
    stream = EventStream.from_columns(list("aa"), list("xx"), [3.0, 3.0])
    graph = graph_of(stream)
    scale = TimeScale.measure(graph)
    assert scale == TimeScale(0.0, (0.0, 0.0, 0.0))
    features = HistoryState(InteractionLog(graph, scale)).features(
        stream.source[:1], np.array([9.0])
    )
    candidate = features.candidate.to_dense()[0, :, 0]
    assert features.source[0, [SourceColumn.EVENT_AGE, SourceColumn.AS_SOURCE_LONG]].tolist() == [
        0.0,
        0.0,
    ]
    assert features.pair[0, [PairColumn.AGE, PairColumn.IN_LONG]].tolist() == [0.0, 0.0]
    assert candidate[[ActivityColumn.AS_TARGET_AGE, ActivityColumn.AS_TARGET_LONG]].tolist() == [
        0.0,
        0.0,
    ]
    assert features.pair[0, PairColumn.NUM_FORWARD] == pytest.approx(np.log(3.0))
