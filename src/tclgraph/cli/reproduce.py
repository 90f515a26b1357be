"""`tclgraph reproduce`: the paper's tables and figures, on its data sets or on any log."""

import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from tclgraph.cli import options
from tclgraph.cli.flag_groups import with_flags
from tclgraph.cli.interruption import EXIT_CODE, keyboard_interrupts

if TYPE_CHECKING:
    from tclgraph.jobs.suite import Suite, SuiteStatus
    from tclgraph.reports.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleOptions:
    """Flags that say how many jobs run, and for how long."""

    seeds: Annotated[
        int, typer.Option(min=1, max=64, help="Number of seeds of each learned model.")
    ] = 5
    budget: Annotated[
        Optional[float],
        typer.Option(min=0, help="Minutes to run; repeat the command to continue."),
    ] = None
    jobs: Annotated[
        Optional[int],
        typer.Option(min=1, help="Number of jobs at a time. Default: one for each core."),
    ] = None


@options.with_log_options
@with_flags("schedule", ScheduleOptions)
def reproduce(
    what: Annotated[
        list[str],
        typer.Argument(
            help="One or more of datasets, overall, ablation, depth, heads, parts (of the ranker), "
            "reading (of the paper), noise (robustness), or all: everything but the last three."
        ),
    ],
    data: Annotated[
        Optional[list[str]],
        typer.Option(
            help=f"{options.LOG_HELP} May be repeated. Default: the data sets of the paper that "
            "are on this machine."
        ),
    ] = None,
    models: Annotated[
        Optional[str],
        typer.Option(
            help="Models of overall, separated by commas: names of models, heuristics for all "
            "heuristics, or a name with settings, such as tcl:negative_pool=256. The ablation "
            "is of tcl and ranker, if they are among them. Default: all."
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of the report and of all files.")] = Path(
        "runs/reproduce"
    ),
    as_json: options.Json = False,
    *,
    schedule: ScheduleOptions,
    spec_for: options.SpecFor,
) -> None:
    """Make the paper's tables and figures, and a report; finished jobs are not run again."""
    from tclgraph.cli.terminal import progress
    from tclgraph.jobs.suite import Suite
    from tclgraph.reports.reproduction import write_reproduction
    from tclgraph.studies.plan import make_plan

    names = [name.strip() for name in models.split(",")] if models else None
    plan = make_plan(what, [spec_for(name) for name in data or ()], names)
    out.mkdir(parents=True, exist_ok=True)
    workers = schedule.jobs or os.cpu_count() or 1
    suite = Suite(plan.jobs(schedule.seeds), out, workers=workers)
    is_interrupted = not _run(suite, schedule)
    remarks = _remarks(suite)
    command = shlex.join(["tclgraph", *sys.argv[1:]])
    with progress("writing the report") as show:
        tables = write_reproduction(plan, out, command=command, remarks=remarks, show=show)
    if as_json:
        _print_summary(out, tables, suite)
    else:
        _print_tables(out, tables, remarks)
    if is_interrupted:
        raise typer.Exit(EXIT_CODE)
    if suite.failed:
        raise typer.Exit(1)


def _run(suite: "Suite", schedule: ScheduleOptions) -> bool:
    """Run the jobs; return whether they ran to the end or to the end of the budget."""
    seconds = None if schedule.budget is None else 60 * schedule.budget
    try:
        with keyboard_interrupts(signal.SIGTERM), _live_status() as (print_line, show_status):
            suite.run(seconds=seconds, print_line=print_line, show_status=show_status)
    except KeyboardInterrupt:
        return False
    return True


def _remarks(suite: "Suite") -> list[str]:
    """Return sentences about the jobs that have no outcome."""
    remarks = [f"failed: {key}: {error}" for key, error in suite.failed.items()]
    if suite.missing:
        keys = ", ".join(job.key for job in suite.missing)
        remarks.append(
            f"not done yet ({len(suite.missing)}): {keys}; repeat the command to continue"
        )
    return remarks


def _print_summary(out: Path, tables: "Sequence[Table]", suite: "Suite") -> None:
    from tclgraph.cli.terminal import print_json

    print_json(
        {
            "report": str(out / "report.html"),
            "tables": [str(out / "tables" / f"{table.name}.csv") for table in tables],
            "missing": [job.key for job in suite.missing],
            "failed": suite.failed,
        }
    )


def _print_tables(out: Path, tables: "Sequence[Table]", remarks: Sequence[str]) -> None:
    from tclgraph.reports.table import to_markdown

    for table in tables:
        if table.is_shown_in_terminal:
            print(to_markdown(table))
    for remark in remarks:
        print(remark, file=sys.stderr)
    print(out / "report.html")


@contextmanager
def _live_status() -> "Iterator[tuple[Callable[[str], None], Callable[[SuiteStatus], None]]]":
    """Print a line for every job that ends and, in a terminal, show the status of the suite."""
    from datetime import timedelta

    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(stderr=True, highlight=False)

    def print_line(line: str) -> None:
        console.print(line, markup=False, soft_wrap=True)

    if not console.is_terminal:
        yield print_line, lambda _: None
        return
    with Live(console=console, transient=True, refresh_per_second=2) as live:

        def show_status(status: "SuiteStatus") -> None:
            seconds = status.seconds_left
            left = "" if seconds is None else f", about {timedelta(seconds=round(seconds))} left"
            lines = [f"{status}{left}", *(f"  {line}" for line in status.running)]
            live.update(Text("\n".join(lines), no_wrap=True, overflow="ellipsis"))

        yield print_line, show_status
