"""`tclgraph tune`: search the settings that matter, by the validation part."""

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from tclgraph.cli import options

if TYPE_CHECKING:
    from rich.table import Table

    from tclgraph.training.progress import ProgressCallback, ProgressUpdate
    from tclgraph.tuning.search import Search, Trial

_SHOWN = ("MRR", "MR", "Hit@10")


@options.with_log_options
def tune(
    log: Annotated[str, typer.Argument(help="A catalogue name or a file.")],
    model: Annotated[str, typer.Option(help="A learned model's name.")] = options.DEFAULT_MODEL,
    preset: options.Preset = None,
    set_: Annotated[
        Optional[list[str]],
        typer.Option(
            "--set", metavar="NAME=VALUE", help="A setting that all trials share; repeatable."
        ),
    ] = None,
    budget: Annotated[
        float, typer.Option(min=0, max=100_000, help="Minutes for this call.")
    ] = 30.0,
    trials: Annotated[
        Optional[int], typer.Option(min=1, help="At most so many, with those of earlier calls.")
    ] = None,
    study: Annotated[
        Optional[Path], typer.Option(help="Folder of the search; default: runs/tune-MODEL-LOG.")
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Of the search; that of training is --set seed=N.")
    ] = 0,
    as_json: options.Json = False,
    *,
    spec_for: options.SpecFor,
) -> None:
    """Search the settings that do best on the validation part; the same call again goes on."""
    from dataclasses import asdict
    from functools import partial

    from tclgraph.cli.runs import learned_kind
    from tclgraph.cli.terminal import open_log, print_json, print_table
    from tclgraph.errors import InputError
    from tclgraph.tuning.search import open_search

    # What can be refused without reading the log is refused before it.
    fixed = options.read_settings(set_)
    build = partial(learned_kind(model, preset), **fixed)
    every = build().search_space
    space = {name: one for name, one in every.items() if name not in fixed}
    if not space:
        names = ", ".join(every)
        raise InputError(f"--set leaves nothing to search; leave out one of {names}")
    study = study or Path("runs") / f"tune-{model}-{Path(log).name.split('.')[0]}"
    spec = spec_for(log)
    split = open_log(spec)

    with open_search(build, split, space, folder=study, seed=seed) as search:
        if before := search.trials():
            print(f"continuing: {_count(before)} done", file=sys.stderr)
        try:
            with _showing(search, 60 * budget) as (progress, tell):
                search.run(seconds=60 * budget, max_trials=trials, progress=progress, tell=tell)
        except KeyboardInterrupt:
            kept = f"{_count(search.trials())} kept in {study}"
            print(f"stopped; {kept}; the same command goes on", file=sys.stderr)
            raise typer.Exit(130) from None
        found = search.trials()
    best = _best(found, budget)
    words = ["tclgraph", "train", log]
    words += ["--model", model] if model != options.DEFAULT_MODEL else []
    words += ["--preset", preset] if preset else []
    for name, value in {**fixed, **best.settings}.items():
        words += ["--set", f"{name}={value}"]
    command = shlex.join([*words, *spec.flags(), "--run", str(study / "best")])
    if as_json:
        print_json(
            {
                "study": str(study),
                "model": model,
                "preset": preset,
                "metric": search.metric,
                "combinations": len(search.combinations),
                "trials": [asdict(one) for one in found],
                "best": asdict(best),
                "command": command,
            }
        )
        return
    print_table(
        f"{log}: {_count(found)} of {len(search.combinations)} combinations, best first by "
        f"{search.metric}\nvalid, {split.sizes['valid']:,} events | graph {split.events.kind} | "
        f"split {split}",
        _table(found),
    )
    own = next((one for one in found if one.settings == search.own), None)
    print(f"best: {_told(best)}" + (f"; {preset or model} as it is: {_told(own)}" if own else ""))
    print(f"next: {command}")
    if len(found) < min(trials or len(search.combinations), len(search.combinations)):
        print("the same command again searches on")


def _best(trials: "list[Trial]", budget: float) -> "Trial":
    from tclgraph.errors import InputError

    for trial in trials:
        if trial.state == "complete":
            return trial
    if not trials:
        raise InputError(
            f"no trial was over within {budget:g} minutes; give a larger --budget, or shorter "
            "trials, like --set epochs=5"
        )
    raise InputError(f"all of {_count(trials)} failed, the last one so: {trials[-1].error}")


def _count(trials: "list[Trial]") -> str:
    return f"{len(trials)} trial" + "s" * (len(trials) != 1)


def _told(trial: "Trial") -> str:
    from tclgraph.evaluation.report import decimals

    if trial.error or not trial.valid:
        return f"failed, {trial.error}"
    figures = " ".join(f"{one} {trial.valid[one]:.{decimals(one)}f}" for one in _SHOWN)
    return f"valid {figures} after epoch {trial.epoch}"


def _table(trials: "list[Trial]") -> "Table":
    from tclgraph.cli.terminal import new_table
    from tclgraph.evaluation.report import decimals

    # Ten columns, to be read in a terminal of 80.
    settings = (name.replace("_", "\n") for name in trials[0].settings)
    table = new_table(*settings, *_SHOWN, "epoch", "seconds", "state")
    table.padding = (0, 0)
    for trial in trials:
        figures = ["-" for _ in _SHOWN]
        if trial.valid:
            figures = [f"{trial.valid[one]:.{decimals(one)}f}" for one in _SHOWN]
        table.add_row(
            *map(str, trial.settings.values()),
            *figures,
            str(trial.epoch or "-"),
            f"{trial.seconds:.1f}",
            trial.state,
        )
    return table


@contextmanager
def _showing(
    search: "Search", seconds: float
) -> "Iterator[tuple[ProgressCallback, Callable[[Trial], None]]]":
    """A bar with time left where someone watches, and a line per trial, on stderr."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.table import Column

    console = Console(stderr=True, highlight=False)
    # What does not fit into a narrow terminal is the end of the text, not the time.
    text = TextColumn("{task.description}", table_column=Column(no_wrap=True, ratio=1))
    columns = BarColumn(bar_width=20), TimeRemainingColumn(), text
    started = monotonic()
    number = len(search.trials()) + 1
    with Progress(*columns, console=console, expand=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("preparing (the first run on a machine compiles)", total=seconds)

        def progress(update: "ProgressUpdate") -> None:
            bar.update(
                task, description=f"trial {number}  {update}", completed=monotonic() - started
            )

        def tell(trial: "Trial") -> None:
            nonlocal number
            settings = " ".join(f"{name}={value}" for name, value in trial.settings.items())
            state = " (pruned)" if trial.state == "pruned" else ""
            line = f"trial {number}: {settings}  {_told(trial)}{state}"
            # Neither folded nor read as markup: a line of a log.
            console.print(f"{line}  {trial.seconds:.1f} s", markup=False, soft_wrap=True)
            number += 1

        yield progress, tell
