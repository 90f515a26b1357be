import numpy as np
from hypothesis import given
from numpy.testing import assert_array_equal

from tclgraph.events.pair_history import PairHistory
from tclgraph.events.stream import EventStream
from tests.streams import streams


@given(streams())
def test_neighbors_agree_with_a_search_through_all_events(stream: EventStream) -> None:
    history = PairHistory()
    numbers = list(range(1, len(stream) + 1))
    # Observe in two steps: appending must give the same result as a single step.
    half = len(stream) // 2
    for rows in (slice(0, half), slice(half, None)):
        history.observe(stream.source[rows], stream.target[rows], stream.time[rows], numbers[rows])
    for source in range(stream.num_sources):
        neighbors = history.neighbors_of(source)
        events = np.flatnonzero(stream.source == source).tolist()
        assert neighbors.target.tolist() == list(dict.fromkeys(stream.target[events].tolist()))
        for target, count, number, time in zip(
            neighbors.target,
            neighbors.count,
            neighbors.last_number,
            neighbors.last_time,
            strict=True,
        ):
            interactions = [event for event in events if stream.target[event] == target]
            assert count == len(interactions)
            assert number == interactions[-1] + 1
            assert time == stream.time[interactions[-1]]
    assert len(history) == len(
        set(zip(stream.source.tolist(), stream.target.tolist(), strict=True))
    )


def test_an_unknown_source_has_no_neighbors() -> None:
    assert_array_equal(PairHistory().neighbors_of(3).target, [])


def test_returned_neighbors_do_not_change_later() -> None:
    history = PairHistory()
    history.observe([0], [5], [1.0], [1])
    before = history.neighbors_of(0)
    history.observe([0, 0], [5, 6], [2.0, 3.0], [2, 3])
    assert before.target.tolist() == [5]
    assert before.count.tolist() == [1]
