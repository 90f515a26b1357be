"""`tclgraph describe`: the paper's Table 1 row for any log."""

from dataclasses import asdict
from typing import Annotated

import typer

from tclgraph.cli import options


@options.with_log_options
def describe(
    log: Annotated[str, typer.Argument(help="A catalogue name or a file.")],
    as_json: options.Json = False,
    *,
    log_options: options.LogOptions,
) -> None:
    """Count a log: the row of the paper's Table 1, and the sizes of the split's parts."""
    from tclgraph import __version__
    from tclgraph.cli.log import file_name, open_split
    from tclgraph.cli.terminal import new_table, print_json, print_table, round_half_up
    from tclgraph.environment import environment
    from tclgraph.events import statistics

    parts = open_split(log, log_options)
    found = statistics.describe(parts)
    if as_json:
        # Days and densities at the precision of the paper's table.
        figures = {
            name: round_half_up(value, 2) if name.startswith(("days", "repetition")) else value
            for name, value in asdict(found).items()
        }
        told = {
            "data": log,
            "file": file_name(log),
            "kind": parts.events.kind,
            "split": str(parts),
            "version": __version__,
            "machine": environment(),
        }
        print_json({**told, **figures, "parts": parts.sizes})
        return
    table = new_table("", "")
    table.show_header = False
    for name, value in (
        ("interactions", f"{found.interactions:,}"),
        ("sources", f"{found.sources:,}"),
        ("targets", f"{found.targets:,}"),
        ("distinct nodes", f"{found.nodes:,}"),
        ("days", f"{round_half_up(found.days, 2):.2f}"),
        ("repetition density", f"{round_half_up(found.repetition_density, 2):.2f} %"),
        (
            "  as the paper's text defines it: test pairs that occur in train",
            f"{round_half_up(found.repetition_density_in_text, 2):.2f} %",
        ),
        ("median interval of a node", f"{found.median_interval:,.0f} s"),
        *((part, f"{size:,}") for part, size in parts.sizes.items()),
    ):
        table.add_row(name, value)
    print_table(f"{log} ({parts.events.kind}, {parts})", table)
