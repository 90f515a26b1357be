"""`tclgraph tune`: search for the settings with the best validation metric."""

import re
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from tclgraph.cli import options
from tclgraph.cli.flag_groups import with_flags
from tclgraph.cli.interruption import EXIT_CODE, keyboard_interrupts

if TYPE_CHECKING:
    from rich.table import Table

    from tclgraph.events.split import Split
    from tclgraph.models.learned import LearnedModel
    from tclgraph.training.progress import ProgressCallback, ProgressUpdate
    from tclgraph.tuning.search import Search, Trial
    from tclgraph.tuning.search_space import SearchSpace

_SHOWN_METRICS = ("MRR", "MR", "Hit@10")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """How long to search, and with which random numbers."""

    budget: Annotated[
        float, typer.Option(min=0, max=100_000, help="Time limit of this call, in minutes.")
    ] = 30.0
    trials: Annotated[
        Optional[int],
        typer.Option(min=1, help="Maximum number of trials, including those of earlier calls."),
    ] = None
    seed: Annotated[
        int,
        typer.Option(min=0, help="Seed of the search; set the seed of training by --set seed=N."),
    ] = 0


@options.with_log_options
@with_flags("search_options", SearchOptions)
def tune(
    log: Annotated[str, typer.Argument(help=options.LOG_HELP)],
    model: Annotated[str, typer.Option(help="Name of a trainable model.")] = options.DEFAULT_MODEL,
    settings: options.Settings = None,
    folder: Annotated[
        Optional[Path], typer.Option(help="Folder of the search; default: runs/tune-MODEL-LOG.")
    ] = None,
    as_json: options.Json = False,
    *,
    search_options: SearchOptions,
    spec_for: options.SpecFor,
) -> None:
    """Search for the settings with the best validation metric; repeat the command to continue."""
    from functools import partial

    from tclgraph.cli.runs import trainable_class
    from tclgraph.cli.terminal import open_log
    from tclgraph.tuning.search import open_search

    # Errors that do not depend on the log are reported before the log is read.
    fixed = options.read_settings(settings)
    build = partial(trainable_class(model), **fixed)
    space = _search_space(build(), fixed)
    spec = spec_for(log)
    folder = folder or Path("runs") / f"tune-{model}-{spec.name}"
    split = open_log(spec)

    with open_search(build, split, space, folder=folder, seed=search_options.seed) as search:
        _run(search, search_options, folder)
        trials = search.trials()
    best = _best(trials, search_options.budget)
    words = ["tclgraph", "train", log, "--model", model]
    for name, value in {**fixed, **best.settings}.items():
        words += ["--set", f"{name}={value}"]
    command = shlex.join([*words, *spec.flags(), "--run", str(folder / "best")])
    if as_json:
        context = {
            "made_by": shlex.join(["tclgraph", *sys.argv[1:]]),
            "folder": str(folder),
            "log": spec.name,
            "kind": split.events.kind,
            "split": str(split),
            "model": model,
            "fixed": fixed,
            "command": command,
        }
        _print_json(search, trials, best, context)
        return
    title = f"{log}: {_count(trials)} of {len(search.combinations)} combinations"
    _print_trials(title, search, trials, split)
    print(f"best: {_outcome(best)}{_untuned_outcome(search, trials)}")
    print(f"next: {command}")
    num_wanted = min(search_options.trials or len(search.combinations), len(search.combinations))
    if len(trials) < num_wanted:
        print("to continue the search, run the same command again")


def _search_space(untuned: "LearnedModel", fixed: dict[str, str]) -> "SearchSpace":
    """Return the search space of a model without the settings that --set fixes."""
    from tclgraph.errors import InputError
    from tclgraph.tuning.search_space import free_settings

    space = free_settings(untuned.search_space, untuned.config, fixed)
    if not space:
        names = ", ".join(free_settings(untuned.search_space, untuned.config, ()))
        raise InputError(f"--set leaves nothing to search; leave out one of {names}")
    return space


def _run(search: "Search", search_options: SearchOptions, folder: Path) -> None:
    """Run the search and show its progress; Ctrl-C ends the command with exit code 130."""
    if finished := search.trials():
        print(f"continuing: {_count(finished)} finished", file=sys.stderr)
    seconds = 60 * search_options.budget
    try:
        with keyboard_interrupts(), _progress_display(search, seconds) as (progress, on_trial_end):
            search.run(
                seconds=seconds,
                max_trials=search_options.trials,
                progress=progress,
                on_trial_end=on_trial_end,
            )
    except KeyboardInterrupt:
        print(
            f"stopped; {folder} holds {_count(search.trials())}; "
            "to continue the search, run the same command again",
            file=sys.stderr,
        )
        raise typer.Exit(EXIT_CODE) from None


