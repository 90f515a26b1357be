"""Run one job: fit the model, evaluate it, and write the files of the job."""

import shutil
from dataclasses import asdict
from pathlib import Path

from tclgraph import __version__, registry
from tclgraph.environment import environment, peak_megabytes
from tclgraph.errors import InputError
from tclgraph.evaluation.protocol import evaluate
from tclgraph.evaluation.report import Report
from tclgraph.evaluation.rules import Part
from tclgraph.evaluation.simultaneous import rules_for_tables
from tclgraph.evaluation.update import Update
from tclgraph.events.noise import with_noise
from tclgraph.events.split import Split
from tclgraph.jobs.job import Job, digest_of, is_learned, write_ranks
from tclgraph.jobs.outcome import (
    EpochRecord,
    Learning,
    Machine,
    Outcome,
    PartReport,
    PartSizes,
    write_outcome_file,
)
from tclgraph.models.interface import Model
from tclgraph.models.learned import LearnedModel
from tclgraph.training.loop import best_epoch
from tclgraph.training.progress import ProgressCallback
from tclgraph.training.run_folder import RunFolder


def run_job(job: Job, folder: Path, *, threads: int, progress: ProgressCallback) -> None:
    """Run a job, from its last checkpoint if it has one, and write its files."""
    split = job.spec.open()
    if digest_of(split) != job.events:
        raise InputError(
            f"{job.spec.log} has changed since the job was planned; run the command again"
        )
    if job.noise:
        split = with_noise(split, job.noise, seed=job.seed)
    run = job.run_path(folder)
    model, learning = _fit(job, split, run, threads, progress)
    if learning is None:
        valid = evaluate(model, split, part="valid", with_heuristics=False).groups["all"].metrics
        assert valid is not None, "a part of a split has at least one event"
    else:
        valid = learning.curve[learning.best_epoch - 1].valid
    report = _evaluate(model, split, job.part)
    outcome = Outcome(
        model=job.model,
        settings=dict(job.settings),
        seed=job.seed,
        log=job.spec.name,
        file=job.spec.file,
        kind=split.events.kind,
        split=str(split),
        parts=PartSizes(**split.sizes),
        update="streaming" if type(model).streams else "frozen",
        version=__version__,
        machine=Machine.from_json({**environment(), "threads": threads}),
        valid=valid,
        learning=learning,
        report=PartReport.from_report(report),
        together=PartReport.from_report(report.together) if report.together else None,
        ranked_per_second=round(len(report.ranks) / report.ranking_seconds, 1),
        peak_megabytes=peak_megabytes(),
        noise=job.noise,
    )
    write_ranks(job, folder, report.ranks)
    # The outcome is written last: its file says that the job is done.
    write_outcome_file(outcome, job.outcome_path(folder))
    shutil.rmtree(run, ignore_errors=True)


def _evaluate(model: Model, split: Split, part: Part) -> Report:
    """Rank a part; test events, which tables show, by both rules if many are simultaneous."""
    rules = rules_for_tables(split.events, Update("streaming")) if part == "test" else "in-order"
    return evaluate(model, split, part=part, simultaneous=rules, with_heuristics=False)


def _fit(
    job: Job, split: Split, run: Path, threads: int, progress: ProgressCallback
) -> tuple[Model, Learning | None]:
    """Return the fitted model and, if it is a learned one, how it was trained."""
    if not is_learned(job.model):
        model = registry.build(job.model, **job.settings)
        model.fit(split)
        return model, None
    learned = registry.build(job.model, **job.settings, seed=job.seed, threads=threads)
    assert isinstance(learned, LearnedModel)
    learned.fit(split, run=run, resume=True, progress=progress)
    return learned, _learning(learned, RunFolder(run), split)


def _learning(model: LearnedModel, run: RunFolder, split: Split) -> Learning:
    """Summarize the metrics that training has left in its folder."""
    entries = run.read_metrics()
    best = best_epoch(entries, model.config.selection_metric)
    curve = tuple(EpochRecord(**entry) for entry in entries)
    training = [split.train_end / record.events_per_second for record in curve]
    return Learning(
        config=asdict(model.config),
        best_epoch=best,
        seconds=round(sum(record.seconds or 0.0 for record in curve), 1),
        seconds_to_best=round(sum(training[:best]), 1),
        trained_per_second=round(len(curve) * split.train_end / sum(training), 1),
        curve=curve,
    )
