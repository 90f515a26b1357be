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
from tclgraph.evaluation.block_ranking import BlockRanking
from tclgraph.evaluation.candidates import CandidateRule, Candidates, check_candidates
from tclgraph.evaluation.groups import Group, by_segment, event_groups
from tclgraph.evaluation.ranking import Ranks
from tclgraph.evaluation.report import GroupReport, Report
from tclgraph.evaluation.rules import Part, Rules
from tclgraph.evaluation.seen_targets import SeenTargets
from tclgraph.evaluation.simultaneous import Step, check_simultaneous, num_revealed, steps
from tclgraph.evaluation.tgb import Protocol, TrueTargets, check_protocol, check_split
from tclgraph.evaluation.update import Update
from tclgraph.events.download import Progress
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

    The state of the model is rebuilt first, so a second call gives the same report. The log may
    continue that on which the model was fitted: nodes that are new to the model are added.

    - `with_heuristics` adds the reports of the heuristics, unless the model is a heuristic.
    - `progress` is called with the number of events that were replayed or ranked and the total.

    The rules (see `Rules`) are keyword arguments too:

    - `protocol` says which targets an event is ranked among: "paper" (the default), or "tgb" for
      those of the Temporal Graph Benchmark, which needs its split.
    - `candidates` is "all" (the default) to rank an event among the targets of the data set, or
      "known" for those that have occurred before it. An event whose target has not gets the last
      rank, and the report counts such events.
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
    candidates: str = "all"
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
        check_candidates(self.candidates, protocol=self.protocol)
        if self._protocol == "tgb":
            check_split(self.split)

    def run(self, model: Model, progress: Progress | None) -> Report:
        """Rank the events of the part with a model, which first adds the nodes that it lacks."""
        model.check_fitted()
        model.state.check_log(self.split.events)
        model.forget()
        events = model.admit(self.split.events)
        return replace(self, split=replace(self.split, events=events))._run(model, progress)

    def _run(self, model: Model, progress: Progress | None) -> Report:
        """Rank the events of the part with a model that knows their nodes, from an empty state."""
        reuse_memory()
        started = time.perf_counter()
        history, events = self._history(), self._events()
        counter = _Counter(len(history) + len(events), progress)
        for past in pieces(history, _EVENTS_PER_REPLAY):
            model.observe(past)
            counter.add(len(past))

        ranking_started = time.perf_counter()
        ranking = self._block_ranking(events)
        ranks, is_ranked = self._rank(model, events, ranking, counter)
        ranking_seconds = time.perf_counter() - ranking_started
        num_candidates = int(ranking.candidates.counts()[-1])
        segments = by_segment(ranks.middle, events[is_ranked])

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
            targets=num_candidates,
            candidates=self._candidate_rule,
            first_occurrences=self._first_occurrences(ranking.candidates, events),
            groups={
                name: GroupReport.of(ranks.middle[is_member], self.seed)
                for name, is_member in self._groups(is_ranked).items()
            },
            segments={
                name: GroupReport.of(of_segment, self.seed) for name, of_segment in segments.items()
            },
            segmented_by=events.segments.keys.name if events.segments else None,
            top=ranking.top.report(self.split.train.target, num_candidates),
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

    @property
    def _candidate_rule(self) -> CandidateRule:
        return check_candidates(self.candidates, protocol=self.protocol)

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

    def _block_ranking(self, events: EventStream) -> BlockRanking:
        """Return what ranks the events of the part, given block by block."""
        log, revealed = self.split.events, self._num_revealed
        if self._candidate_rule == "known":
            candidates = Candidates.known(log, revealed[self._bounds])
        else:
            # Selection on valid must not know targets that occur only in test.
            targets = np.unique(log.target[: self._bounds.stop])
            candidates = Candidates.all(targets, log.num_targets, revealed[self._bounds])
        seen = SeenTargets(log, revealed, self._bounds.start) if self.mask_seen else None
        true_targets = TrueTargets(events) if self._protocol == "tgb" else None
        return BlockRanking(candidates, seen=seen, true_targets=true_targets)

    def _rank(
        self, model: Model, events: EventStream, ranking: BlockRanking, counter: "_Counter"
    ) -> tuple[Ranks, BoolArray]:
        """Return the ranks of the ranked events, and which events were ranked."""
        num_targets = self.split.events.num_targets
        withheld, is_together = self._withheld(), self._is_together
        blocks = []
        is_ranked = np.zeros(len(events), dtype=bool)
        start = 0
        for run, is_sampled in sampled_runs(events, self.max_events):
            if is_sampled:
                run_steps = steps(run, withheld, self._update, is_together=is_together)
                for block, scores in _score_blocks(model, run_steps, num_targets):
                    blocks.append(ranking.rank(block, scores))
                    counter.add(len(block))
            else:
                model.observe(run)
                ranking.skip(len(run))
                counter.add(len(run))
            is_ranked[start : start + len(run)] = is_sampled
            start += len(run)
        ranks = Ranks.concatenate(blocks)
        assert len(ranks) == is_ranked.sum(), "every sampled event is ranked exactly once"
        return ranks, is_ranked

    def _groups(self, is_ranked: BoolArray) -> dict[Group, BoolArray]:
        """Return which of the ranked events are in each group."""
        groups = event_groups(self.split, self._num_revealed)
        return {name: is_member[self._bounds][is_ranked] for name, is_member in groups.items()}

    def _first_occurrences(self, candidates: Candidates, events: EventStream) -> int | None:
        if self._candidate_rule == "all":
            return None
        return int(np.count_nonzero(~candidates.include(events.target)))


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


def pieces(events: EventStream, size: int) -> Iterator[EventStream]:
    for start in range(0, len(events), size):
        yield events[start : start + size]


def sampled_runs(events: EventStream, max_events: int | None) -> Iterator[tuple[EventStream, bool]]:
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
        for block in pieces(step.ranked, size):
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
