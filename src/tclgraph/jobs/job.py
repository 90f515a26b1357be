"""One model with its settings and seed, trained and tested on one log. What comes of it is a file.

| file in the folder        | what                                                          |
|---------------------------|---------------------------------------------------------------|
| jobs/LOG/NAME-SEED-….json | settings, figures, learning curve, cost, machine              |
| jobs/LOG/NAME-SEED-….npz  | the rank of every test event's target, times two              |
| runs/LOG/NAME-SEED-…      | the run that is under way; gone once the file is there        |

A name ends in a digest of all that the outcome depends on, so that what is there already need not
be made again, and what was made of other settings or other data is never taken for it.
"""

import hashlib
import json
import shutil
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tclgraph import __version__, registry
from tclgraph.arrays import FloatArray
from tclgraph.environment import environment, peak_megabytes
from tclgraph.errors import InputError
from tclgraph.evaluation.protocol import evaluate
from tclgraph.events.log_spec import LogSpec
from tclgraph.events.split import Split
from tclgraph.events.writers import replacing
from tclgraph.models.learned import LearnedModel
from tclgraph.training.loop import best_epoch
from tclgraph.training.progress import ProgressCallback
from tclgraph.training.run_folder import RunFolder, fingerprint


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is to be done."""

    data: LogSpec
    events: str
    """Digest of the events and of how they are split."""
    model: str
    settings: dict[str, Any] = field(default_factory=dict)
    """That differ from the model's own, but for the seed."""
    seed: int = 0

    @property
    def key(self) -> str:
        """Of its files, without an ending."""
        config = _config_of(self.model, json.dumps(self.settings))
        told = [self.events, self.model, config, self.seed]
        digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
        return f"{self.data.name}/{self.name}-{self.seed}-{digest[:8]}"

    @property
    def name(self) -> str:
        """The model, and the first two things that are special about it."""
        told = [
            str(value) if name == "preset" else f"{name}={value}"
            for name, value in self.settings.items()
        ]
        return "-".join([self.model, *told[:2]])


@cache
def _config_of(model: str, settings: str) -> dict[str, Any]:
    """All settings that make a difference, also those that are the model's own."""
    built = registry.build(model, **json.loads(settings))
    config = asdict(built.config) if isinstance(built, LearnedModel) else {}
    for name in ("seed", "threads", "device"):
        config.pop(name, None)
    return config


def digest_of(split: Split) -> str:
    """Tells a split from any other."""
    return hashlib.sha256(json.dumps(fingerprint(split), sort_keys=True).encode()).hexdigest()


def read_outcome(job: Job, folder: Path) -> dict[str, Any] | None:
    """What came of it, or None if it is still to be done."""
    path = folder / "jobs" / f"{job.key}.json"
    try:
        found: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {path} ({error}); delete it to make it again") from None
    return found


def read_ranks(job: Job, folder: Path) -> FloatArray:
    """Of the test events of a job that is done."""
    with np.load(folder / "jobs" / f"{job.key}.npz") as file:
        ranks: FloatArray = file["test"] / 2
    return ranks


def run_job(job: Job, folder: Path, *, threads: int, progress: ProgressCallback) -> None:
    """Do it, from whichever point an earlier attempt reached, and leave its files."""
    split = job.data.open()
    if digest_of(split) != job.events:
        raise InputError(f"{job.data.log} has changed since this was begun; begin again")
    model = registry.build(job.model, **job.settings)
    run = folder / "runs" / job.key
    learned: dict[str, Any] = {}
    if isinstance(model, LearnedModel):
        model = registry.build(job.model, **job.settings, seed=job.seed, threads=threads)
        assert isinstance(model, LearnedModel)
        model.fit(split, run=run, resume=True, progress=progress)
        learned = _learning(model, RunFolder(run), split)
    else:
        model.fit(split)
        valid = evaluate(model, split, part="valid").groups["all"].metrics
        learned = {"valid": valid, "seconds": 0.0}
    report = evaluate(model, split, part="test", with_heuristics=False)
    outcome = {
        "model": job.model,
        "settings": job.settings,
        "seed": job.seed,
        "log": job.data.name,
        "file": job.data.file,
        "kind": split.events.kind,
        "split": str(split),
        "parts": split.sizes,
        "update": "streaming" if type(model).streams else "frozen",
        "version": __version__,
        "machine": {**environment(), "threads": threads},
        **learned,
        "test": report.to_json(),
        "ranked_per_second": round(len(report.ranks) / report.ranking_seconds, 1),
        "peak_megabytes": peak_megabytes(),
    }
    _write(job, folder, report.ranks, outcome)
    shutil.rmtree(run, ignore_errors=True)


def _learning(model: LearnedModel, run: RunFolder, split: Split) -> dict[str, Any]:
    curve = run.read_metrics()
    best = best_epoch(curve, model.config.choose_by)
    seconds = [split.train_end / entry["events_per_second"] for entry in curve]
    return {
        "config": asdict(model.config),
        "valid": curve[best - 1]["valid"],
        "best_epoch": best,
        "seconds": round(sum(entry["seconds"] for entry in curve), 1),
        "seconds_to_best": round(sum(seconds[:best]), 1),
        "trained_per_second": round(len(curve) * split.train_end / sum(seconds), 1),
        "curve": curve,
    }


def _write(job: Job, folder: Path, ranks: FloatArray, outcome: dict[str, Any]) -> None:
    path = folder / "jobs" / f"{job.key}.json"
    with (
        replacing(path.with_suffix(".npz")) as temporary,
        temporary.open("wb") as file,
    ):
        np.savez_compressed(file, test=np.rint(2 * ranks).astype(np.uint32))
    # Last, as it says that the job is done.
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(outcome, indent=1) + "\n")
