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
from tclgraph.events.pair_history import Neighbors, PairHistory
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream, GraphKind
from tclgraph.models.interface import Model

PairKey: TypeAlias = Literal["none", "last", "count", "interacted", "interacted in window"]

# A score is the pair key times this factor plus the target key. It is exact in float64 for up to
# 4 billion events, of which up to 2 million may be between the same pair.
_PAIR_FACTOR = 2.0**32
# EdgeBank's authors chose a window as long as their test period, 15 % of the data.
_WINDOW_SHARE = 0.15


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
        window = float(recent[-1] - recent[0]) if len(recent) else 0.0
        self.start_state(split.events, window=window)
        self.observe(train)
        return self

    @property
    def _window(self) -> float:
        """Length of EdgeBank's window, in seconds."""
        return float(self.measured["window"])

    def reset_state(self) -> None:
        self._num_observed = 0
        self._target_key = np.zeros(self.state.space.num_targets)
        self._pairs = PairHistory()

    def update_state(self, events: EventStream) -> None:
        number = self._num_observed + 1 + np.arange(len(events))
        self._num_observed += len(events)
        if self.rule.target == "count":
            np.add.at(self._target_key, events.target, 1)
        else:
            self._target_key[events.target] = number
        if self.rule.is_two_way:
            np.maximum.at(self._target_key, events.source, number)
            self._pairs.observe(
                np.stack([events.source, events.target], axis=1).ravel(),
                np.stack([events.target, events.source], axis=1).ravel(),
                np.repeat(events.time, 2),
                np.repeat(number, 2),
            )
        elif self.rule.pair != "none":
            self._pairs.observe(events.source, events.target, events.time, number)

    def score(self, source: IntArray, time: FloatArray) -> ScoreArray:
        self.check_fitted()
        scores = self._pair_keys(source, time)
        scores *= _PAIR_FACTOR
        scores += self._target_key
        return scores

    def _pair_keys(self, sources: IntArray, times: FloatArray) -> FloatArray:
        """Return the pair key of every candidate (column) for every query (row)."""
        keys = np.zeros((len(sources), self.state.space.num_targets))
        if self.rule.pair == "none":
            return keys
        for row, (source, time) in enumerate(zip(sources.tolist(), times.tolist(), strict=True)):
            neighbors = self._pairs.neighbors_of(source)
            keys[row, neighbors.target] = self._pair_key(neighbors, time)
        return keys

    def _pair_key(self, neighbors: Neighbors, time: float) -> IntArray | FloatArray:
        match self.rule.pair:
            case "last":
                return neighbors.last_number
            case "count":
                return neighbors.count
            case "interacted":
                return np.ones(len(neighbors.target))
            case "interacted in window":
                return (time - neighbors.last_time <= self._window).astype(np.float64)
            case "none":
                return np.zeros(len(neighbors.target))

    def score_each(self, events: EventStream) -> ScoreArray:
        """Score all rows with the state before the block, then add each event to later rows."""
        scores = self._pair_keys(events.source, events.time)
        for event in range(len(events) - 1):
            source, target = events.source[event], events.target[event]
            self._reveal_pair(scores, events, event, source, target)
            if self.rule.is_two_way:
                self._reveal_pair(scores, events, event, target, source)
        scores *= _PAIR_FACTOR
        scores += self._target_keys_before(events)
        self.observe(events)
        return scores

    def _reveal_pair(
        self, keys: FloatArray, events: EventStream, event: int, source: int, target: int
    ) -> None:
        """Add an interaction at the time of `event` to the pair keys of later rows."""
        later = event + 1 + np.flatnonzero(events.source[event + 1 :] == source)
        match self.rule.pair:
            case "last":
                keys[later, target] = self._num_observed + 1 + event
            case "count":
                keys[later, target] += 1
            case "interacted":
                keys[later, target] = 1
            case "interacted in window":
                keys[later, target] = events.time[later] - events.time[event] <= self._window
            case "none":
                pass

    def _target_keys_before(self, events: EventStream) -> FloatArray:
        """Return in row j the target keys after the events before event j of the block."""
        keys = np.tile(self._target_key, (len(events), 1))
        for event in range(len(events) - 1):
            target = events.target[event]
            if self.rule.target == "count":
                keys[event + 1 :, target] += 1
            else:
                keys[event + 1 :, target] = self._num_observed + 1 + event
            if self.rule.is_two_way:
                keys[event + 1 :, events.source[event]] = self._num_observed + 1 + event
        return keys


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
