"""Groups of events for which a report has separate metrics."""

from typing import Literal, TypeAlias

import numpy as np

from tclgraph.arrays import BoolArray, FloatArray, IntArray
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream

Group: TypeAlias = Literal["all", "repeat", "new", "unseen"]
"""all: every event; repeat: the source has interacted with the target before; new: it has not;
unseen: the source or the target is absent from the training events."""


def event_groups(split: Split, num_revealed: IntArray) -> dict[Group, BoolArray]:
    """Return which events of a split are in each group.

    `num_revealed` says how many events are revealed before each event is ranked.
    """
    events = split.events
    _, first_of_pair, pair = np.unique(events.pairs(), return_index=True, return_inverse=True)
    is_repeat: BoolArray = first_of_pair[pair] < num_revealed
    is_unseen_source, is_unseen_target = split.unseen()
    return {
        "all": np.ones(len(events), dtype=bool),
        "repeat": is_repeat,
        "new": ~is_repeat,
        "unseen": is_unseen_source | is_unseen_target,
    }


def by_segment(ranks: FloatArray, events: EventStream) -> dict[str, FloatArray]:
    """Divide the ranks of some events by segment: the largest first, and equal ones by name."""
    if events.segment is None or events.segments is None:
        return {}
    counts = np.bincount(events.segment, minlength=len(events.segments))
    in_order = ranks[np.argsort(events.segment, kind="stable")]
    pieces = np.split(in_order, np.cumsum(counts)[:-1])
    pairs = zip(events.segments.keys.to_list(), pieces, strict=True)
    by_size = sorted(pairs, key=lambda pair: (-len(pair[1]), pair[0]))
    return {name: piece for name, piece in by_size if len(piece)}
