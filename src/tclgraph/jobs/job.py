"""A job: one model with its settings and seed, trained and evaluated on one log.

| file in the folder          | content                                                     |
|-----------------------------|-------------------------------------------------------------|
| jobs/LOG/NAME-SEED-….json   | the outcome: settings, metrics, learning curve, cost        |
| jobs/LOG/NAME-SEED-….npz    | the rank of every event of the evaluated part, times two    |
| runs/LOG/NAME-SEED-…        | checkpoints of an unfinished job; removed when it finishes  |

A file name ends in a digest of everything that the outcome depends on. So a finished job is found
again, and an outcome of other settings or other data is never mistaken for it.
"""

import hashlib
import json
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tclgraph import registry
from tclgraph.arrays import FloatArray
from tclgraph.errors import InputError
from tclgraph.evaluation.rules import Part
from tclgraph.events.log_spec import LogSpec
from tclgraph.events.split import Split
from tclgraph.events.writers import replacing
from tclgraph.jobs.outcome import Outcome, read_outcome_file
from tclgraph.models.learned import LearnedModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One run of a model on a log."""

    spec: LogSpec
    """How to read and split the log."""
    events: str
    """Digest of the events and of their split (see `digest_of`)."""
    model: str
    """Name of the model in the registry."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings that differ from the model's defaults, without the seed."""
    seed: int = 0
    part: Part = "test"
    """Part of the log that the fitted model ranks."""
    noise: float = 0.0
    """Number of random interactions among the training events, as a share of these. They depend on
    the seed."""

    @property
    def key(self) -> str:
        """Return the path of the job's files below `jobs` and `runs`, without a suffix."""
        config = _config_of(self.model, json.dumps(dict(self.settings)))
        identity = [self.events, self.model, config, self.seed, self.part]
        if self.noise:
            identity.append(self.noise)
        digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
        return f"{self.spec.name}/{self.name}-{self.seed}-{digest[:8]}"

    @property
    def name(self) -> str:
        """Return the model's name, the first two of the settings, and the noise."""
        settings = [f"{name}={value}" for name, value in self.settings.items()]
        noise = [f"noise={self.noise:g}"] if self.noise else []
        return "-".join([self.model, *settings[:2], *noise])

    def outcome_path(self, folder: Path) -> Path:
        """Return the path of the outcome, whose presence means that the job is done."""
        return folder / "jobs" / f"{self.key}.json"

    def ranks_path(self, folder: Path) -> Path:
        """Return the path of the ranks."""
        return folder / "jobs" / f"{self.key}.npz"

    def run_path(self, folder: Path) -> Path:
        """Return the folder of the checkpoints while the job is unfinished."""
        return folder / "runs" / self.key


def is_learned(model: str) -> bool:
    """Return whether a model of the registry is trained, so that its seed matters."""
    return issubclass(registry.model_class(model), LearnedModel)


@cache
def _config_of(model: str, given_settings: str) -> dict[str, Any]:
    """Return all settings that the outcome depends on, the model's defaults included."""
    given = json.loads(given_settings)
    built = registry.build(model, **given)
    if not isinstance(built, LearnedModel):
        return dict(given)
    config = asdict(built.config)
    for settings in (config, *(expert["settings"] for expert in config.get("experts", ()))):
        for name in ("seed", "threads", "device"):
            settings.pop(name, None)
    # Stored outcomes are from before there were these settings.
    for part in (config, config.get("encoder") or {}):
        if part.get("hidden_share") == 0:
            part.pop("hidden_share")
    if not config.get("experts", True):
        config.pop("experts")
    return config


def digest_of(split: Split) -> str:
    """Return a digest that differs for any other events, kind of graph or split."""
    events = split.events
    shape = [events.kind, split.sizes, events.num_sources, events.num_targets]
    digest = hashlib.sha256(json.dumps(shape, sort_keys=True).encode())
    for column in (events.source, events.target, events.time):
        digest.update(column.tobytes())
    return digest.hexdigest()


def read_outcome(job: Job, folder: Path) -> Outcome | None:
    """Return the outcome of a job, or None if it is not done."""
    return read_outcome_file(job.outcome_path(folder))


def read_ranks(job: Job, folder: Path) -> FloatArray:
    """Return the rank of every evaluated event of a job that is done."""
    path = job.ranks_path(folder)
    try:
        with np.load(path) as file:
            ranks: FloatArray = file[job.part] / 2
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise InputError(
            f"cannot read the ranks in {path} ({error}); delete {job.outcome_path(folder).name} "
            "beside it, and the job runs again"
        ) from None
    return ranks


def write_ranks(job: Job, folder: Path, ranks: FloatArray) -> None:
    """Write the ranks of a job, times two: ties have half ranks, and integers take less space."""
    with replacing(job.ranks_path(folder)) as temporary, temporary.open("wb") as file:
        arrays = {job.part: np.rint(2 * ranks).astype(np.uint32)}
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
