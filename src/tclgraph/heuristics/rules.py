"""Heuristic baselines: rules without learned parameters.

Reports show them beside every learned model. A model that does not beat them is not worth using.

Each heuristic sorts the candidates by two keys: first by the interactions between the source and
the candidate (the *pair key*), then by the interactions of the candidate (the *target key*):

| name            | pair key                                 | target key                        |
|-----------------|------------------------------------------|-----------------------------------|
| popularity      | none                                     | number of events as a target      |
| global-recency  | none                                     | last event as a target            |
| own-recency     | last interaction                         | last event as a target            |
| own-frequency   | number of interactions                   | last event as a target            |
| last-contact    | last interaction, in either direction    | last event as a source or target  |
| edgebank        | whether they have interacted             | last event as a target            |
| edgebank-window | whether they have interacted within the  | last event as a target            |
|                 | window before the query                  |                                   |

"Last" refers to the position of the event, so it is well defined for simultaneous events.
Candidates without any history share the lowest score.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal, Self, TypeAlias

import numpy as np

from tclgraph.arrays import FloatArray, IntArray, ScoreArray
from tclgraph.errors import InputError
from tclgraph.events.pair_history import PairHistory
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream, GraphKind
from tclgraph.heuristics.kernels import (
    COUNT,
    INTERACTED,
    INTERACTED_IN_WINDOW,
    LAST,
    NO_PAIR_KEY,
    EventColumns,
    RuleCode,
    follow_events,
    score_queries,
)
from tclgraph.models.interface import Model

PairKey: TypeAlias = Literal["none", "last", "count", "interacted", "interacted in window"]

_PAIR_CODES: dict[PairKey, int] = {
    "none": NO_PAIR_KEY,
    "last": LAST,
    "count": COUNT,
    "interacted": INTERACTED,
    "interacted in window": INTERACTED_IN_WINDOW,
}
# EdgeBank's authors chose a window as long as their test period, 15 % of the data.
_WINDOW_SHARE = 0.15
# The window is longer by a billionth, so that it includes an event exactly at its start even if
# times were rounded.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """The keys of a heuristic; a row of the table above."""

    pair: PairKey = "none"
    target: Literal["last", "count"] = "last"
    is_two_way: bool = False
    """Whether an event counts in both directions: also for the pair (target, source), and also for
    the target key of its source."""


class Heuristic(Model):
    """Base class of the heuristics: keeps the history and scores candidates by a `Rule`."""

    rule: ClassVar[Rule]

    def fit(self, split: Split) -> Self:
        if self.rule.is_two_way and split.events.kind != "one-mode":
            raise InputError(
                f"{self.name} needs a one-mode graph, where nodes are both sources and targets; "
                "pass --kind one-mode or use own-recency"
            )
        train = split.train
        recent = train.time[int((1 - _WINDOW_SHARE) * len(train)) :]
        window = float(recent[-1] - recent[0]) * (1 + _ROUNDING) if len(recent) else 0.0
        self.start_state(split.events, window=window)
        self.observe(train)
        return self

    @property
    def _window(self) -> float:
        """Length of EdgeBank's window."""
        return float(self.measured["window"])

    def reset_state(self) -> None:
        self._num_observed = 0
        self._target_key = np.zeros(self.state.space.num_targets)
        self._pairs = PairHistory()

    def update_state(self, events: EventStream) -> None:
        self._follow(events, np.empty((0, self.state.space.num_targets)))

    def score(self, source: IntArray, time: FloatArray) -> ScoreArray:
        self.check_fitted()
        scores = np.empty((len(source), self.state.space.num_targets))
        pairs = self._pairs.columns
        score_queries(source, time, self._rule_code, pairs, self._target_key, scores)
        return scores

    def score_each(self, events: EventStream) -> ScoreArray:
        """Score each event with the state that the events before it leave."""
        events = self.admit(events)
        self.state.graph.append(events)
        scores = np.empty((len(events), self.state.space.num_targets))
        self._follow(events, scores)
        return scores

    def _follow(self, events: EventStream, scores: FloatArray) -> None:
        """Add events to the history; write the scores before each of them if there are rows."""
        no_entries = np.empty(0, dtype=np.int64)
        forward = backward = no_entries
        if self.rule.pair != "none":
            forward = self._pairs.add(events.source, events.target)
        if self.rule.is_two_way:
            backward = self._pairs.add(events.target, events.source)
        columns = EventColumns(events.source, events.target, events.time, forward, backward)
        number, pairs = self._num_observed + 1, self._pairs.columns
        follow_events(columns, number, self._rule_code, pairs, self._target_key, scores)
        self._num_observed += len(events)

    @property
    def _rule_code(self) -> RuleCode:
        rule = self.rule
        return RuleCode(
            _PAIR_CODES[rule.pair], rule.target == "count", rule.is_two_way, self._window
        )


class Popularity(Heuristic):
    name = "popularity"
    rule = Rule(target="count")


class GlobalRecency(Heuristic):
    name = "global-recency"
    rule = Rule()


class OwnRecency(Heuristic):
    name = "own-recency"
    rule = Rule(pair="last")


class OwnFrequency(Heuristic):
    name = "own-frequency"
    rule = Rule(pair="count")


class LastContact(Heuristic):
    name = "last-contact"
    rule = Rule(pair="last", is_two_way=True)


class EdgeBank(Heuristic):
    name = "edgebank"
    rule = Rule(pair="interacted")


class EdgeBankWindow(Heuristic):
    name = "edgebank-window"
    rule = Rule(pair="interacted in window")


_ALL = (
    Popularity,
    GlobalRecency,
    OwnRecency,
    OwnFrequency,
    LastContact,
    EdgeBank,
    EdgeBankWindow,
)


def heuristics_for(kind: GraphKind) -> tuple[type[Heuristic], ...]:
    """Return the heuristics that apply to a graph kind."""
    return tuple(
        heuristic for heuristic in _ALL if kind == "one-mode" or not heuristic.rule.is_two_way
    )
