"""Which jobs make the paper's tables and figures.

A study is one table or figure of one log; it has an entry for every row or point. An entry is a
model with settings, or several of which the one counts that does best on validation, seed by seed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from tclgraph import registry
from tclgraph.arrays import FloatArray
from tclgraph.errors import InputError, did_you_mean
from tclgraph.events.log_spec import LogSpec
from tclgraph.events.split import Split
from tclgraph.events.stream import GraphKind
from tclgraph.heuristics.rules import heuristics_for
from tclgraph.jobs.job import Job, digest_of, read_outcome, read_ranks
from tclgraph.models.tcl.config import PRESETS

Group: TypeAlias = Literal["heuristic", "baseline", "TCL"]
Outcome: TypeAlias = dict[str, Any]

BASELINES = (
    "graphsage",
    "ctdne",
    "dyngem",
    "dysat",
    "jodie",
    "deepcoevolve",
    "tgat",
    "tgn",
    "tdig-mpnn",
)
"""In the order of Table 2."""
AGGREGATORS = ("gcn", "mean", "max", "lstm", "gat")
EVERYTHING = ("heuristics", *BASELINES, "paper", "default")
"""What `overall` compares."""
ABLATED = ("paper", "default")
"""Presets that the ablation takes apart."""
DEPTHS = (1, 2, 3, 4, 5, 6)
HEADS = (1, 2, 4, 8, 16)
_OWN_DEPTH, _OWN_HEADS = 5, 16
# More seeds than anyone asks for: those of earlier calls count, however many this one has.
_MOST_SEEDS = 64
# Of the default preset: all that is made for the full contrast, which the point process has not.
_SAMPLED = {
    "contrast": "sampled",
    "centered": False,
    "pair_history": False,
    "repeat_gate": False,
    "candidate_state": False,
    "source_state": False,
    "nearby": False,
}
POINT_PROCESS = "two-stream encoder + TPP"
HISTORY_TERMS = "without all history terms"
VARIANTS: dict[str, dict[str, Any]] = {
    "without time embedding": {"time_embedding": False},
    "without depth embedding": {"depth_embedding": False},
    "without cross-attention": {"cross_attention": False},
    POINT_PROCESS: {"objective": "point-process"},
}
"""Rows of Table 3, in its order, but for the full model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One row or point."""

    name: str
    group: Group
    kinds: tuple[tuple[str, dict[str, Any]], ...]
    """Model and settings; of several the best on validation counts."""
    published: str | None = None
    """What the paper calls it."""
    x: float | None = None
    """Where it is in a figure."""

    @property
    def learns(self) -> bool:
        """Whether seeds make a difference."""
        return self.group != "heuristic"


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """Entries of one log."""

    name: str
    """overall, ablation, depth or heads."""
    data: LogSpec
    split: Split
    events: str
    """Digest of the split."""
    entries: tuple[Entry, ...]
    title: str = ""
    """What is special about the log in this study."""

    def jobs(self, num_seeds: int) -> list[Job]:
        """One seed of everything first, so that a budget is enough for a whole table early."""
        return [
            job
            for seed in range(num_seeds)
            for entry in self.entries
            if entry.learns or seed == 0
            for job in self._alternatives(entry, seed)
        ]

    def _alternatives(self, entry: Entry, seed: int) -> list[Job]:
        return [
            Job(data=self.data, events=self.events, model=model, settings=settings, seed=seed)
            for model, settings in entry.kinds
        ]

    def results(self, folder: Path) -> dict[str, "Results"]:
        """What came of each entry so far, also of seeds that were done earlier."""
        found = {}
        for entry in self.entries:
            results = Results(entry=entry)
            for seed in range(_MOST_SEEDS if entry.learns else 1):
                jobs = self._alternatives(entry, seed)
                outcomes = [read_outcome(job, folder) for job in jobs]
                known = [
                    (job, outcome)
                    for job, outcome in zip(jobs, outcomes, strict=True)
                    if outcome is not None
                ]
                if len(known) == len(jobs):
                    job, outcome = max(known, key=lambda one: one[1]["valid"]["MRR"])
                    results.add(job, outcome, read_ranks(job, folder))
            found[entry.name] = results
        return found


@dataclass(slots=True, kw_only=True)
class Results:
    """What came of an entry, seed by seed."""

    entry: Entry
    jobs: list[Job] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    ranks: list[FloatArray] = field(default_factory=list)

    def add(self, job: Job, outcome: Outcome, ranks: FloatArray) -> None:
        self.jobs.append(job)
        self.outcomes.append(outcome)
        self.ranks.append(ranks)

    def figures(self, metric: str) -> list[float]:
        """On test, by seed."""
        return [outcome["test"]["metrics"][metric] for outcome in self.outcomes]


def as_published(data: LogSpec) -> LogSpec:
    """A data set as the authors have it: CollegeMsg with two id spaces and known nodes only."""
    if data.log == "collegemsg" and data.kind is None:
        return replace(data, kind="bipartite", seen_only=True)
    return data


def overall(data: LogSpec, split: Split, models: Sequence[str]) -> Study:
    """Table 2."""
    return _study("overall", data, split, _entries(models, split.events.kind))


def overall_one_mode(data: LogSpec, models: Sequence[str]) -> Study | None:
    """The same test events where senders and receivers are the same people, as they are.

    Only of what has something to gain from that and beats the heuristics without: these and the
    default preset.
    """
    if data.log != "collegemsg" or data.kind != "bipartite":
        return None
    known = replace(data, kind="one-mode")
    split = known.open()
    chosen = [one for one in ("heuristics", "default") if one in models]
    if not chosen:
        return None
    # The paper's figures are of two id spaces.
    entries = tuple(replace(one, published=None) for one in _entries(chosen, "one-mode"))
    study = _study("overall", known, split, entries)
    return replace(study, name="overall-one-mode", title="one identity for senders and receivers")


def _entries(models: Iterable[str], kind: GraphKind) -> tuple[Entry, ...]:
    found = []
    for name in models:
        if name == "heuristics":
            found += [_heuristic(heuristic.name) for heuristic in heuristics_for(kind)]
        elif name == "graphsage":
            kinds: tuple[tuple[str, dict[str, Any]], ...] = tuple(
                (f"graphsage-{one}", {}) for one in AGGREGATORS
            )
            found.append(
                Entry(name="graphsage", group="baseline", kinds=kinds, published="graphsage")
            )
        elif name in PRESETS:
            found.append(_tcl(f"TCL, {name}", name, {}, published="tcl"))
        else:
            found.append(_by_name(name))
    order: dict[Group, int] = {"heuristic": 0, "baseline": 1, "TCL": 2}
    return tuple(sorted(found, key=lambda entry: order[entry.group]))


def _by_name(name: str) -> Entry:
    known = (*registry.names(), *PRESETS, "heuristics")
    if name not in known or name == "tcl":
        raise InputError(f"unknown model {name!r}; {did_you_mean(name, known)}")
    if name in {heuristic.name for heuristic in heuristics_for("one-mode")}:
        return _heuristic(name)
    published = name.split("-")[0] if name.startswith("graphsage") else name
    return Entry(name=name, group="baseline", kinds=((name, {}),), published=published)


def _heuristic(name: str) -> Entry:
    return Entry(name=name, group="heuristic", kinds=((name, {}),))


def _tcl(
    name: str,
    preset: str,
    settings: dict[str, Any],
    *,
    published: str | None = None,
    x: float | None = None,
) -> Entry:
    kinds = (("tcl", {"preset": preset, **settings}),)
    return Entry(name=name, group="TCL", kinds=kinds, published=published, x=x)


def ablation(data: LogSpec, split: Split, preset: str) -> Study:
    """Table 3 of one preset."""
    entries = []
    for name, settings in VARIANTS.items():
        if preset == "default" and "objective" in settings:
            settings = {**settings, **_SAMPLED}
        entries.append(_tcl(name, preset, settings, published=name))
    if preset == "default":
        # What the point process has to be compared with: the same encoder, without the terms.
        without = {name: value for name, value in _SAMPLED.items() if name != "contrast"}
        entries.append(_tcl(HISTORY_TERMS, preset, without))
    entries.append(_tcl("full", preset, {}, published="full"))
    return _study(f"ablation-{preset}", data, split, tuple(entries))


def depth(data: LogSpec, split: Split) -> Study:
    """The figure over k, of the paper preset."""
    return _study("depth", data, split, _points("levels", DEPTHS, _OWN_DEPTH, "k"))


def heads(data: LogSpec, split: Split) -> Study:
    """The figure over the number of heads, of the paper preset."""
    return _study("heads", data, split, _points("heads", HEADS, _OWN_HEADS, "heads"))


def _points(setting: str, values: Sequence[int], own: int, word: str) -> tuple[Entry, ...]:
    return tuple(
        # What the preset has anyway is not said, so that it is the same job as in the tables.
        _tcl(f"{word} = {value}", "paper", {setting: value} if value != own else {}, x=value)
        for value in values
    )


def _study(name: str, data: LogSpec, split: Split, entries: tuple[Entry, ...]) -> Study:
    return Study(name=name, data=data, split=split, events=digest_of(split), entries=entries)
