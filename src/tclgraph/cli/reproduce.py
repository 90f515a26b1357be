"""`tclgraph reproduce`: the paper's tables and figures, on its data sets or on any log."""

import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from tclgraph.cli import options

if TYPE_CHECKING:
    from tclgraph.jobs.suite import Standing, Suite


@options.with_log_options
def reproduce(
    what: Annotated[
        list[str], typer.Argument(help="Some of datasets, overall, ablation, depth, heads, or all.")
    ],
    data: Annotated[
        Optional[list[str]],
        typer.Option(
            help="A catalogue name or a file; repeatable. Default: the paper's that are here."
        ),
    ] = None,
    models: Annotated[
        Optional[str],
        typer.Option(
            help="Of overall, with commas between: names of models, heuristics, default, paper, fast. "
            "Default: everything."
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, max=64, help="Runs of each that learns.")] = 5,
    budget: Annotated[
        Optional[float], typer.Option(min=0, help="Minutes for this call; the same call goes on.")
    ] = None,
    jobs: Annotated[
        Optional[int], typer.Option(min=1, help="Runs at a time; default: one for each core.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of all that comes of it.")] = Path(
        "runs/reproduce"
    ),
    as_json: options.Json = False,
    *,
    spec_for: options.SpecFor,
) -> None:
    """Make the paper's tables and figures, and a report of all; what is done is not done again."""
    from tclgraph.cli.terminal import print_json, progress
    from tclgraph.jobs.suite import Suite
    from tclgraph.reports.reproduction import plan, write_everything

    chosen = [one.strip() for one in models.split(",")] if models else None
    asked = plan(what, [spec_for(log) for log in data or ()], chosen)
    out.mkdir(parents=True, exist_ok=True)
    suite = Suite(asked.jobs(seeds), out, workers=jobs or os.cpu_count() or 1)
    is_interrupted = False
    try:
        with _stopped_by_sigterm(), _showing() as (tell, show):
            suite.run(seconds=None if budget is None else 60 * budget, tell=tell, show=show)
    except KeyboardInterrupt:
        is_interrupted = True
    remarks = _remarks(suite)
    command = shlex.join(["tclgraph", *sys.argv[1:]])
    with progress("writing the report") as show:
        tables = write_everything(asked, out, command=command, remarks=remarks, show=show)
    if as_json:
        print_json(
            {
                "report": str(out / "report.html"),
                "tables": [str(out / "tables" / f"{table.name}.csv") for table in tables],
                "missing": [job.key for job in suite.missing],
                "failed": suite.failed,
            }
        )
    else:
        _print_tables(out, [table.name for table in tables])
        for remark in remarks:
            print(remark, file=sys.stderr)
        print(f"{out / 'report.html'}")
    if is_interrupted:
        raise typer.Exit(130)
    if suite.failed:
        raise typer.Exit(1)


def _remarks(suite: "Suite") -> list[str]:
    """What is not in the tables, and why."""
    found = [f"failed: {key}: {error}" for key, error in suite.failed.items()]
    if suite.missing:
        names = ", ".join(job.key for job in suite.missing)
        found.append(f"still to be done ({len(suite.missing)}): {names}; the same command goes on")
    return found


def _print_tables(out: Path, names: Sequence[str]) -> None:
    """Those that fit into a terminal; the others are in the report."""
    for name in names:
        if not name.endswith(("-cost", "-meetings", "-quarters", "-compared")):
            print((out / "tables" / f"{name}.md").read_text())


@contextmanager
def _stopped_by_sigterm() -> Iterator[None]:
    """What asks a program to end asks it to save what it has, too."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _showing() -> "Iterator[tuple[Callable[[str], None], Callable[[Standing], None]]]":
    """Jobs done, running and left, with time left, where someone watches; a line for each ended."""
    from datetime import timedelta

    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(stderr=True, highlight=False)

    def tell(line: str) -> None:
        console.print(line, markup=False, soft_wrap=True)

    if not console.is_terminal:
        yield tell, lambda _: None
        return
    with Live(console=console, transient=True, refresh_per_second=2) as live:

        def show(standing: "Standing") -> None:
            left = standing.seconds_left
            told = "" if left is None else f", about {timedelta(seconds=round(left))} left"
            lines = [f"{standing}{told}", *(f"  {one}" for one in standing.running)]
            live.update(Text("\n".join(lines), no_wrap=True, overflow="ellipsis"))

        yield tell, show
