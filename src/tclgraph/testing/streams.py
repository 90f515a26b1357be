"""Random small streams and splits for property tests."""

import numpy as np
from hypothesis import strategies as st

from tclgraph.arrays import IntArray
from tclgraph.events.identifiers import Identifiers, Key
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream, GraphKind

KINDS: tuple[GraphKind, ...] = ("bipartite", "one-mode")
FIRST_TIME = 1_082_040_961.0
"""Earliest time of drawn streams."""


@st.composite
def streams(
    draw: st.DrawFn, *, kind: GraphKind | None = None, min_events: int = 1, max_events: int = 40
) -> EventStream:
    """Draw a stream with few nodes and few times, so that repeats, ties and self-loops abound."""
    num_events = draw(st.integers(min_events, max_events))
    nodes = st.lists(st.integers(0, 5), min_size=num_events, max_size=num_events)
    # Quarter seconds on top of Unix time: exact in float64, far below the precision of float32.
    ticks = draw(st.lists(st.integers(0, 20), min_size=num_events, max_size=num_events))
    return EventStream.from_columns(
        draw(nodes),
        draw(nodes),
        FIRST_TIME + np.array(ticks) / 4,
        kind=draw(st.sampled_from(KINDS)) if kind is None else kind,
    )


@st.composite
def splits(draw: st.DrawFn, *, kind: GraphKind | None = None) -> Split:
    """Draw a stream and cut it anywhere, with at least one event in every part."""
    stream = draw(streams(kind=kind, min_events=3))
    train_end = draw(st.integers(1, len(stream) - 2))
    valid_end = draw(st.integers(train_end + 1, len(stream) - 1))
    return cut(stream, train_end, valid_end)


def cut(stream: EventStream, train_end: int, valid_end: int) -> Split:
    """Cut a stream at given events, without the checks that a user's split goes through."""
    return Split(
        events=stream,
        train_end=train_end,
        valid_end=valid_end,
        shares="by hand",
        by="rows",
        seen_only=False,
    )


def with_another_future(events: EventStream, now: int, random: np.random.Generator) -> EventStream:
    """Return the events with other events from `now` on; the query at `now` stays.

    Some nodes occur in one of the futures only.
    """
    count = int(random.integers(1, 2 * (len(events) - now) + 1))

    def keys(identifiers: Identifiers, ids: IntArray, num_others: int) -> list[Key]:
        others = [*identifiers.keys.to_list(), *range(100, 104)]
        return [*map(identifiers.key, ids), *random.choice(others, size=num_others).tolist()]

    later = np.sort(random.uniform(0, 100, size=count - 1))
    return EventStream.from_columns(
        keys(events.sources, events.source[: now + 1], count - 1),
        keys(events.targets, events.target[:now], count),
        np.concatenate([events.time[: now + 1], events.time[now] + later]),
        kind=events.kind,
    )
