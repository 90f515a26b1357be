"""The targets among which events are ranked: all targets of the data set, or the known ones.

| rule  | candidates of an event                                                        |
|-------|-------------------------------------------------------------------------------|
| all   | the targets of the data set, as in the paper                                  |
| known | the targets that have occurred before the event, as a service would know them |

A target has occurred if an event that is revealed before has its node; in a one-mode graph, in
either role. Whether it has occurred depends on the log alone, not on what a model has observed of
it, so the candidates are the same for every model and every update rule.

If the true target has not occurred before, its rank among known targets is their number plus 1.
"""

from dataclasses import dataclass
from typing import Literal, Self, TypeAlias, cast, get_args

import numpy as np

from tclgraph.arrays import BoolArray, IntArray
from tclgraph.errors import InputError, did_you_mean
from tclgraph.events.stream import EventStream

CandidateRule: TypeAlias = Literal["all", "known"]

_NEVER = np.iinfo(np.int64).max


def check_candidates(text: str, *, protocol: str) -> CandidateRule:
    """Return the text if it is a rule of the protocol; otherwise raise an `InputError`."""
    if text not in get_args(CandidateRule):
        raise InputError(
            f"unknown candidates {text!r}; {did_you_mean(text, get_args(CandidateRule))}"
        )
    if text == "known" and protocol == "tgb":
        raise InputError(
            "the protocol tgb has its own candidates; "
            'leave out --candidates (in Python: candidates="known")'
        )
    return cast("CandidateRule", text)


@dataclass(frozen=True, slots=True)
class Candidates:
    """The targets among which each of some consecutive events is ranked.

    A target is a candidate of an event if it needs at most as many events as are revealed.
    """

    needed: IntArray
    """Number of events that must be revealed before a target is a candidate, by target id."""
    revealed: IntArray
    """Number of events that are revealed before each event is ranked, in non-decreasing order."""

    @classmethod
    def all(cls, target: IntArray, num_targets: int, revealed: IntArray) -> Self:
        """Return the same candidates for every event: the targets with these ids."""
        needed = np.full(num_targets, _NEVER)
        needed[target] = 0
        return cls(needed, revealed)

    @classmethod
    def known(cls, events: EventStream, revealed: IntArray) -> Self:
        """Return the targets that occur among the revealed events, the first of a stream."""
        needed = np.full(events.num_targets, _NEVER)
        roles = (events.source, events.target) if events.kind == "one-mode" else (events.target,)
        for role in roles:
            target, first = np.unique(role, return_index=True)
            needed[target] = np.minimum(needed[target], first + 1)
        return cls(needed, revealed)

    def __getitem__(self, rows: slice) -> "Candidates":
        """Return the candidates of some of the events."""
        return Candidates(self.needed, self.revealed[rows])

    def without(self, target: IntArray) -> "Candidates":
        """Return the candidates that remain if targets are left out."""
        needed = self.needed.copy()
        needed[target] = _NEVER
        return Candidates(needed, self.revealed)

    def include(self, target: IntArray) -> BoolArray:
        """Return for every event whether a target, one per event, is among its candidates."""
        is_candidate: BoolArray = self.needed[target] <= self.revealed
        return is_candidate

    def table(self) -> BoolArray:
        """Return whether each target (column) is a candidate of each event (row)."""
        is_candidate: BoolArray = self.needed <= self.revealed[:, None]
        return is_candidate

    def counts(self) -> IntArray:
        """Return the number of candidates of each event."""
        return np.searchsorted(np.sort(self.needed), self.revealed, side="right")
