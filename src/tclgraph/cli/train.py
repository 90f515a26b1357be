"""`tclgraph train`: train a model on a log, and leave a run folder."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from tclgraph.cli import options

if TYPE_CHECKING:
    from tclgraph.events.log_spec import LogSpec
    from tclgraph.events.split import Split
    from tclgraph.models.learned import LearnedModel


@options.with_log_options
def train(
    log: Annotated[
        Optional[str],
        typer.Argument(help="A catalog name or a file. With --resume the run knows its log."),
    ] = None,
    model: Annotated[
        Optional[str],
        typer.Option(help="Name of the model: ranker (default), tcl, or another learned model."),
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
    from tclgraph.cli.runs import remember_log
    from tclgraph.cli.terminal import open_log, print_json
    from tclgraph.errors import InputError
    from tclgraph.training.loop import best_epoch
    from tclgraph.training.run_folder import RunFolder

    if run is None:
        if log is None:
            raise InputError("give a log to train on, or a --run to --resume")
        run = Path("runs") / f"{model or options.DEFAULT_MODEL}-{Path(log).name.split('.')[0]}"
    folder = RunFolder(run)
    stored = folder.read_config() if resume else None
    if stored is None:
        unfitted, spec = _new_run(run, log, model, settings, spec_for)
    else:
        unfitted, spec = _stored_run(run, log, model, settings)
    if not resume:
        folder.refuse_existing()
    split = open_log(spec)
    if stored is None:
        remember_log(run, spec)
    fitted = _fit(unfitted, split, run, resume=resume)
    # The model is for use from here on, so it observes the complete log.
    fitted.observe(split.valid)
    fitted.observe(split.test)
    fitted.save(run)
    history = folder.read_metrics()
    best = history[best_epoch(history, fitted.config.selection_metric) - 1]
    if as_json:
        print_json({"run": str(run), **best})
        return
    metrics = "  ".join(f"{name} {value:.4g}" for name, value in best["valid"].items())
    print(f"{run}: best after epoch {best['epoch']}, valid {metrics}")
    print(f"next: tclgraph evaluate {run}")


def _new_run(
    run: Path,
    log: str | None,
    model: str | None,
    settings: list[str] | None,
    spec_for: options.SpecFor,
) -> "tuple[LearnedModel, LogSpec]":
    from tclgraph.cli.runs import trainable_class
    from tclgraph.errors import InputError

    if log is None:
        raise InputError(f"{run} holds no run to resume; give a log to begin one")
    model_class = trainable_class(model or options.DEFAULT_MODEL)
    return model_class(**options.read_settings(settings)), spec_for(log)


def _stored_run(
    run: Path, log: str | None, model: str | None, settings: list[str] | None
) -> "tuple[LearnedModel, LogSpec]":
    """Return the model and the log of a run; what is given again must be the same."""
    from tclgraph.cli.runs import recall_log, resumed_model
    from tclgraph.errors import InputError
    from tclgraph.training.run_folder import RunFolder

    spec = recall_log(run)
    if log is not None and spec.log not in (log, str(Path(log).resolve())):
        raise InputError(f"{run} was begun with the log {spec.log}, not {log}; leave it out")
    config = RunFolder(run).read_config()
    assert config is not None
    if model not in (None, config["model"]):
        raise InputError(
            f"{run} was begun with the model {config['model']}, not {model}; leave out --model"
        )
    return resumed_model(config, options.read_settings(settings)), spec


def _fit(model: "LearnedModel", split: "Split", run: Path, *, resume: bool) -> "LearnedModel":
    from tclgraph.training.progress import progress_bar

    try:
        with progress_bar(always=True) as progress:
            return model.fit(split, run=run, resume=resume, progress=progress)
    except KeyboardInterrupt:
        print(f"stopped; continue with: tclgraph train --run {run} --resume", file=sys.stderr)
        raise typer.Exit(130) from None
