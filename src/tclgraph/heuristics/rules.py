"""Rules without a parameter to learn, shown beside every learned model.

One that does not beat them is not worth running.

Each is a ranking in two steps: first by what source and candidate have had with each other (the
*pair key*), then by what the candidate has been doing (the *target key*):

| name            | pair key                                | target key              |
|-----------------|-----------------------------------------|-------------------------|
| popularity      |                                         | times acted upon        |
| global-recency  |                                         | last time acted upon    |
| own-recency     | last meeting                            | last time acted upon    |
| own-frequency   | number of meetings                      | last time acted upon    |
| last-contact    | last meeting, either way                | last activity, any role |
| edgebank        | met at all                              | last time acted upon    |
| edgebank-window | met within the window before the query  | last time acted upon    |

"Last" goes by the order of events, so simultaneous events have an order too. Candidates without
any history share the lowest score.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, Self, TypeAlias

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save as to_bytes

from tclgraph.arrays import FloatArray, IntArray, ScoreArray
from tclgraph.errors import InputError
from tclgraph.events.pair_history import Meetings, PairHistory
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream, GraphKind
from tclgraph.events.writers import replacing
from tclgraph.models.interface import Model

PairKey: TypeAlias = Literal["none", "last", "count", "met", "met in window"]

# Scores are pair key times this plus target key: exact in float64 up to 4 billion events of which
# 2 million are between the same two.
_PAIR_FIRST = 2.0**32
# EdgeBank's window is as long as the test period that it was made for, 15 % of the data.
_WINDOW_SHARE = 0.15


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A row of the table above."""

    pair: PairKey = "none"
    target: Literal["last", "count"] = "last"
    is_two_way: bool = False
    """Whether a meeting counts for both, and acting as well as being acted upon."""


class Heuristic(Model):
    """What all the rules share: the state they count in, and how it becomes scores."""

    rule: ClassVar[Rule]

    def fit(self, split: Split) -> Self:
        if self.rule.is_two_way and split.events.kind != "one-mode":
            raise InputError(
                f"{self.name} needs a graph where the same nodes act and are acted upon; "
                "pass --kind one-mode or take own-recency"
            )
        train = split.train
        recent = train.time[int((1 - _WINDOW_SHARE) * len(train)) :]
        window = float(recent[-1] - recent[0]) if len(recent) else 0.0
        self.measured = {"window": window}
        self.start_state(split.events)
        self.observe(train)
        return self

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
        pair_key = self._pair_keys(source, time)
        pair_key *= _PAIR_FIRST
        pair_key += self._target_key
        return pair_key

    def _pair_keys(self, source: IntArray, time: FloatArray) -> FloatArray:
        """Pair key of every candidate for every query, by the state as it is."""
        keys = np.zeros((len(source), self.state.space.num_targets))
        if self.rule.pair == "none":
            return keys
        for row, (one, at) in enumerate(zip(source.tolist(), time.tolist(), strict=True)):
            met = self._pairs.of(one)
            keys[row, met.target] = self._pair_key(met, at)
        return keys

    def _pair_key(self, met: Meetings, time: float) -> IntArray | FloatArray:
        match self.rule.pair:
            case "last":
                return met.last_number
            case "count":
                return met.count
            case "met":
                return np.ones(len(met.target))
            case "met in window":
                return (time - met.last_time <= self.measured["window"]).astype(np.float64)
            case "none":
                return np.zeros(len(met.target))

    def score_each(self, events: EventStream) -> ScoreArray:
        """All rows by the state before the block, then each event written into later rows."""
        scores = self._pair_keys(events.source, events.time)
        for event in range(len(events) - 1):
            one, other = events.source[event], events.target[event]
            self._reveal_pair(scores, events, event, one, other)
            if self.rule.is_two_way:
                self._reveal_pair(scores, events, event, other, one)
        scores *= _PAIR_FIRST
        scores += self._target_keys_before(events)
        self.observe(events)
        return scores

    def _reveal_pair(
        self, keys: FloatArray, events: EventStream, event: int, source: int, target: int
    ) -> None:
        later = event + 1 + np.flatnonzero(events.source[event + 1 :] == source)
        match self.rule.pair:
            case "last":
                keys[later, target] = self._num_observed + 1 + event
            case "count":
                keys[later, target] += 1
            case "met":
                keys[later, target] = 1
            case "met in window":
                keys[later, target] = events.time[later] - events.time[event] <= self.measured["window"]
            case "none":
                pass

    def _target_keys_before(self, events: EventStream) -> FloatArray:
        """Row j: the target keys after the block's events before j."""
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
    rule = Rule(pair="met")


class EdgeBankWindow(Heuristic):
    name = "edgebank-window"
    rule = Rule(pair="met in window")


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
    """The rules that any learned model must beat on this kind of graph."""
    return tuple(one for one in _ALL if kind == "one-mode" or not one.rule.is_two_way)
