"""The ranking protocol, which is the same for every model.

For every event of a part, the model scores all targets of the data set for the event's source at
the event's time. The rank of the true target is recorded, and only then does the model observe the
event. No negatives are sampled. Targets that the source has interacted with stay in the ranking,
because most events are repeats.
"""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Unpack, get_args

import numpy as np

from tclgraph.allocation import reuse_memory
from tclgraph.arrays import BoolArray, IntArray, ScoreArray
from tclgraph.errors import InputError
from tclgraph.evaluation.metrics import bootstrap_intervals, metrics
from tclgraph.evaluation.ranking import Ranks, rank
from tclgraph.evaluation.report import Group, GroupReport, Report
from tclgraph.evaluation.rules import Part, Rules
from tclgraph.evaluation.simultaneous import Step, check_simultaneous, num_revealed, steps
from tclgraph.evaluation.tgb import Protocol, TrueTargets, check_protocol, check_split
from tclgraph.evaluation.update import Update
from tclgraph.events.download import Progress
from tclgraph.events.pair_history import PairHistory
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream
from tclgraph.heuristics.rules import Heuristic, heuristics_for
from tclgraph.models.interface import Model

# The scores of a block take at most 16 MB as float64, which fits in cache.
_CELLS_PER_BLOCK = 1 << 21
_EVENTS_PER_BLOCK = 1024
_EVENTS_PER_REPLAY = 1 << 16
# Runs of a sample are long enough for models that rank consecutive events together.
_EVENTS_PER_RUN = 64


def evaluate(
    model: Model,
    split: Split,
    *,
    with_heuristics: bool = True,
    progress: Progress | None = None,
    **rules: Unpack[Rules],
) -> Report:
    """Rank every event of a part with a fitted model and return the metrics.

    The state of the model is rebuilt first, so a second call gives the same report.

    - `with_heuristics` adds the reports of the heuristics, unless the model is a heuristic.
    - `progress` is called with the number of events that were replayed or ranked and the total.

    The rules (see `Rules`) are keyword arguments too:

    - `protocol` says which targets an event is ranked among: "paper" (the default), or "tgb" for
      those of the Temporal Graph Benchmark, which needs its split.
    - `part` is the part of the split to rank, "test" (the default) or "valid".
    - `update` says when the state follows the events: "streaming" (the default), "every=N",
      "frozen" or "frozen=valid" (see `Update`).
    - `simultaneous` says whether events of the same time are revealed "in-order" (the default) or
      "together", after the last of them is ranked. "both" evaluates twice, and the second report
      is `Report.together` of the first.
    - `mask_seen` removes from each ranking the other targets that the source has interacted with.
    - `seed` is the seed of the bootstrap intervals.
    """
    evaluation = _Evaluation(split=split, **rules)
    if evaluation.simultaneous == "both":
        by_rule = []
        for number, rule in enumerate(("in-order", "together")):
            rules["simultaneous"] = rule
            share = _share_of(progress, number, 2)
            by_rule.append(
                evaluate(model, split, with_heuristics=with_heuristics, progress=share, **rules)
            )
        return replace(by_rule[0], together=by_rule[1])
    if not with_heuristics or isinstance(model, Heuristic):
        return evaluation.run(model, progress)
    heuristics = heuristics_for(split.events.kind)
    num_models = len(heuristics) + 1
    reports = tuple(
        evaluation.run(heuristic().fit(split), _share_of(progress, number, num_models))
        for number, heuristic in enumerate(heuristics)
    )
    report = evaluation.run(model, _share_of(progress, len(heuristics), num_models))
    return replace(report, heuristics=reports)


