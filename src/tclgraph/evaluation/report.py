"""The result of an evaluation, together with the rules of the evaluation."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from tclgraph.arrays import FloatArray
from tclgraph.evaluation.metrics import METRIC_NAMES, METRICS, Intervals, Metrics
from tclgraph.evaluation.rules import Part
from tclgraph.evaluation.tgb import Protocol
from tclgraph.evaluation.update import Update
from tclgraph.events.stream import GraphKind

Group: TypeAlias = Literal["all", "repeat", "new"]
"""all: every event; repeat: the source has interacted with the target before; new: it has not."""
TOGETHER = "events of the same time ranked before any of them is revealed"
"""Title of figures by the rule `together` for simultaneous events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupReport:
    """Metrics of a group of events."""

    events: int
    metrics: Metrics | None
    """Metrics of the events; None if the group is empty."""
    intervals: Intervals | None
    """95 % bootstrap intervals over events; None if the group is empty."""


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
    """Number of candidates in every ranking; TGB leaves out a few of them for some events."""
    groups: dict[Group, GroupReport]
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
    def rules(self) -> str:
        """One line with the graph kind, the split, the update rule and the protocol of TGB."""
        return (
            f"kind {self.kind} | split {self.split} | update {self.update} "
            f"({Update.parse(self.update).meaning})"
            + " | simultaneous events together" * (self.simultaneous == "together")
            + " | protocol tgb" * (self.protocol == "tgb")
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
            "masks_seen": self.masks_seen,
            "events": self.num_events,
            "targets": self.targets,
            "metrics": groups["all"].metrics,
            "repeat": groups["repeat"].metrics,
            "new": groups["new"].metrics,
            "events_by_group": {name: group.events for name, group in groups.items()},
            "intervals": {name: group.intervals for name, group in groups.items()},
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
        lines = [
            f"{self.model} on {self.part}: {self.num_events:,} events, each ranked "
            f"among {self.targets:,} targets",
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
            f"ties: optimistic and pessimistic MR differ by {self.tie_spread:.2f} | "
            f"NaN in {self.nan_events:,} events | {self.seconds:.1f} s",
        ]
        if self.heuristics:
            lines += ["", *self._rows()]
        if self.together:
            lines += ["", f"{TOGETHER}:", *self.together._rows()]
        return "\n".join(lines)

    def _rows(self) -> list[str]:
        """Return a table with the model and the heuristics as rows and metrics as columns."""
        rows = [
            _row(report.model, [f"{report[name]:.{decimals(name)}f}" for name in METRIC_NAMES])
            for report in (self, *self.heuristics)
        ]
        return [_row("", METRIC_NAMES), *rows]


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
