"""Simultaneous events: when events with equal times are revealed to a model.

Events of the same time have an order in the log, but nothing says that they happened in this order.
If a source has several events at one time, such as the items of an order in a shop, file order can
give the answer away: where the items are sorted, each tells what the next is.

| rule     | an event is ranked with                                       |
|----------|---------------------------------------------------------------|
| in-order | all events before it in the log                               |
| together | all events of earlier times, which leaves out those of its own |

So `together` ranks events of the same time before it reveals any of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast, get_args

import numpy as np

from tclgraph.arrays import FloatArray, IntArray
from tclgraph.errors import InputError
from tclgraph.evaluation.update import Update
from tclgraph.events.statistics import simultaneous_share
from tclgraph.events.stream import EventStream

Simultaneous: TypeAlias = Literal["in-order", "together", "both"]
"""`both` evaluates by both rules; the second report is in `Report.together` of the first."""

SHARE_FOR_BOTH = 5.0
"""Tables show both rules if a larger percentage of events shares source and time with the event
before."""


def check_simultaneous(text: str) -> Simultaneous:
    """Return the text if it is a valid choice; otherwise raise an `InputError`."""
    if text not in get_args(Simultaneous):
        raise InputError(
            f"unknown rule for simultaneous events {text!r}; give in-order, together or both"
        )
    return cast("Simultaneous", text)


def rules_for_tables(events: EventStream, update: Update) -> Simultaneous:
    """Return the rules that tables show for a log: both if it has many simultaneous events.

    A frozen state ranks equally by both.
    """
    if update.kind != "frozen" and simultaneous_share(events) > SHARE_FOR_BOTH:
        return "both"
    return "in-order"


def num_revealed(time: FloatArray, *, is_together: bool) -> IntArray:
    """Return the number of events that are revealed before each event is ranked.

    >>> num_revealed(np.array([1.0, 2.0, 2.0, 3.0]), is_together=True).tolist()
    [0, 1, 1, 3]
    """
    if is_together:
        return np.searchsorted(time, time, side="left")
    return np.arange(len(time))


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Consecutive events that are ranked in the same way."""

    ranked: EventStream
    is_in_turn: bool
    """Whether the model observes each event before the next is ranked."""
    revealed: tuple[EventStream, ...]
    """Events that the model observes after the last event of the step is ranked."""


def steps(
    events: EventStream, withheld: EventStream, update: Update, *, is_together: bool
) -> Iterator[Step]:
    """Divide events into the steps in which they are ranked and revealed.

    `withheld` are the events before the first one that the model has not observed, because they
    have the same time. They are revealed together with it.
    """
    if update.kind == "frozen":
        yield Step(ranked=events, is_in_turn=False, revealed=())
        return
    first = np.flatnonzero(np.diff(num_revealed(events.time, is_together=is_together), prepend=-1))
    if update.kind == "every":
        starts = _starts_of_blocks(first, update.every)
        is_in_turn = np.zeros(len(starts), dtype=bool)
    else:
        is_alone = np.diff(first, append=len(events)) == 1
        is_alone[:1] &= len(withheld) == 0
        # Neighboring events that are alone form one step, which models rank faster.
        is_start = np.ones(len(first), dtype=bool)
        is_start[1:] = ~(is_alone[1:] & is_alone[:-1])
        starts, is_in_turn = first[is_start], is_alone[is_start]
    stops = np.append(starts, len(events))[1:]
    for start, stop, in_turn in zip(
        starts.tolist(), stops.tolist(), is_in_turn.tolist(), strict=True
    ):
        ranked = events[start:stop]
        observed = (withheld, ranked) if start == 0 and len(withheld) else (ranked,)
        yield Step(ranked=ranked, is_in_turn=in_turn, revealed=() if in_turn else observed)


def _starts_of_blocks(first: IntArray, every: int) -> IntArray:
    """Return the first event of each block; a block has `every` events, or a few more.

    `first` are the events that may start a block: the first event of each time.
    """
    starts = []
    number = 0
    while number < len(first):
        starts.append(first[number])
        number = int(np.searchsorted(first, first[number] + every))
    return np.array(starts, dtype=np.int64)
