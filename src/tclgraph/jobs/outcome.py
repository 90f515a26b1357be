"""The outcome of a job: typed records, stored as one JSON file.

Everything that reads or writes a job file goes through `Outcome`. A file that does not have these
fields is refused with its path and what to do about it.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import ConfigDict, TypeAdapter
from pydantic import ValidationError as PydanticError

from tclgraph.errors import InputError
from tclgraph.evaluation.groups import Group
from tclgraph.evaluation.metrics import Intervals, Metrics
from tclgraph.evaluation.report import Report
from tclgraph.evaluation.rules import Part
from tclgraph.evaluation.top_targets import TopReport
from tclgraph.events.stream import GraphKind
from tclgraph.events.writers import replacing


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The machine and the versions that a job ran with."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    system: str
    processor: str
    cores: int
    python: str
    torch: str
    numba: str
    numpy: str
    threads: int | None = None
    """Number of threads of the job; None for a machine that ran no job."""

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        """Check the output of `environment`, with or without the number of threads."""
        return TypeAdapter(cls).validate_python(document)


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochRecord:
    """The result of one epoch of training."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    epoch: int
    """Number of the epoch, from 1."""
    loss: float
    """Mean training loss."""
    events_per_second: float
    """Training events per second, without validation."""
    valid: Metrics
    """Metrics on the validation part after the epoch."""
    seconds: float | None = None
    """Duration of the epoch with its validation; None if it was not recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learning:
    """How a learned model was trained."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    config: dict[str, Any]
    """All settings of the model, nested as in its configuration."""
    best_epoch: int
    """Number of the epoch whose weights were evaluated."""
    seconds: float
    """Duration of all epochs with their validation."""
    seconds_to_best: float
    """Duration of training up to the best epoch, without validation."""
    trained_per_second: float
    """Training events per second over all epochs, without validation."""
    curve: tuple[EpochRecord, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartReport:
    """The evaluation of a fitted model on one part of the log (see `evaluation.report.Report`)."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    model: str
    kind: GraphKind
    split: str
    part: Part
    update: str
    """Update rule of the evaluation."""
    masks_seen: bool
    events: int
    """Number of ranked events."""
    targets: int
    """Number of candidates in every ranking."""
    metrics: Metrics
    """Metrics over all events."""
    repeat: Metrics | None
    """Metrics over events whose source has interacted with the target before."""
    new: Metrics | None
    """Metrics over events whose source has not interacted with the target before."""
    events_by_group: dict[Group, int]
    intervals: dict[Group, Intervals | None]
    """95 % bootstrap intervals over events."""
    tie_spread: float
    nan_events: int
    seed: int
    """Seed of the bootstrap."""
    seconds: float
    """Duration of the evaluation with the replay of earlier events."""
    ranking_seconds: float
    """Duration of the ranking alone."""
    unseen: Metrics | None = None
    """Metrics over events with an unseen node; None if there are none, or in an older file."""
    top: TopReport | None = None
    """Coverage and novelty of the recommendations; None in an older file."""

    def to_json(self) -> dict[str, Any]:
        """Return the content for the file of a job, without fields that older files lack."""
        document = asdict(self)
        return {
            name: value
            for name, value in document.items()
            if value is not None or name not in ("unseen", "top")
        }

    @classmethod
    def from_report(cls, report: Report) -> Self:
        """Return the figures of a report by one rule for simultaneous events."""
        document = report.to_json()
        del document["simultaneous"]
        document.pop("together", None)
        return TypeAdapter(cls).validate_python(document)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartSizes:
    """Number of events in each part of a split."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    train: int
    valid: int
    test: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The content of a job's JSON file."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    model: str
    """Name of the model in the registry."""
    settings: dict[str, Any]
    """Settings that were given, without the seed."""
    seed: int
    log: str
    """Name of the log."""
    file: str
    """Name of the file that was read."""
    kind: GraphKind
    split: str
    parts: PartSizes
    update: Literal["streaming", "frozen"]
    """Whether the model's state follows the events after training."""
    version: str
    """Version of tclgraph."""
    machine: Machine
    valid: Metrics
    """Metrics on the validation part; for a learned model, after its best epoch."""
    learning: Learning | None
    """None for a model without training, such as a heuristic."""
    report: PartReport
    """The evaluation; its `part` is the part that the job ranks."""
    ranked_per_second: float
    peak_megabytes: int | None
    """Peak memory of the process; None if it was not recorded."""
    together: PartReport | None = None
    """The evaluation with events of the same time revealed together; None if the log has few of
    them, or if the job ranks validation events."""
    remark: str | None = None
    """What is special about this run."""
    noise: float = 0.0
    """Number of random interactions among the training events, as a share of these."""

    @property
    def seconds(self) -> float:
        """Duration of training and evaluation."""
        training = self.learning.seconds if self.learning else 0.0
        together = self.together.seconds if self.together else 0.0
        return training + self.report.seconds + together

    def to_json(self) -> dict[str, Any]:
        """Return the content of the job's file."""
        document = asdict(self)
        document["report"] = self.report.to_json()
        if self.together:
            document["together"] = self.together.to_json()
        if not self.noise:
            del document["noise"]
        return {
            name: value
            for name, value in document.items()
            if value is not None or name not in ("together", "remark")
        }

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Check the content of a job's file; raise `ValueError` for any other content."""
        try:
            return TypeAdapter(cls).validate_python(document)
        except PydanticError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"])) or "the document"
            raise ValueError(f"{place}: {first['msg']}") from None


def read_outcome_file(path: Path) -> Outcome | None:
    """Read a job's file; return None if there is none."""
    try:
        return Outcome.from_json(json.loads(path.read_text()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path} is not a readable job file ({error}); delete it, and the job runs again"
        ) from None


def write_outcome_file(outcome: Outcome, path: Path) -> None:
    """Write a job's file, complete or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(outcome.to_json(), indent=1) + "\n")
