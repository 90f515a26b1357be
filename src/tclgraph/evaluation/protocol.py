"""The ranking protocol: the same for every model, with nothing that could flatter one.

For every event of a part, all targets of the data set are scored for its source at its time, the
rank of the true target is recorded, and only then is the event revealed. No negatives are sampled;
targets that the source has met stay in the ranking, since repeats are most of what happens.
"""

import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Literal

import numpy as np

from tclgraph.arrays import BoolArray, IntArray, ScoreArray
from tclgraph.evaluation.metrics import bootstrap_intervals, metrics
from tclgraph.evaluation.ranking import Ranks, rank
from tclgraph.evaluation.report import Group, GroupReport, Report
from tclgraph.evaluation.update import Update
from tclgraph.events.download import Progress
from tclgraph.events.pair_history import PairHistory
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream
from tclgraph.heuristics.rules import Heuristic, heuristics_for
from tclgraph.models.interface import Model

# Scores held at once: 16 MB as float64, small enough to stay near the processor.
_CELLS_PER_BLOCK = 1 << 21
_EVENTS_PER_BLOCK = 256
_EVENTS_PER_REPLAY = 1 << 16
# Of a sample: long enough for models that rank neighbouring events together.
_EVENTS_PER_RUN = 64


def evaluate(
    model: Model,
    split: Split,
    *,
    part: Literal["valid", "test"] = "test",
    update: str = "streaming",
    mask_seen: bool = False,
    seed: int = 0,
    with_heuristics: bool = True,
    at_most: int | None = None,
    progress: Progress | None = None,
) -> Report:
    """Rank every event of a part with a fitted model.

    The model's state is rebuilt first, so that calling this twice gives the same answer twice.
    `mask_seen` leaves out of each ranking the other targets that the source has met. The report
    has the heuristics beside the model, unless it is one itself or `with_heuristics` is off. Of more
    events than `at_most`, only so many are ranked, in runs that are spread evenly, and the others
    just revealed: quicker where the figure only has to tell epochs apart. `progress` counts events
    replayed and ranked.
    """
    heuristics: tuple[Report, ...] = ()
    if with_heuristics and not isinstance(model, Heuristic):
        kinds = heuristics_for(split.events.kind)
        heuristics = tuple(
            evaluate(
                heuristic().fit(split),
                split,
                part=part,
                update=update,
                mask_seen=mask_seen,
                seed=seed,
                at_most=at_most,
                progress=_share_of(progress, number, len(kinds) + 1),
            )
            for number, heuristic in enumerate(kinds)
        )
        progress = _share_of(progress, len(kinds), len(kinds) + 1)
    rule = Update.parse(update)
    assert at_most is None or (rule.kind == "streaming" and not mask_seen), "others see it whole"
    started = time.perf_counter()
    start, stop = {
        "valid": (split.train_end, split.valid_end),
        "test": (split.valid_end, len(split.events)),
    }[part]
    is_frozen_early = rule.kind == "frozen" and rule.frozen_after == "train"
    history = split.events[: split.train_end if is_frozen_early else start]
    events = split.events[start:stop]
    done = 0

    def advance(num_events: int) -> None:
        nonlocal done
        done += num_events
        if progress:
            progress(done, len(history) + len(events))

    model.forget()
    for past in _pieces(history, _EVENTS_PER_REPLAY):
        model.observe(past)
        advance(len(past))

    ranking_started = time.perf_counter()
    candidates = np.unique(split.events.target)
    seen = _SeenTargets(split.events[:start]) if mask_seen else None
    blocks, is_ranked = [], np.zeros(len(events), dtype=bool)
    place = 0
    for run, is_wanted in _runs(events, at_most):
        if is_wanted:
            for block, scores in _score_blocks(model, run, rule, split.events.num_targets):
                if seen is not None:
                    scores = seen.masked(scores, block)
                blocks.append(_rank_among(candidates, scores, block.target))
                advance(len(block))
        else:
            model.observe(run)
            advance(len(run))
        is_ranked[place : place + len(run)] = is_wanted
        place += len(run)
    ranks = Ranks.concatenate(blocks)
    assert len(ranks) == is_ranked.sum(), "every event is ranked exactly once"
    ranking_seconds = time.perf_counter() - ranking_started

    is_repeat = _has_met_before(split.events)[start:stop][is_ranked]
    members: dict[Group, BoolArray] = {
        "all": np.ones(len(ranks), dtype=bool),
        "repeat": is_repeat,
        "new": ~is_repeat,
    }
    return Report(
        model=model.name,
        kind=split.events.kind,
        split=str(split),
        part=part,
        update=str(rule),
        masks_seen=mask_seen,
        seed=seed,
        targets=len(candidates),
        groups={name: _group_report(ranks, which, seed) for name, which in members.items()},
        tie_spread=float(np.mean(ranks.pessimistic - ranks.optimistic)),
        nan_events=int(ranks.is_nan.sum()),
        seconds=time.perf_counter() - started,
        ranking_seconds=ranking_seconds,
        ranks=ranks.middle,
        heuristics=heuristics,
    )


