"""Windows and adjacency against a slow cut in exact fractions."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tclgraph.events.stream import EventStream
from tclgraph.sampling.snapshots import Adjacency, adjacency, snapshots, windows
from tests.streams import streams


def slow_windows(time: list[float], count: int) -> list[int]:
    first, last = Fraction(time[0]), Fraction(time[-1])
    length = (last - first) / count
    found = []
    for one in time:
        borders = [first + at * length for at in range(1, count)]
        is_inside = sum(border <= Fraction(one) for border in borders)
        found.append(is_inside)
    return found


def cells(graph: Adjacency) -> dict[tuple[int, int], float]:
    rows = graph.row.tolist(), graph.neighbor.tolist()
    assert len(set(zip(*rows, strict=True))) == len(rows[0])
    return dict(zip(zip(*rows, strict=True), graph.weight.tolist(), strict=True))


@given(stream=streams(), count=st.integers(1, 7), cumulative=st.booleans())
def test_as_a_slow_cut_has_it(stream: EventStream, count: int, cumulative: bool) -> None:
    which = slow_windows(stream.time.tolist(), count)
    assert windows(stream.time, count).tolist() == which
    first_target = stream.num_sources if stream.kind == "bipartite" else 0
    expected: list[Counter[tuple[int, int]]] = [Counter() for _ in range(count)]
    for source, target, window in zip(stream.source, stream.target, which, strict=True):
        one, other = int(source), int(target) + first_target
        for at in range(window, count if cumulative else window + 1):
            if one != other:
                expected[at].update([(one, other), (other, one)])
    found = snapshots(stream, count, cumulative=cumulative)
    assert [cells(graph) for graph in found] == expected
    for graph in found:
        assert len(graph.start) == first_target + stream.num_targets + 1
        assert (np.diff(graph.row * len(graph.start) + graph.neighbor) > 0).all()


def test_an_event_on_a_border_belongs_to_what_follows() -> None:
    # Thirds of this are no binary fractions.
    time = 1_082_040_961 + np.array([0.0, 0.25, 0.5, 0.75])
    assert windows(time, 3).tolist() == [0, 1, 2, 2]


@pytest.mark.parametrize("num_events", [1, 2, 5])
def test_one_instant_is_the_last_window(num_events: int) -> None:
    stream = EventStream.from_columns(["a"] * num_events, ["b"] * num_events, [7.0] * num_events)
    found = snapshots(stream, 3, cumulative=False)
    assert [cells(graph) for graph in found] == [
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
