"""Compare the scale of intervals with the intervals that a search finds."""

import numpy as np
import pytest
from hypothesis import given

from tclgraph.dependency_graph.graph import DependencyGraph
from tclgraph.dependency_graph.interval_scaling import IntervalScale
from tclgraph.events.node_space import NodeSpace
from tclgraph.events.stream import EventStream
from tclgraph.testing.streams import streams
from tests.reference.intervals import log_interval
from tests.reference.tcl import Instance, Past


def measure(stream: EventStream) -> IntervalScale:
    graph = DependencyGraph(NodeSpace.of(stream))
    graph.append(stream)
    return IntervalScale.measure(graph)


def intervals_by_search(stream: EventStream) -> list[float]:
    """Return the intervals of all instances that have a previous event."""
    past = Past(stream)
    instances = [
        Instance(event, side, node)
        for event, parties in enumerate(past.parties)
        for side, node in enumerate(parties)
    ]
    return [
        past.interval(instance)
        for instance in instances
        if past.previous_event(instance) is not None
    ]


@given(streams())
def test_the_scale_is_measured_on_instances_with_a_previous_event(stream: EventStream) -> None:
    scale, intervals = measure(stream), intervals_by_search(stream) or [0.0]
    assert scale.mean == pytest.approx(np.mean(intervals))
    logarithms = [log_interval(interval, scale.mean) for interval in intervals]
    deviation = np.std(logarithms)
    assert scale.log_deviation == pytest.approx(deviation if deviation > 1e-9 else 1.0)


def test_scaled_intervals_have_mean_1_or_logarithms_with_deviation_1() -> None:
    stream = EventStream.from_columns(list("aaa"), list("xyx"), [0.0, 4.0, 20.0])
    scale, intervals = measure(stream), np.array([4.0, 16.0, 20.0])
    assert scale.mean == pytest.approx(40 / 3)
    assert scale.scaled(intervals, "linear") == pytest.approx([0.3, 1.2, 1.5])
    logarithms = scale.scaled(intervals, "log")
    assert logarithms.std() == pytest.approx(1.0)
    # The unit is a hundred-thousandth of the mean interval.
    expected = np.log1p([30_000.0, 120_000.0, 150_000.0])
    assert logarithms / logarithms[0] == pytest.approx(expected / expected[0])
    assert scale.scaled(np.zeros(1), "log").tolist() == [0.0]


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        ([3.0], IntervalScale(0.0, 1.0)),  # no interval
        ([3.0, 3.0, 3.0], IntervalScale(0.0, 1.0)),  # intervals of 0
        ([3.0, 5.0, 7.0], IntervalScale(2.0, 1.0)),  # equal intervals
        ([60.0 * n for n in range(11)], IntervalScale(60.0, 1.0)),  # rounding leaves 1e-16
    ],
)
def test_equal_intervals_have_no_deviation(time: list[float], expected: IntervalScale) -> None:
    size = len(time)
    assert measure(EventStream.from_columns(["a"] * size, ["x"] * size, time)) == expected


def test_without_a_positive_interval_every_interval_counts_as_0() -> None:
    scale, intervals = IntervalScale(0.0, 1.0), np.array([0.0, 5.0])
    assert scale.scaled(intervals, "linear").tolist() == [0.0, 0.0]
    assert scale.scaled(intervals, "log").tolist() == [0.0, 0.0]
