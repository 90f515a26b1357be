"""What all studies share: entries, their jobs, and the results of the jobs.

A study is one table or figure of one log. It has an entry for every row or point. An entry is one
job, or several alternatives of which the best on validation counts, for each seed.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from pathlib import Path
from typing import Any, Self

from tclgraph.arrays import FloatArray
from tclgraph.evaluation.rules import Part
from tclgraph.events.catalog import CATALOG
from tclgraph.events.log_spec import LogSpec
from tclgraph.events.split import Split
from tclgraph.jobs.job import Job, digest_of, is_learned, read_outcome, read_ranks
from tclgraph.jobs.outcome import Outcome
from tclgraph.studies.published import PublishedFigure
from tclgraph.studies.tuned import TunedSettings

MAX_SEEDS = 64
"""Largest number of seeds of an entry; tables include all stored seeds up to this number."""


class Role(Enum):
    """What an entry is in its study, in the order of a table's rows."""

    HEURISTIC = auto()
    BASELINE = auto()
    EXTERNAL = auto()
    """A model that another package has registered."""
    OURS = auto()
    """TCL, the ranker, and variants of them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Entry:
    """One row of a table, or one point of a figure."""

    name: str
    """Text of the first column."""
    role: Role
    jobs: tuple[Job, ...]
    """Alternatives, each with seed 0; the best on validation counts."""
    max_seeds: int = MAX_SEEDS
    published: Mapping[str, PublishedFigure] = field(default_factory=dict)
    """The paper's figures by metric."""
    tuned: TunedSettings | None = None
    """Where the settings of the jobs come from if they were tuned; None if they are defaults or
    were given on the command line."""

    @property
    def is_learned(self) -> bool:
        """Return whether the entry is trained, so that its seed matters."""
        return is_learned(self.jobs[0].model)

    def num_seeds(self, num_asked: int) -> int:
        """Return how many seeds of the entry there are if `num_asked` are asked for."""
        return min(num_asked, self.max_seeds) if self.is_learned else 1

    def jobs_of_seed(self, seed: int) -> list[Job]:
        """Return the alternatives with this seed."""
        return [replace(job, seed=seed) for job in self.jobs]

    def results(self, folder: Path) -> "Results":
        """Read the outcomes of all seeds whose alternatives are all done."""
        results = Results(entry=self)
        for seed in range(self.num_seeds(MAX_SEEDS)):
            jobs = self.jobs_of_seed(seed)
            done = [
                (job, outcome) for job in jobs if (outcome := read_outcome(job, folder)) is not None
            ]
            if len(done) == len(jobs):
                job, outcome = max(done, key=lambda pair: pair[1].valid["MRR"])
                results.add(outcome, read_ranks(job, folder))
        return results


@dataclass(slots=True, kw_only=True)
class Results:
    """Outcomes and ranks of an entry, by seed."""

    entry: Entry
    outcomes: list[Outcome] = field(default_factory=list)
    ranks: list[FloatArray] = field(default_factory=list)
    """Rank of every event of the evaluated part."""

    def add(self, outcome: Outcome, ranks: FloatArray) -> None:
        """Add the next seed."""
        self.outcomes.append(outcome)
        self.ranks.append(ranks)

    def figures(self, metric: str) -> list[float]:
        """Return a metric on the evaluated part, by seed."""
        return [outcome.report.metrics[metric] for outcome in self.outcomes]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenLog:
    """A log that has been read and split."""

    spec: LogSpec
    split: Split
    digest: str
    """Digest of the events and of their split."""

    @classmethod
    def open(cls, spec: LogSpec) -> Self:
        """Read and split a log."""
        split = spec.open()
        return cls(spec=spec, split=split, digest=digest_of(split))

    @property
    def reading(self) -> str:
        """Return how the log is read if that is not as the catalog says, else nothing."""
        entry = CATALOG.get(self.spec.log)
        if entry is None or entry.kind == self.split.events.kind:
            return ""
        return "two id spaces" if entry.kind == "one-mode" else "one identity"

    @property
    def title(self) -> str:
        """Return the name of the log, with its reading, as a title has it."""
        return _with_remarks(self.spec.name, self.reading)

    @property
    def file_name(self) -> str:
        """Return the name of the log, with its reading, as names of files have it."""
        return "-".join([*self.reading.split(), self.spec.name])

    def job(
        self, model: str, settings: Mapping[str, Any] | None = None, part: Part = "test"
    ) -> Job:
        """Return the job of a model on this log, with seed 0."""
        return Job(
            spec=self.spec, events=self.digest, model=model, settings=settings or {}, part=part
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Study(ABC):
    """A table or a figure of one log."""

    log: OpenLog

    @property
    @abstractmethod
    def name(self) -> str:
        """Return the name of the study, which its files begin with."""

    @property
    @abstractmethod
    def entries(self) -> Sequence[Entry]:
        """Return the entries in the order of the rows."""

    @property
    def remark(self) -> str:
        """Return what is special about the events in this study."""
        return ""

    @property
    def file_name(self) -> str:
        """Return the stem of the study's files."""
        return f"{self.name}-{self.log.file_name}"

    @property
    def log_title(self) -> str:
        """Return the log as a title names it."""
        return _with_remarks(self.log.spec.name, self.log.reading, self.remark)

    def jobs(self, num_seeds: int) -> list[Job]:
        """Return all jobs, those of the first seed first, so that a short run fills the table."""
        return [
            job
            for seed in range(num_seeds)
            for entry in self.entries
            if seed < entry.num_seeds(num_seeds)
            for job in entry.jobs_of_seed(seed)
        ]

    def results(self, folder: Path) -> dict[Entry, Results]:
        """Read the results so far, seeds of earlier runs included."""
        return {entry: entry.results(folder) for entry in self.entries}


def _with_remarks(name: str, *remarks: str) -> str:
    """Return a name with its remarks in brackets; an empty text is no remark.

    >>> _with_remarks("collegemsg", "two id spaces", ""), _with_remarks("wikipedia", "")
    ('collegemsg (two id spaces)', 'wikipedia')
    """
    text = ", ".join(filter(None, remarks))
    return f"{name} ({text})" if text else name
