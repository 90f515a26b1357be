"""Terminal output: tables and JSON on stdout, progress bars on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import ROUND_HALF_UP, Decimal
from time import monotonic
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

    from tclgraph.events.log_spec import LogSpec
    from tclgraph.events.split import Split
    from tclgraph.events.stream import EventStream

_SHORT_SECONDS = 1.0


def print_json(value: dict[str, Any]) -> None:
    # JSON has no NaN, so refuse it here instead of printing text that JSON readers reject.
    print(json.dumps(value, indent=2, allow_nan=False))


def print_table(title: str, table: Table) -> None:
    from rich.console import Console

    # A pipe or a file has no width, so use one that fits the widest table.
    console = Console(width=None if sys.stdout.isatty() else 120, highlight=False)
    # Print the title separately, because rich wraps a table's title to the table's width.
    console.print(title, markup=False)
    console.print(table)


def new_table(*columns: str) -> Table:
    """Return an empty table; the first column is text, the others are right-aligned figures."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for position, column in enumerate(columns):
        table.add_column(column, justify="left" if position == 0 else "right")
    return table


def round_half_up(value: float, digits: int) -> float:
    """Return a value rounded as in printed tables, where 193.625 becomes 193.63.

    >>> round_half_up(193.625, 2)
    193.63
    """
    return float(Decimal(repr(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))


@contextmanager
def progress(description: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar on stderr for work that takes over a second.

    Yields a progress callback, which takes the amount done and the total.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    started = monotonic()
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    task = bar.add_task(description, total=None)

    def show(done: int, total: int) -> None:
        if monotonic() - started > _SHORT_SECONDS:
            bar.start()
        bar.update(task, completed=done, total=total or None)

    try:
        yield show
    finally:
        bar.stop()


def open_log(spec: LogSpec, *, segment: str | None = None) -> Split:
    """Read and split a log; see `read_log`."""
    return spec.divide(read_log(spec, segment=segment))


def read_log(spec: LogSpec, *, segment: str | None = None) -> EventStream:
    """Read a log; show a progress bar if it must be downloaded.

    `segment` is the name of the column that divides the events into segments.
    """
    with progress(f"downloading {spec.log}") as show:
        return spec.read(progress=show, segment=segment)
