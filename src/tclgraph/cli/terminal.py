"""What people see: tables on stdout, progress and notices on stderr."""

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

_SHORT_SECONDS = 1.0


def print_json(value: dict[str, Any]) -> None:
    # allow_nan=False: a NaN would make the output something that JSON readers refuse.
    print(json.dumps(value, indent=2, allow_nan=False))


def print_table(title: str, table: Table) -> None:
    from rich.console import Console

    # Where nobody watches (a pipe, a file) there is no width to keep to.
    console = Console(width=None if sys.stdout.isatty() else 120, highlight=False)
    # Not as the table's own title, which would be folded to the table's width.
    console.print(title, markup=False)
    console.print(table)


def new_table(*columns: str) -> Table:
    """A table whose first column is text and whose others are figures."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for position, column in enumerate(columns):
        table.add_column(column, justify="left" if position == 0 else "right")
    return table


def round_half_up(value: float, digits: int) -> float:
    """Rounded as in printed tables, where 193.625 is 193.63.

    >>> round_half_up(193.625, 2)
    193.63
    """
    return float(Decimal(repr(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar with time left on stderr for work of over a second. Called with (done, total)."""
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
    task = bar.add_task(what, total=None)

    def show(done: int, total: int) -> None:
        if monotonic() - started > _SHORT_SECONDS:
            bar.start()
        bar.update(task, completed=done, total=total or None)

    try:
        yield show
    finally:
        bar.stop()
