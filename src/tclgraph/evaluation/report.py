"""The result of an evaluation, together with the rules of the evaluation."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from tclgraph.arrays import FloatArray
from tclgraph.evaluation.candidates import CandidateRule
from tclgraph.evaluation.groups import Group
from tclgraph.evaluation.metrics import (
    METRIC_NAMES,
    METRICS,
    Intervals,
    Metrics,
    bootstrap_intervals,
    metrics,
)
from tclgraph.evaluation.rules import Part
from tclgraph.evaluation.tgb import Protocol
from tclgraph.evaluation.top_targets import TopReport
from tclgraph.evaluation.update import Update
from tclgraph.events.stream import GraphKind

TOGETHER = "events of the same time ranked before any of them is revealed"
"""Title of figures by the rule `together` for simultaneous events."""
_SHOWN_SEGMENTS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupReport:
    """Metrics of a group of events."""

    events: int
    metrics: Metrics | None
    """Metrics of the events; None if the group is empty."""
    intervals: Intervals | None
    """95 % bootstrap intervals over events; None if the group is empty."""

    @classmethod
    def of(cls, ranks: FloatArray, seed: int) -> Self:
        """Return the metrics of the events with these ranks; `seed` is that of the intervals."""
        if not len(ranks):
            return cls(events=0, metrics=None, intervals=None)
        return cls(
            events=len(ranks), metrics=metrics(ranks), intervals=bootstrap_intervals(ranks, seed)
        )

    def cells(self) -> list[str]:
        """Return the metrics as they are printed; the group has events."""
        assert self.metrics is not None, "metrics of an empty group are not printed in a row"
        return [f"{self.metrics[name]:.{decimals(name)}f}" for name in METRIC_NAMES]

    def to_json(self) -> dict[str, Any]:
        """Return plain values for a JSON file."""
        return {"events": self.events, "metrics": self.metrics, "intervals": self.intervals}


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Metrics of a model on a part of a split, and the rules of the evaluation."""

    model: str
    kind: GraphKind
    split: str
    part: Part
    update: str
    simultaneous: str
    """Whether events of the same time are revealed `in-order`, or `together` after the last of them
    is ranked."""
    protocol: Protocol = "paper"
    """Which targets an event is ranked among: all, or those of TGB (see `evaluation.tgb`)."""
    masks_seen: bool
    seed: int
    """Seed of the bootstrap intervals."""
    targets: int
    """Number of candidates of the last event, and of every event unless only known targets are
    candidates; TGB leaves out a few of them for some events."""
    candidates: CandidateRule = "all"
    """Whether an event is ranked among all targets of the data set or the `known` ones, which have
    occurred before it."""
    first_occurrences: int | None = None
    """Number of events whose true target has not occurred before, so that its rank is the number of
    known targets plus 1; None if all targets are candidates."""
    groups: dict[Group, GroupReport]
    segments: dict[str, GroupReport] = field(default_factory=dict)
    """Metrics of each segment of the events, the largest first; empty if the log has none."""
    segmented_by: str | None = None
    """Name of the column that divides the events into segments."""
    top: TopReport
    """Coverage and novelty of the 10 highest ranked candidates."""
    tie_spread: float
    """Mean pessimistic minus mean optimistic rank; large if many targets have equal scores."""
    nan_events: int
    """Number of events with a NaN score."""
    seconds: float
    """Duration of the evaluation: replaying the history, ranking and computing metrics."""
    ranking_seconds: float
    """Duration of ranking alone: scores, ranks and updates of the state."""
    ranks: FloatArray = field(compare=False, repr=False)
    """Rank of the true target of every event, in order; ties have the middle rank."""
    heuristics: "tuple[Report, ...]" = ()
    """Reports of the heuristics under the same rules; empty if they were not evaluated."""
    together: "Report | None" = None
    """Report under the same rules, except that events of the same time are revealed together; None
    if only one rule was evaluated."""

    def __getitem__(self, metric: str) -> float:
        """Return a metric over all events, as in report["MR"]."""
        overall = self.groups["all"].metrics
        assert overall is not None, "evaluate ranks at least one event"
        return overall[metric]

    @property
    def num_events(self) -> int:
        """Number of ranked events."""
        return self.groups["all"].events

    @property
    def ranked_among(self) -> str:
        """Words that say among which targets each event is ranked."""
        if self.candidates == "known":
            return f"each ranked among at most {self.targets:,} known targets"
        return f"each ranked among {self.targets:,} targets"

    @property
    def about_first_occurrences(self) -> str:
        """One line on events whose target is no candidate; empty if all targets are candidates."""
        if self.first_occurrences is None:
            return ""
        return (
            f"first occurrences: the true target of {self.first_occurrences:,} events "
            f"({self._first_occurrences_percent:.2f} %) has not occurred before; "
            "its rank is the number of known targets plus 1"
        )

    @property
    def rules(self) -> str:
        """One line with the graph kind, the split, the update rule and the protocol of TGB."""
        return (
            f"kind {self.kind} | split {self.split} | update {self.update} "
            f"({Update.parse(self.update).meaning})"
            + " | simultaneous events together" * (self.simultaneous == "together")
            + " | protocol tgb" * (self.protocol == "tgb")
            + " | known candidates" * (self.candidates == "known")
            + " | seen masked" * self.masks_seen
        )

    def to_json(self) -> dict[str, Any]:
        """Return plain values for a JSON file; the metrics of an empty group are null."""
        groups = self.groups
        return {
            "model": self.model,
            "kind": self.kind,
            "split": self.split,
            "part": self.part,
            "update": self.update,
            "simultaneous": self.simultaneous,
            **({"protocol": self.protocol} if self.protocol == "tgb" else {}),
            **self._candidates_to_json(),
            "masks_seen": self.masks_seen,
            "events": self.num_events,
            "targets": self.targets,
            "metrics": groups["all"].metrics,
            "repeat": groups["repeat"].metrics,
            "new": groups["new"].metrics,
            "unseen": groups["unseen"].metrics,
            "events_by_group": {name: group.events for name, group in groups.items()},
            "intervals": {name: group.intervals for name, group in groups.items()},
            "top": asdict(self.top),
            **self._segments_to_json(),
            "tie_spread": self.tie_spread,
            "nan_events": self.nan_events,
            "seed": self.seed,
            "seconds": round(self.seconds, 3),
            "ranking_seconds": round(self.ranking_seconds, 3),
            **(
                {"heuristics": [heuristic.to_json() for heuristic in self.heuristics]}
                if self.heuristics
                else {}
            ),
            **({"together": self.together.to_json()} if self.together else {}),
        }

    def __str__(self) -> str:
        """Return a table with metrics as rows, groups as columns and 95 % intervals in brackets."""
        names = list(self.groups)
        coverage, novelty = self.top.cells()
        lines = [
            f"{self.model} on {self.part}: {self.num_events:,} events, {self.ranked_among}",
            self.rules,
            "",
            " " * 8 + "".join(f"{f'{name} ({self.groups[name].events:,})':>27}" for name in names),
        ]
        for metric in METRIC_NAMES:
            cells = (_cell(self.groups[name], metric) for name in names)
            lines.append(f"{metric:<8}" + "".join(f"{cell:>27}" for cell in cells))
        lines += [
            "",
            "repeat: the source has interacted with the target before; new: it has not",
            "unseen: the source or the target is absent from the training events",
            *filter(None, [self.about_first_occurrences]),
            f"top {self.top.depth}: coverage {coverage} % of the targets | novelty {novelty} bits",
            f"ties: optimistic and pessimistic MR differ by {self.tie_spread:.2f} | "
            f"NaN in {self.nan_events:,} events | {self.seconds:.1f} s",
        ]
        if self.segments:
            lines += ["", *self._segment_rows()]
        if self.heuristics:
            lines += ["", *self._rows()]
        if self.together:
            lines += ["", f"{TOGETHER}:", *self.together._rows()]
        return "\n".join(lines)

    def _rows(self) -> list[str]:
        """Return a table with the model and the heuristics as rows and metrics as columns."""
        rows = [
            _row(report.model, [*report.groups["all"].cells(), *report.top.cells()])
            for report in (self, *self.heuristics)
        ]
        return [_row("", [*METRIC_NAMES, "coverage", "novelty"]), *rows]

    def _segment_rows(self) -> list[str]:
        """Return a table with the largest segments as rows and metrics as columns."""
        shown, num_others, num_events = largest_segments(self)
        rows = [
            _row(shortened(name), [f"{group.events:,}", *group.cells()])
            for name, group in shown.items()
        ]
        others = [f"{num_others:,} smaller segments with {num_events:,} events"] * (num_others > 0)
        return [
            f"by {self.segmented_by}:",
            _row("", ["events", *METRIC_NAMES]),
            *rows,
            *others,
        ]

    @property
    def _first_occurrences_percent(self) -> float:
        return 100.0 * (self.first_occurrences or 0) / self.num_events

    def _candidates_to_json(self) -> dict[str, Any]:
        if self.first_occurrences is None:
            return {}
        return {
            "candidates": self.candidates,
            "first_occurrences": {
                "events": self.first_occurrences,
                "percent": self._first_occurrences_percent,
            },
        }

    def _segments_to_json(self) -> dict[str, Any]:
        if not self.segments:
            return {}
        segments = {name: group.to_json() for name, group in self.segments.items()}
        return {"segmented_by": self.segmented_by, "segments": segments}


def largest_segments(report: Report) -> tuple[dict[str, GroupReport], int, int]:
    """Return the segments that tables show, the number of the others, and that of their events."""
    segments = list(report.segments.items())
    others = segments[_SHOWN_SEGMENTS:]
    num_events = sum(group.events for _, group in others)
    return dict(segments[:_SHOWN_SEGMENTS]), len(others), num_events


def decimals(metric: str) -> int:
    """Return the number of decimals to print for a metric."""
    return METRICS[metric].decimals


def _cell(group: GroupReport, metric: str) -> str:
    if group.metrics is None or group.intervals is None:
        return "-"
    places = decimals(metric)
    low, high = group.intervals[metric]
    return f"{group.metrics[metric]:.{places}f} [{low:.{places}f}, {high:.{places}f}]"


def _row(name: str, cells: Iterable[str]) -> str:
    return f"{name:<16}" + "".join(f"{cell:>10}" for cell in cells)


def shortened(name: str) -> str:
    """Return a name of at most 15 characters."""
    return name if len(name) < 16 else f"{name[:14]}…"