def validate(model: Model, split: Split, *, max_events: int | None = None) -> Report:
    """Rank the validation events with a fitted model, without the heuristics.

    If there are more than `max_events` events, rank a sample of about that size: runs of
    consecutive events that are spread evenly. The model observes the other events without ranking
    them. Training uses this to compare epochs quickly.
    """
    evaluation = _Evaluation(split=split, part="valid", max_events=max_events)
    return evaluation.run(model, progress=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Evaluation:
    """The rules of an evaluation, which can be applied to several models."""

    split: Split
    protocol: str = "paper"
    part: Part = "test"
    update: str = "streaming"
    simultaneous: str = "in-order"
    mask_seen: bool = False
    seed: int = 0
    max_events: int | None = None
    """Size of the sample to rank; only if simultaneous events are revealed in order."""

    def __post_init__(self) -> None:
        Update.parse(self.update)
        check_simultaneous(self.simultaneous)
        if self.part not in get_args(Part):
            raise InputError(f"unknown part {self.part!r}; give valid or test")
        if self._protocol == "tgb":
            check_split(self.split)

    def run(self, model: Model, progress: Progress | None) -> Report:
        """Rank the events of the part with a model."""
        reuse_memory()
        started = time.perf_counter()
        history, events = self._history(), self._events()
        counter = _Counter(len(history) + len(events), progress)
        model.forget()
        for past in _pieces(history, _EVENTS_PER_REPLAY):
            model.observe(past)
            counter.add(len(past))

        ranking_started = time.perf_counter()
        # Selection on valid must not know targets that occur only in test.
        candidates = np.unique(self.split.events.target[: self._bounds.stop])
        ranks, is_ranked = self._rank(model, events, candidates, counter)
        ranking_seconds = time.perf_counter() - ranking_started

        return Report(
            model=model.name,
            kind=self.split.events.kind,
            split=str(self.split),
            part=self.part,
            update=str(self._update),
            simultaneous=self.simultaneous,
            protocol=self._protocol,
            masks_seen=self.mask_seen,
            seed=self.seed,
            targets=len(candidates),
            groups=self._groups(ranks, is_ranked),
            tie_spread=float(np.mean(ranks.pessimistic - ranks.optimistic)),
            nan_events=int(ranks.is_nan.sum()),
            seconds=time.perf_counter() - started,
            ranking_seconds=ranking_seconds,
            ranks=ranks.middle,
        )

    @property
    def _bounds(self) -> slice:
        """The events of the part, as a slice of all events."""
        if self.part == "valid":
            return slice(self.split.train_end, self.split.valid_end)
        return slice(self.split.valid_end, len(self.split.events))

    @property
    def _update(self) -> Update:
        return Update.parse(self.update)

    @property
    def _is_together(self) -> bool:
        return self.simultaneous == "together"

    @property
    def _num_revealed(self) -> IntArray:
        """Number of events that are revealed before each event is ranked."""
        return num_revealed(self.split.events.time, is_together=self._is_together)

    @property
    def _protocol(self) -> Protocol:
        return check_protocol(self.protocol, mask_seen=self.mask_seen)

    def _events(self) -> EventStream:
        return self.split.events[self._bounds]

    def _history(self) -> EventStream:
        """Return the events that the model observes before the first event of the part."""
        if self._update.kind == "frozen" and self._update.frozen_after == "train":
            return self.split.train
        return self.split.events[: self._bounds.start - len(self._withheld())]

    def _withheld(self) -> EventStream:
        """Return the events before the part that are revealed with its first event."""
        start = self._bounds.start
        is_frozen = self._update.kind == "frozen"
        return self.split.events[start if is_frozen else self._num_revealed[start] : start]

    def _rank(
        self, model: Model, events: EventStream, candidates: IntArray, counter: "_Counter"
    ) -> tuple[Ranks, BoolArray]:
        """Return the ranks of the ranked events, and which events were ranked."""
        num_targets = self.split.events.num_targets
        revealed, first = self._num_revealed, self._bounds.start
        seen = _SeenTargets(self.split.events, revealed, first) if self.mask_seen else None
        true_targets = TrueTargets(events) if self._protocol == "tgb" else None
        withheld, is_together = self._withheld(), self._is_together
        blocks = []
        is_ranked = np.zeros(len(events), dtype=bool)
        start = 0
        for run, is_sampled in _runs(events, self.max_events):
            if is_sampled:
                run_steps = steps(run, withheld, self._update, is_together=is_together)
                for block, scores in _score_blocks(model, run_steps, num_targets):
                    masked = scores if seen is None else seen.mask(scores, block)
                    # In a one-mode graph, not every node is a target of the data set.
                    ranks = rank(masked, block.target, candidates)
                    if true_targets is not None:
                        ranks = true_targets.leave_out(ranks, masked, block, candidates)
                    blocks.append(ranks)
                    counter.add(len(block))
            else:
                model.observe(run)
                counter.add(len(run))
            is_ranked[start : start + len(run)] = is_sampled
            start += len(run)
        ranks = Ranks.concatenate(blocks)
        assert len(ranks) == is_ranked.sum(), "every sampled event is ranked exactly once"
        return ranks, is_ranked

    def _groups(self, ranks: Ranks, is_ranked: BoolArray) -> dict[Group, GroupReport]:
        is_repeat = _is_repeat(self.split.events, self._num_revealed)[self._bounds][is_ranked]
        return {
            "all": self._group_report(ranks, np.ones(len(ranks), dtype=bool)),
            "repeat": self._group_report(ranks, is_repeat),
            "new": self._group_report(ranks, ~is_repeat),
        }

    def _group_report(self, ranks: Ranks, is_member: BoolArray) -> GroupReport:
        members = ranks.middle[is_member]
        if not len(members):
            return GroupReport(events=0, metrics=None, intervals=None)
        return GroupReport(
            events=len(members),
            metrics=metrics(members),
            intervals=bootstrap_intervals(members, self.seed),
        )


class _Counter:
    """Counts events and reports the count to a progress callback."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._done = 0
        self._total = total
        self._progress = progress

    def add(self, num_events: int) -> None:
        self._done += num_events
        if self._progress:
            self._progress(self._done, self._total)


def _share_of(progress: Progress | None, number: int, count: int) -> Progress | None:
    """Return a callback for job `number` of `count` jobs of the same size."""
    if progress is None:
        return None
    return lambda done, total: progress(number * total + done, count * total)


def _pieces(events: EventStream, size: int) -> Iterator[EventStream]:
    for start in range(0, len(events), size):
        yield events[start : start + size]


def _runs(events: EventStream, max_events: int | None) -> Iterator[tuple[EventStream, bool]]:
    """Yield runs of consecutive events, and whether the run belongs to the sample."""
    if max_events is None or max_events >= len(events):
        yield events, True
        return
    count = -(-max_events // _EVENTS_PER_RUN)
    size = max_events // count
    borders = [len(events) * number // count for number in range(count + 1)]
    for start, stop in pairwise(borders):
        yield events[start : start + size], True
        yield events[start + size : stop], False


def _score_blocks(
    model: Model, steps: Iterable[Step], num_targets: int
) -> Iterator[tuple[EventStream, ScoreArray]]:
    """Yield consecutive blocks of events with their scores; update the state of the model."""
    size = max(1, min(_EVENTS_PER_BLOCK, _CELLS_PER_BLOCK // num_targets))
    for step in steps:
        for block in _pieces(step.ranked, size):
            if step.is_in_turn:
                scores = model.score_each(block)
            else:
                scores = model.score(block.source, block.time)
            yield block, _checked(scores, model, block, num_targets)
        for events in step.revealed:
            model.observe(events)


def _checked(scores: ScoreArray, model: Model, block: EventStream, num_targets: int) -> ScoreArray:
    shape = (len(block), num_targets)
    assert scores.shape == shape, (
        f"{model.name} returned scores of shape {scores.shape} instead of {shape}"
    )
    return scores


def _is_repeat(events: EventStream, num_revealed: IntArray) -> BoolArray:
    """Return for every event whether an event that is revealed before it has the same pair."""
    _, first_of_pair, pair = np.unique(events.pairs(), return_index=True, return_inverse=True)
    is_repeat: BoolArray = first_of_pair[pair] < num_revealed
    return is_repeat


class _SeenTargets:
    """Masks the targets that a source has interacted with, event by event."""

    def __init__(self, events: EventStream, num_revealed: IntArray, start: int) -> None:
        """Start with the event `start`; `num_revealed` says how many events are before each."""
        self._events = events
        self._num_revealed = num_revealed
        self._next = start
        self._pairs = PairHistory()
        self._num_observed = 0

    def _observe(self, num_events: int) -> None:
        """Observe the next events until there are so many."""
        events = self._events[self._num_observed : num_events]
        number = np.zeros(len(events), dtype=np.int64)
        self._pairs.observe(events.source, events.target, events.time, number)
        if events.kind == "one-mode":
            self._pairs.observe(events.target, events.source, events.time, number)
        self._num_observed = num_events

    def mask(self, scores: ScoreArray, block: EventStream) -> ScoreArray:
        """Return scores of the next events with seen targets, except the true one, at -inf."""
        masked = scores.copy()
        for row in range(len(block)):
            self._observe(int(self._num_revealed[self._next]))
            self._next += 1
            true = block.target[row]
            masked[row, self._pairs.neighbors_of(block.source[row]).target] = -np.inf
            masked[row, true] = scores[row, true]
        return masked
