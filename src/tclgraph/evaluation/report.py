"""What an evaluation found, together with the rules it was found under."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from tclgraph.arrays import FloatArray
from tclgraph.evaluation.metrics import METRIC_NAMES, Intervals, Metrics
from tclgraph.evaluation.update import Update
from tclgraph.events.stream import GraphKind

Group: TypeAlias = Literal["all", "repeat", "new"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupReport:
    """Figures of all events, of those whose pair has met before, or of first meetings."""

    events: int
    metrics: Metrics | None
    """None where the group is empty."""
    intervals: Intervals | None
    """95 % bootstrap intervals over events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a model reached, and under which rules."""

    model: str
    kind: GraphKind
    split: str
    part: Literal["valid", "test"]
    update: str
    masks_seen: bool
    seed: int
    """Of the bootstrap."""
    targets: int
    """Candidates in every ranking."""
    groups: dict[Group, GroupReport]
    tie_spread: float
    """Mean pessimistic minus mean optimistic rank; large means scores that do not tell apart."""
    nan_events: int
    seconds: float
    """Ranking, with the replay of history before it."""
    ranking_seconds: float
    """Ranking alone: scores, ranks, and following the stream from event to event."""
    ranks: FloatArray = field(compare=False, repr=False)
    """Of every event's true target, in order; the middle of those that ties leave open."""
    heuristics: "tuple[Report, ...]" = ()
    """The same evaluation of every heuristic, beside a learned model."""

    def __getitem__(self, metric: str) -> float:
        """A metric over all events: report["MR"]."""
        overall = self.groups["all"].metrics
        assert overall is not None, "evaluate ranks at least one event"
        return overall[metric]

    def to_json(self) -> dict[str, Any]:
        """Plain values for a JSON file; metrics of an empty group are null."""
        groups = self.groups
        return {
            "model": self.model,
            "kind": self.kind,
            "split": self.split,
            "part": self.part,
            "update": self.update,
            "masks_seen": self.masks_seen,
            "events": groups["all"].events,
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
        }

    def __str__(self) -> str:
        """A table for people: metrics down, groups across, 95 % intervals in brackets."""
        names = list(self.groups)
        lines = [
            f"{self.model} on {self.part}: {self.groups['all'].events:,} events, each ranked "
            f"among {self.targets:,} targets",
            f"graph {self.kind} | split {self.split} | update {self.update} "
            f"({Update.parse(self.update).meaning})" + (" | seen masked" * self.masks_seen),
            "",
            " " * 8 + "".join(f"{f'{name} ({self.groups[name].events:,})':>27}" for name in names),
        ]
        for metric in METRIC_NAMES:
            cells = (_cell(self.groups[name], metric) for name in names)
            lines.append(f"{metric:<8}" + "".join(f"{cell:>27}" for cell in cells))
        lines += [
            "",
            "repeat: the pair has met before; new: it has not | "
            f"ties move MR by {self.tie_spread:.2f} | NaN in {self.nan_events:,} events | "
            f"{self.seconds:.1f} s",
        ]
        if self.heuristics:
            lines += ["", _heuristic_row("", METRIC_NAMES)]
            lines += [
                _heuristic_row(
                    one.model, [f"{one[name]:.{decimals(name)}f}" for name in METRIC_NAMES]
                )
                for one in (self, *self.heuristics)
            ]
        return "\n".join(lines)


def decimals(metric: str) -> int:
    """Digits worth showing: MRR and NDCG lie between 0 and 1."""
    return 4 if metric in ("MRR", "NDCG@10") else 2


def _cell(group: GroupReport, metric: str) -> str:
    if group.metrics is None or group.intervals is None:
        return "-"
    digits = decimals(metric)
    low, high = group.intervals[metric]
    return f"{group.metrics[metric]:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def _heuristic_row(name: str, cells: Iterable[str]) -> str:
    return f"{name:<16}" + "".join(f"{cell:>10}" for cell in cells)
