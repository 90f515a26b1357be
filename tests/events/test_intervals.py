import numpy as np
from hypothesis import given
from numpy.testing import assert_array_equal

from tclgraph.arrays import FloatArray
from tclgraph.events.intervals import intervals
from tclgraph.events.stream import EventStream
from tests.streams import collegemsg, streams


def slow_intervals(stream: EventStream) -> FloatArray:
    """Compute intervals by definition: search backwards for the latest event with the node."""
    gaps = np.full((len(stream), 2), np.nan)
    for event in range(len(stream)):
        for side, node in enumerate((stream.source[event], stream.target[event])):
            for earlier in range(event - 1, -1, -1):
                sides = [stream.source[earlier], stream.target[earlier]]
                if node in (sides if stream.kind == "one-mode" else [sides[side]]):
                    gaps[event, side] = stream.time[event] - stream.time[earlier]
                    break
    return gaps


@given(streams())
def test_intervals_reach_back_to_the_latest_earlier_event(stream: EventStream) -> None:
    assert_array_equal(intervals(stream), slow_intervals(stream))


def test_a_self_loop_is_not_its_own_predecessor() -> None:
    stream = EventStream.from_columns(list("aab"), list("aab"), [1, 4, 9], kind="one-mode")
    assert_array_equal(intervals(stream), [[np.nan, np.nan], [3, 3], [np.nan, np.nan]])


def test_intervals_of_unix_times_are_exact_where_float32_is_not() -> None:
    """The times of CollegeMsg are integers, so Python integers give the exact intervals."""
    stream = collegemsg().events
    gaps = intervals(stream)
    is_known = ~np.isnan(gaps)

    seconds = [int(time) for time in stream.time]
    last: dict[int, int] = {}
    for event, sides in enumerate(zip(stream.source, stream.target, strict=True)):
        for side, node in enumerate(sides):
            if node in last:
                assert gaps[event, side] == seconds[event] - seconds[last[node]]
        last.update(dict.fromkeys(map(int, sides), event))

    # If times were cast to float32 first, many intervals would be off by more than 10 %. Short
    # intervals suffer most: with times in seconds instead of minutes, 42 % would be.
    rounded = EventStream(
        source=stream.source,
        target=stream.target,
        time=stream.time.astype(np.float32).astype(np.float64),
        kind=stream.kind,
        sources=stream.sources,
        targets=stream.targets,
    )
    error = np.abs(intervals(rounded) - gaps)[is_known]
    assert np.mean(error > 0.1 * gaps[is_known]) > 1 / 4
