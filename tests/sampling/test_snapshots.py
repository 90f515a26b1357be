"""Compare windows and adjacency with exact fractions and plain counts."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tclgraph.events.stream import EventStream
from tclgraph.sampling.snapshots import Adjacency, adjacency, snapshots, windows
from tests.streams import streams


def exact_windows(time: list[float], count: int) -> list[int]:
    first, last = Fraction(time[0]), Fraction(time[-1])
    length = (last - first) / count
    borders = [first + number * length for number in range(1, count)]
    return [sum(border <= Fraction(seconds) for border in borders) for seconds in time]


def cells(graph: Adjacency) -> dict[tuple[int, int], float]:
    rows = graph.row.tolist(), graph.neighbor.tolist()
    assert len(set(zip(*rows, strict=True))) == len(rows[0])
    return dict(zip(zip(*rows, strict=True), graph.weight.tolist(), strict=True))


@given(stream=streams(), count=st.integers(1, 7), cumulative=st.booleans())
def test_snapshots_equal_plain_counts(stream: EventStream, count: int, cumulative: bool) -> None:
    window_of_event = exact_windows(stream.time.tolist(), count)
    assert windows(stream.time, count).tolist() == window_of_event
    first_target = stream.num_sources if stream.kind == "bipartite" else 0
    expected: list[Counter[tuple[int, int]]] = [Counter() for _ in range(count)]
    events = zip(stream.source, stream.target, window_of_event, strict=True)
    for source, target, window in events:
        first, second = int(source), int(target) + first_target
        for number in range(window, count if cumulative else window + 1):
            if first != second:
                expected[number].update([(first, second), (second, first)])
    graphs = snapshots(stream, count, cumulative=cumulative)
    assert [cells(graph) for graph in graphs] == expected
    for graph in graphs:
        assert len(graph.start) == first_target + stream.num_targets + 1
        assert (np.diff(graph.row * len(graph.start) + graph.neighbor) > 0).all()


def test_an_event_on_a_border_belongs_to_the_later_window() -> None:
    # Thirds of this time span are not binary fractions.
    time = 1_082_040_961 + np.array([0.0, 0.25, 0.5, 0.75])
    assert windows(time, 3).tolist() == [0, 1, 2, 2]


@pytest.mark.parametrize("num_events", [1, 2, 5])
def test_simultaneous_events_are_in_the_last_window(num_events: int) -> None:
    stream = EventStream.from_columns(["a"] * num_events, ["b"] * num_events, [7.0] * num_events)
    graphs = snapshots(stream, 3, cumulative=False)
    assert [cells(graph) for graph in graphs] == [
        {},
        {},
        {(0, 1): num_events, (1, 0): num_events},
    ]


def test_entries_of_rows_in_any_order() -> None:
    graph = adjacency(np.array([0, 1, 0, 3, 3, 1, 1, 0]), 5)
    rows = np.array([3, 2, 0, 3])
    assert graph.neighbor[graph.entries(rows)].tolist() == [0, 1, 1, 3, 0, 1]
    assert graph.weight[graph.entries(rows)].tolist() == [1, 1, 2, 1, 1, 1]
    assert graph.entries(np.empty(0, dtype=np.int64)).tolist() == []