def _share_of(progress: Progress | None, number: int, count: int) -> Progress | None:
    """Progress of one among several jobs of the same size."""
    if progress is None:
        return None
    return lambda done, total: progress(number * total + done, count * total)


def _pieces(events: EventStream, size: int) -> Iterator[EventStream]:
    for start in range(0, len(events), size):
        yield events[start : start + size]


def _runs(events: EventStream, at_most: int | None) -> Iterator[tuple[EventStream, bool]]:
    """Consecutive events that are all ranked, or all just revealed."""
    if at_most is None or at_most >= len(events):
        yield events, True
        return
    count = -(-at_most // _EVENTS_PER_RUN)
    size = at_most // count
    borders = [len(events) * number // count for number in range(count + 1)]
    for start, stop in pairwise(borders):
        yield events[start : start + size], True
        yield events[start + size : stop], False


def _score_blocks(
    model: Model, events: EventStream, rule: Update, num_targets: int
) -> Iterator[tuple[EventStream, ScoreArray]]:
    """Consecutive blocks of events with their scores, the state following as the rule says."""
    size = max(1, min(_EVENTS_PER_BLOCK, _CELLS_PER_BLOCK // num_targets))
    if rule.kind == "streaming":
        for block in _pieces(events, size):
            yield block, _checked(model.score_each(block), model, block, num_targets)
        return
    for stale in _pieces(events, rule.every if rule.kind == "every" else len(events)):
        for block in _pieces(stale, size):
            scores = model.score(block.source, block.time)
            yield block, _checked(scores, model, block, num_targets)
        if rule.kind == "every":
            model.observe(stale)


def _checked(scores: ScoreArray, model: Model, block: EventStream, num_targets: int) -> ScoreArray:
    shape = (len(block), num_targets)
    assert scores.shape == shape, f"{model.name} gave scores of shape {scores.shape} for {shape}"
    return scores


def _rank_among(candidates: IntArray, scores: ScoreArray, true: IntArray) -> Ranks:
    """Rank among the targets of the data set, which in a one-mode graph are not all nodes."""
    if len(candidates) < scores.shape[1]:
        scores, true = scores[:, candidates], np.searchsorted(candidates, true)
    return rank(scores, true)


def _has_met_before(events: EventStream) -> BoolArray:
    _, first, which = np.unique(events.pairs(), return_index=True, return_inverse=True)
    met: BoolArray = first[which] < np.arange(len(events))
    return met


def _group_report(ranks: Ranks, members: BoolArray, seed: int) -> GroupReport:
    chosen = ranks.middle[members]
    if not len(chosen):
        return GroupReport(events=0, metrics=None, intervals=None)
    return GroupReport(
        events=len(chosen), metrics=metrics(chosen), intervals=bootstrap_intervals(chosen, seed)
    )


class _SeenTargets:
    """The targets that each source has met so far, taken out of its ranking."""

    def __init__(self, history: EventStream) -> None:
        self._met = PairHistory()
        self._observe(history)

    def _observe(self, events: EventStream) -> None:
        number = np.zeros(len(events), dtype=np.int64)
        self._met.observe(events.source, events.target, events.time, number)
        if events.kind == "one-mode":
            self._met.observe(events.target, events.source, events.time, number)

    def masked(self, scores: ScoreArray, block: EventStream) -> ScoreArray:
        """Scores with met targets at the bottom, but for the true one; then reveal the block."""
        result = scores.copy()
        for row in range(len(block)):
            true = block.target[row]
            result[row, self._met.of(block.source[row]).target] = -np.inf
            result[row, true] = scores[row, true]
            self._observe(block[row : row + 1])
        return result
