"""Scores of the heuristics and the update of their history, as compiled loops over events."""

from typing import NamedTuple

from tclgraph.arrays import FloatArray, IntArray
from tclgraph.compilation import kernel
from tclgraph.events.pair_history import PairColumns, record_interaction

# A score is the pair key times this factor plus the target key. It is exact in float64 for up to
# 4 billion events, of which up to 2 million may be between the same pair.
PAIR_FACTOR = 2.0**32
NO_PAIR_KEY, LAST, COUNT, INTERACTED, INTERACTED_IN_WINDOW = range(5)


class RuleCode(NamedTuple):
    """A rule in numbers, for kernels."""

    pair: int
    """The pair key: a constant of this module."""
    counts_target: bool
    """Whether the target key counts events; otherwise it is the number of the last event."""
    is_two_way: bool
    window: float
    """Length of EdgeBank's window."""


class EventColumns(NamedTuple):
    """Consecutive events, and the entries of their pairs in the history."""

    source: IntArray
    target: IntArray
    time: FloatArray
    forward: IntArray
    """Entry of (source, target); empty if the rule has no pair key."""
    backward: IntArray
    """Entry of (target, source); empty if the rule is not two-way."""


@kernel
def write_scores(
    source: int,
    time: float,
    rule: RuleCode,
    pairs: PairColumns,
    target_key: FloatArray,
    scores: FloatArray,
) -> None:
    """Write the scores of all targets for a query."""
    scores[:] = target_key
    if rule.pair == NO_PAIR_KEY or source >= len(pairs.newest):
        return
    entry = pairs.newest[source]
    while entry >= 0:
        # A pair of the same block that has not interacted before the query has no interactions.
        if pairs.num_interactions[entry] > 0:
            key = 1.0
            if rule.pair == LAST:
                key = float(pairs.last_number[entry])
            elif rule.pair == COUNT:
                key = float(pairs.num_interactions[entry])
            elif rule.pair == INTERACTED_IN_WINDOW:
                key = 1.0 if time - pairs.last_time[entry] <= rule.window else 0.0
            target = pairs.target[entry]
            scores[target] = key * PAIR_FACTOR + target_key[target]
        entry = pairs.earlier[entry]


@kernel
def follow_events(
    events: EventColumns,
    number: int,
    rule: RuleCode,
    pairs: PairColumns,
    target_key: FloatArray,
    scores: FloatArray,
) -> None:
    """Add events to the history; if `scores` has rows, score each event before it is added.

    `number` is the number of the first event.
    """
    for row in range(len(events.source)):
        source, target, time = events.source[row], events.target[row], events.time[row]
        if len(scores):
            write_scores(source, time, rule, pairs, target_key, scores[row])
        if rule.counts_target:
            target_key[target] += 1.0
        else:
            target_key[target] = number + row
        if rule.is_two_way:
            target_key[source] = number + row
            record_interaction(pairs, events.backward[row], time, number + row)
        if rule.pair != NO_PAIR_KEY:
            record_interaction(pairs, events.forward[row], time, number + row)


@kernel
def score_queries(
    source: IntArray,
    time: FloatArray,
    rule: RuleCode,
    pairs: PairColumns,
    target_key: FloatArray,
    scores: FloatArray,
) -> None:
    """Write the scores of all targets (columns) for queries (rows)."""
    for row in range(len(source)):
        write_scores(source[row], time[row], rule, pairs, target_key, scores[row])
