"""Streams for tests: random streams from hypothesis, and real data sets."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st

from tclgraph.events.catalog import CATALOG, find, load
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream, GraphKind

KINDS: tuple[GraphKind, ...] = ("bipartite", "one-mode")


@st.composite
def streams(
    draw: st.DrawFn, *, kind: GraphKind | None = None, min_events: int = 1, max_events: int = 40
) -> EventStream:
    """Draw a stream with few nodes and times, so that it has repeats, ties and self-loops."""
    num_events = draw(st.integers(min_events, max_events))
    nodes = st.lists(st.integers(0, 5), min_size=num_events, max_size=num_events)
    # Quarter seconds added to a Unix time are exact in float64, but not in float32.
    ticks = draw(st.lists(st.integers(0, 20), min_size=num_events, max_size=num_events))
    return EventStream.from_columns(
        draw(nodes),
        draw(nodes),
        1_082_040_961 + np.array(ticks) / 4,
        kind=draw(st.sampled_from(KINDS)) if kind is None else kind,
    )


def as_split(stream: EventStream, train_end: int, valid_end: int) -> Split:
    """Split a stream at the given positions, without the checks of `split`."""
    return Split(
        events=stream,
        train_end=train_end,
        valid_end=valid_end,
        shares="by hand",
        by="rows",
        seen_only=False,
    )


@st.composite
def splits(draw: st.DrawFn, *, kind: GraphKind | None = None) -> Split:
    stream = draw(streams(kind=kind, min_events=3))
    train_end = draw(st.integers(1, len(stream) - 2))
    valid_end = draw(st.integers(train_end + 1, len(stream) - 1))
    return as_split(stream, train_end, valid_end)


def refuse_notices(message: str) -> None:
    """Fail the test; passed as `notify` if no notice is expected."""
    raise AssertionError(f"unexpected notice: {message}")


def collegemsg(kind: GraphKind = "one-mode") -> Split:
    """Return CollegeMsg as the paper's authors split it."""
    return load("collegemsg", kind=kind).split(0.6, 0.2, seen_only=True)


def wikipedia() -> EventStream:
    if find(CATALOG["wikipedia"]) is None:
        pytest.skip("wikipedia is not on this machine: set TCLGRAPH_DATA to a folder that has it")
    return load("wikipedia")


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


Cli = Callable[..., tuple[int, str, str]]
"""Runs `tclgraph` with the given arguments and returns exit code, stdout and stderr."""
