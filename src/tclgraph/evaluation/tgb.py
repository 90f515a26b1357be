"""The protocol of the Temporal Graph Benchmark (TGB), where it differs from the paper's.

- TGB splits at the time quantiles 0.70 and 0.85.
- An event is not ranked against the other true targets of its source at its time.
- Its figure is MRR, with the tie rule of `ranking`.

TGB does not say when a model observes the events that it is tested on, and the entries of its
public table differ: some score 200 events and then observe them, others know every event before
the query. So figures by both rules are reported (`UPDATES`).
"""

from typing import Literal, TypeAlias, cast, get_args

import numpy as np

from tclgraph.arrays import IntArray, ScoreArray
from tclgraph.errors import InputError, did_you_mean
from tclgraph.evaluation.candidates import Candidates
from tclgraph.evaluation.ranking import Ranks, rank
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream

Protocol: TypeAlias = Literal["paper", "tgb"]

SHARES = "70/15/15"
"""Percentages of TGB's split."""
UPDATES = ("every=200", "streaming")
"""Update rules of the entries of TGB's public table."""


def check_protocol(text: str, *, mask_seen: bool) -> Protocol:
    """Return the text if it names a protocol; otherwise raise an `InputError`."""
    if text not in get_args(Protocol):
        raise InputError(f"unknown protocol {text!r}; {did_you_mean(text, get_args(Protocol))}")
    if text == "tgb" and mask_seen:
        raise InputError(
            "the protocol tgb ranks targets that the source has interacted with; "
            "leave out --mask-seen (in Python: mask_seen)"
        )
    return cast("Protocol", text)


def check_split(split: Split) -> None:
    """Refuse a split that is not TGB's."""
    if (split.shares, split.by, split.seen_only) != (SHARES, "quantiles", False):
        raise InputError(
            "the protocol tgb splits at the time quantiles 0.70 and 0.85, but this split is "
            f"{split}; train with --split {SHARES} --split-by quantiles "
            '(in Python: stream.split(0.70, 0.15, by="quantiles"))'
        )


class TrueTargets:
    """The true targets of every source and time of some events."""

    def __init__(self, events: EventStream) -> None:
        self._times = np.unique(events.time)
        queries = self._queries(events)
        order = np.argsort(queries, kind="stable")
        self._sorted_queries, self._targets = queries[order], events.target[order]

    def _queries(self, events: EventStream) -> IntArray:
        """Return an integer per event that identifies its source and time."""
        return np.searchsorted(self._times, events.time) * events.num_sources + events.source

    def leave_out(
        self, ranks: Ranks, scores: ScoreArray, block: EventStream, candidates: Candidates
    ) -> Ranks:
        """Return ranks without the other true targets of the source and time of each event.

        `ranks` are the ranks among all candidates. Few events share source and time, so only these
        are ranked again.
        """
        queries = self._queries(block)
        first = np.searchsorted(self._sorted_queries, queries, side="left")
        last = np.searchsorted(self._sorted_queries, queries, side="right")
        rows = np.flatnonzero(last - first > 1)
        if not len(rows):
            return ranks
        again = []
        for row in rows:
            true = block.target[row : row + 1]
            others = np.setdiff1d(self._targets[first[row] : last[row]], true)
            remaining = candidates[row : row + 1].without(others)
            again.append(rank(scores[row : row + 1], true, remaining))
        return ranks.with_rows(rows, Ranks.concatenate(again))
