from hypothesis import given
from numpy.testing import assert_array_equal

from tclgraph.events.pair_history import PairHistory
from tclgraph.events.stream import EventStream
from tests.streams import streams


@given(streams())
def test_history_agrees_with_looking_through_all_events(stream: EventStream) -> None:
    history = PairHistory()
    numbers = list(range(1, len(stream) + 1))
    # In two goes: appending must not differ from building.
    half = len(stream) // 2
    for rows in (slice(0, half), slice(half, None)):
        history.observe(stream.source[rows], stream.target[rows], stream.time[rows], numbers[rows])
    for one in (history, PairHistory.from_arrays(history.to_arrays())):
        for source in range(stream.num_sources):
            met = one.of(source)
            events = [e for e in range(len(stream)) if stream.source[e] == source]
            assert met.target.tolist() == list(dict.fromkeys(stream.target[events].tolist()))
            for target, count, number, time in zip(
                met.target, met.count, met.last_number, met.last_time, strict=True
            ):
                meetings = [e for e in events if stream.target[e] == target]
                assert count == len(meetings)
                assert number == meetings[-1] + 1
                assert time == stream.time[meetings[-1]]
    assert len(history) == len(
        set(zip(stream.source.tolist(), stream.target.tolist(), strict=True))
    )


def test_a_source_nobody_has_seen_has_met_nobody() -> None:
    assert_array_equal(PairHistory().of(3).target, [])


def test_what_was_read_does_not_change_later() -> None:
    history = PairHistory()
    history.observe([0], [5], [1.0], [1])
    before = history.of(0)
    history.observe([0, 0], [5, 6], [2.0, 3.0], [2, 3])
    assert before.target.tolist() == [5]
    assert before.count.tolist() == [1]
