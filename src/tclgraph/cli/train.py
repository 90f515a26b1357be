"""`tclgraph train`: learn from a log, and leave a run folder."""

import sys
from pathlib import Path
from typing import Annotated, Optional

import typer

from tclgraph.cli import options


@options.with_log_options
def train(
    log: Annotated[
        Optional[str],
        typer.Argument(help="A catalogue name or a file; with --resume, the run knows it."),
    ] = None,
    model: Annotated[
        Optional[str], typer.Option(help="tcl, or another model that learns, like jodie or tgn.")
    ] = None,
    preset: options.Preset = None,
    set_: Annotated[
        Optional[list[str]],
        typer.Option("--set", metavar="NAME=VALUE", help="A setting, like width=32; repeatable."),
    ] = None,
    run: Annotated[
        Optional[Path], typer.Option(help="Folder of the run; default: runs/MODEL-LOG.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run in the folder.")
    ] = False,
    as_json: options.Json = False,
    *,
    spec_for: options.SpecFor,
) -> None:
    """Train a model on a log and keep the epoch that does best on the validation part."""
    from tclgraph.cli.runs import learned_kind, recall_log, remember_log
    from tclgraph.cli.terminal import open_log, print_json
    from tclgraph.errors import InputError
    from tclgraph.training.loop import best_epoch
    from tclgraph.training.progress import progress_bar
    from tclgraph.training.run_folder import RunFolder

    settings = options.read_settings(set_)
    if run is None:
        if log is None:
            raise InputError("give a log to train on, or a --run to --resume")
        name = model or options.DEFAULT_MODEL
        run = Path("runs") / f"{name}-{Path(log).name.split('.')[0]}"
    folder = RunFolder(run)
    known = folder.read_config() if resume else None
    if known is not None:
        # What was said then need not be said again, and what is said now must be the same.
        spec = recall_log(run)
        if log is not None and spec.log not in (log, str(Path(log).resolve())):
            raise InputError(f"{run} was begun with the log {spec.log}, not {log}; leave it out")
        if model not in (None, known["model"]):
            raise InputError(f"{run} was begun with the model {known['model']}, not {model}")
        fitted = learned_kind(known["model"], preset)(**{**known["settings"], **settings})
    else:
        if log is None:
            raise InputError(f"{run} holds no run to resume; give a log to begin one")
        fitted = learned_kind(model or options.DEFAULT_MODEL, preset)(**settings)
        spec = spec_for(log)
    if not resume:
        folder.refuse_another()
    split = open_log(spec)
    if known is None:
        remember_log(run, spec)
    try:
        with progress_bar(always=True) as progress:
            fitted.fit(split, run=run, resume=resume, progress=progress)
    except KeyboardInterrupt:
        print(f"stopped; continue with: tclgraph train --run {run} --resume", file=sys.stderr)
        raise typer.Exit(130) from None
    # From here on the model is for use, so it knows the whole log.
    fitted.observe(split.valid)
    fitted.observe(split.test)
    fitted.save(run)
    history = folder.read_metrics()
    best = history[best_epoch(history, fitted.config.choose_by) - 1]
    if as_json:
        print_json({"run": str(run), **best})
        return
    figures = "  ".join(f"{name} {figure:.4g}" for name, figure in best["valid"].items())
    print(f"{run}: best after epoch {best['epoch']}, valid {figures}")
    print(f"next: tclgraph evaluate {run}")
