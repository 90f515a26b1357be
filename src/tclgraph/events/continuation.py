"""Which events of a log continue the events that a model has observed.

A log that is appended may begin with events that are known already, as an export does that grows.
Two events are the same if source, target and time are equal. A log may have an event as often as
it is known; further ones are new. So events that are given twice are appended once, whether they
come in the same file, in files that overlap, or in the middle of simultaneous events.
"""

from typing import NamedTuple

import numpy as np
import polars as pl

from tclgraph.events.stream import EventStream

_EVENT = ["source", "target", "time"]


class Continuation(NamedTuple):
    """The events of a log that are not known."""

    new: EventStream
    """Events at the last known time or later."""
    late: EventStream
    """Events before the last known time, which cannot be appended."""


def continuation(known: EventStream, log: EventStream) -> Continuation:
    """Compare a log with known events.

    >>> known = EventStream.from_columns(list("aba"), list("xyx"), [1, 2, 2])
    >>> log = EventStream.from_columns(list("cabc"), list("xxyx"), [1, 2, 2, 3])
    >>> new, late = continuation(known, log)
    >>> new.time.tolist(), late.time.tolist()
    ([3.0], [1.0])
    """
    last = known.time[-1] if len(known) else -np.inf
    num_past = int(np.searchsorted(log.time, last, side="right"))
    past = _table(log[:num_past])
    counts = _table(known).group_by(_EVENT).len("times_known")
    past = past.with_columns(number=pl.int_range(pl.len()).over(_EVENT))
    past = past.join(counts, on=_EVENT, how="left", maintain_order="left")
    is_known = np.zeros(len(log), dtype=bool)
    is_known[:num_past] = (past["number"] < past["times_known"].fill_null(0)).to_numpy()
    is_late = ~is_known & (log.time < last)
    return Continuation(log[~is_known & ~is_late], log[is_late])


def _table(events: EventStream) -> pl.DataFrame:
    return pl.DataFrame(
        {
            # Text, because a log may have integers as keys in which another one has text.
            "source": events.sources.keys.cast(pl.String).gather(events.source),
            "target": events.targets.keys.cast(pl.String).gather(events.target),
            # Compared bit by bit; adding 0 turns the negative zero into the positive one.
            "time": (events.time + 0.0).view(np.int64),
        }
    )
