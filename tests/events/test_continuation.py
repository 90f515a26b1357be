"""The events that continue a log, against a count of single events."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tclgraph.events.continuation import continuation
from tclgraph.events.stream import EventStream, GraphKind
from tclgraph.testing.streams import KINDS, streams

Row = tuple[Any, Any, float]


def rows(events: EventStream) -> list[Row]:
    return [
        (events.sources.key(source), events.targets.key(target), time)
        for source, target, time in zip(
            events.source.tolist(), events.target.tolist(), events.time.tolist(), strict=True
        )
    ]


def stream(*events: Row) -> EventStream:
    source, target, time = zip(*events, strict=True)
    return EventStream.from_columns(source, target, time)


def by_counting(known: EventStream, log: EventStream) -> tuple[list[Row], list[Row]]:
    left = Counter(rows(known))
    new, late = [], []
    for row in rows(log):
        if left[row] > 0:
            left[row] -= 1
        elif row[2] < known.time[-1]:
            late.append(row)
        else:
            new.append(row)
    return new, late


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_new_and_late_events(kind: GraphKind, data: st.DataObject) -> None:
    known, log = (data.draw(streams(kind=kind, max_events=12)) for _ in range(2))
    new, late = continuation(known, log)
    assert (rows(new), rows(late)) == by_counting(known, log)


@given(log=streams(min_events=2), data=st.data())
def test_any_part_of_a_log_can_be_given_again(log: EventStream, data: st.DataObject) -> None:
    known = log[: data.draw(st.integers(1, len(log)))]
    first = data.draw(st.integers(0, len(known)))
    new, late = continuation(known, log[first:])
    assert not len(late)
    # Events may be equal, so the files, not the positions, decide what is appended.
    assert rows(new) == by_counting(known, log[first:])[0]
    if first == 0:
        assert rows(new) == rows(log[len(known) :])


def test_simultaneous_events_at_the_end() -> None:
    known = stream(("a", "x", 1.0), ("b", "x", 2.0))
    more = stream(("b", "x", 2.0), ("c", "x", 2.0), ("b", "x", 2.0), ("a", "x", 3.0))
    new, late = continuation(known, more)
    assert rows(new) == [("c", "x", 2.0), ("b", "x", 2.0), ("a", "x", 3.0)]
    assert not len(late)


def test_integers_and_text_are_the_same_keys() -> None:
    new, late = continuation(
        stream((1, 7, 0.0), (2, 7, 1.0)), stream(("1", "7", -0.0), ("b", 7, 2))
    )
    assert rows(new) == [("b", 7, 2.0)]
    assert not len(late)
