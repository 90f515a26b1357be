"""`tclgraph train`: fit a model to a log, and leave a run folder."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from tclgraph.cli import options
from tclgraph.cli.interruption import EXIT_CODE, keyboard_interrupts

if TYPE_CHECKING:
    from tclgraph.events.log_spec import LogSpec
    from tclgraph.events.split import Split
    from tclgraph.models.interface import Model
    from tclgraph.training.run_folder import RunFolder


@options.with_log_options
def train(
    log: Annotated[
        Optional[str],
        typer.Argument(help=f"{options.LOG_HELP} Not needed with --resume."),
    ] = None,
    model: Annotated[
        Optional[str], typer.Option(help="Name of the model: ranker (default), tcl, or another.")
    ] = None,
    settings: options.Settings = None,
    run: Annotated[
        Optional[Path], typer.Option(help="Folder of the run. Default: runs/MODEL-LOG.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the run in the folder.")
    ] = False,
    as_json: options.Json = False,
    *,
    spec_for: options.SpecFor,
) -> None:
    """Train a model on a log and keep the epoch that does best on the validation part."""
    from tclgraph.cli.runs import refuse_updated, write_log_spec
    from tclgraph.cli.terminal import print_json, read_log
    from tclgraph.errors import InputError
    from tclgraph.training.run_folder import RunFolder

    if run is None:
        if log is None:
            raise InputError("give a log to train on, or a --run to --resume")
        run = Path("runs") / f"{model or options.DEFAULT_MODEL}-{spec_for(log).name}"
    folder = RunFolder(run)
    stored = folder.read_config() if resume else None
    if stored is None:
        trained, spec = _new_run(run, log, model, settings, spec_for)
    else:
        options.refuse_log_options(spec_for, run)
        refuse_updated(run)
        trained, spec = _stored_run(run, log, model, settings, stored)
    if not resume:
        folder.refuse_existing()
    events = read_log(spec)
    split = spec.divide(events)
    if stored is None:
        write_log_spec(run, replace(spec, num_events=len(events)))
    best = _fit(trained, split, folder, resume=resume)
    # The model is for use from here on, so it observes the complete log.
    trained.observe(split.valid)
    trained.observe(split.test)
    trained.save(run)
    if as_json:
        print_json({"run": str(run), **best})
        return
    metrics = "  ".join(f"{name} {value:.4g}" for name, value in best["valid"].items())
    epoch = f"best after epoch {best['epoch']}, " if "epoch" in best else ""
    print(f"{run}: {epoch}valid {metrics}")
    print(f"next: tclgraph evaluate {run}")


def _new_run(
    run: Path,
    log: str | None,
    model: str | None,
    settings: list[str] | None,
    spec_for: options.SpecFor,
) -> "tuple[Model, LogSpec]":
    from tclgraph import registry
    from tclgraph.errors import InputError

    if log is None:
        raise InputError(f"{run} holds no run to resume; give a log to begin one")
    built = registry.build(model or options.DEFAULT_MODEL, **options.read_settings(settings))
    return built, spec_for(log)


def _stored_run(
    run: Path,
    log: str | None,
    model: str | None,
    settings: list[str] | None,
    config: dict[str, Any],
) -> "tuple[Model, LogSpec]":
    """Return the model and the log of a run; what is given again must be the same."""
    from tclgraph.cli.runs import read_log_spec, resumed_model
    from tclgraph.errors import InputError

    spec = read_log_spec(run)
    if log is not None and spec.log not in (log, replace(spec, log=log).resolved().log):
        raise InputError(f"{run} was begun with the log {spec.log}, not {log}; leave out the log")
    if model not in (None, config["model"]):
        raise InputError(
            f"{run} was begun with the model {config['model']}, not {model}; leave out --model"
        )
    return resumed_model(config, options.read_settings(settings)), spec


def _fit(model: "Model", split: "Split", folder: "RunFolder", *, resume: bool) -> dict[str, Any]:
    """Fit the model and return the record of its best epoch, or its validation metrics."""
    from tclgraph.evaluation.protocol import validate
    from tclgraph.models.learned import LearnedModel
    from tclgraph.training.loop import best_epoch
    from tclgraph.training.progress import progress_bar
    from tclgraph.training.run_folder import fingerprint

    if not isinstance(model, LearnedModel):
        config = {"model": model.name, "settings": model.settings(), "data": fingerprint(split)}
        folder.open(config, resume=resume)
        report = validate(model.fit(split), split)
        model.forget()
        model.observe(split.train)
        return {"valid": report.groups["all"].metrics}
    run = folder.path
    try:
        with keyboard_interrupts(), progress_bar(always=True) as progress:
            model.fit(split, run=run, resume=resume, progress=progress)
    except KeyboardInterrupt:
        print(f"stopped; continue with: tclgraph train --run {run} --resume", file=sys.stderr)
        raise typer.Exit(EXIT_CODE) from None
    history = folder.read_metrics()
    return dict(history[best_epoch(history, model.config.selection_metric) - 1])