def _best(trials: "list[Trial]", budget: float) -> "Trial":
    """Return the best complete trial."""
    from tclgraph.errors import InputError

    for trial in trials:
        if trial.state == "complete":
            return trial
    if not trials:
        raise InputError(
            f"no trial finished within {budget:g} minutes; give a larger --budget, or shorten the "
            "trials, for example by --set epochs=5"
        )
    raise InputError(f"no trial succeeded; the last error was: {trials[-1].error}")


def _print_json(
    search: "Search", trials: "list[Trial]", best: "Trial", context: dict[str, Any]
) -> None:
    from dataclasses import asdict

    from tclgraph.cli.terminal import print_json
    from tclgraph.environment import environment

    print_json(
        {
            **context,
            "metric": search.metric,
            "combinations": len(search.combinations),
            "untuned": search.untuned,
            "trials": [asdict(trial) for trial in trials],
            "best": asdict(best),
            "environment": environment(),
        }
    )


def _print_trials(title: str, search: "Search", trials: "list[Trial]", split: "Split") -> None:
    from tclgraph.cli.terminal import print_table

    print_table(
        f"{title}, best first by {search.metric}\nvalid, {split.sizes['valid']:,} events | "
        f"kind {split.events.kind} | split {split}",
        _table(trials),
    )


def _table(trials: "list[Trial]") -> "Table":
    from tclgraph.cli.terminal import new_table

    # Long names are broken and the padding is removed, so that ten columns fit in 80 characters.
    settings = (re.sub("[._]", "\n", name) for name in trials[0].settings)
    table = new_table(*settings, *_SHOWN_METRICS, "epoch", "seconds", "state")
    table.padding = (0, 0)
    for trial in trials:
        table.add_row(
            *map(str, trial.settings.values()),
            *_figures(trial),
            str(trial.epoch or "-"),
            f"{trial.seconds:.1f}",
            trial.state,
        )
    return table


def _figures(trial: "Trial") -> list[str]:
    """Return the formatted metrics of a trial, or dashes for a trial without any."""
    from tclgraph.evaluation.report import decimals

    if not trial.valid:
        return ["-"] * len(_SHOWN_METRICS)
    return [f"{trial.valid[metric]:.{decimals(metric)}f}" for metric in _SHOWN_METRICS]


def _outcome(trial: "Trial") -> str:
    """Describe the result of a trial in a few words."""
    if trial.error or not trial.valid:
        return f"failed: {trial.error}"
    pairs = zip(_SHOWN_METRICS, _figures(trial), strict=True)
    figures = " ".join(f"{metric} {figure}" for metric, figure in pairs)
    return f"valid {figures} after epoch {trial.epoch}"


def _untuned_outcome(search: "Search", trials: "list[Trial]") -> str:
    """Describe the result of the settings without tuning, if they have been tried."""
    for trial in trials:
        if trial.settings == search.untuned:
            return f"; without tuning: {_outcome(trial)}"
    return ""


def _count(trials: "list[Trial]") -> str:
    return f"{len(trials)} trial" + "s" * (len(trials) != 1)


@contextmanager
def _progress_display(
    search: "Search", seconds: float
) -> "Iterator[tuple[ProgressCallback, Callable[[Trial], None]]]":
    """Show a line per trial on stderr, and on a terminal also a bar with the remaining time.

    Yields the two callbacks of `Search.run`: for progress and for the end of a trial.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.table import Column

    console = Console(stderr=True, highlight=False)
    # A narrow terminal cuts off the end of the text, not the remaining time.
    text = TextColumn("{task.description}", table_column=Column(no_wrap=True, ratio=1))
    columns = BarColumn(bar_width=20), TimeRemainingColumn(), text
    started = monotonic()
    number = len(search.trials()) + 1
    with Progress(*columns, console=console, expand=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("preparing (the first run on a machine compiles)", total=seconds)

        def show_progress(update: "ProgressUpdate") -> None:
            bar.update(
                task, description=f"trial {number}  {update}", completed=monotonic() - started
            )

        def print_trial(trial: "Trial") -> None:
            nonlocal number
            settings = " ".join(f"{name}={value}" for name, value in trial.settings.items())
            state = " (pruned)" if trial.state == "pruned" else ""
            line = f"trial {number}: {settings}  {_outcome(trial)}{state}"
            # One line per trial, even if it is wider than the terminal; brackets are not markup.
            console.print(f"{line}  {trial.seconds:.1f} s", markup=False, soft_wrap=True)
            number += 1

        yield show_progress, print_trial
