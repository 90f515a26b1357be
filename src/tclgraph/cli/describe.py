"""`tclgraph describe`: the statistics of a log."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from tclgraph.cli import options

if TYPE_CHECKING:
    from rich.table import Table

    from tclgraph.events.split import Split
    from tclgraph.events.statistics import Description


@options.with_log_options
def describe(
    log: Annotated[str, typer.Argument(help=options.LOG_HELP)],
    as_json: options.Json = False,
    *,
    spec_for: options.SpecFor,
) -> None:
    """Print the statistics of a log, as in the paper's Table 1, and the sizes of its parts."""
    from tclgraph import __version__
    from tclgraph.cli.terminal import open_log, print_json, print_table, round_half_up
    from tclgraph.environment import environment
    from tclgraph.events import statistics

    spec = spec_for(log)
    split = open_log(spec)
    description = statistics.describe(split)
    if not as_json:
        print_table(f"{log} ({split.events.kind}, {split})", _table(description, split))
        return
    # Days and percentages have the precision of the paper's table.
    figures = {
        name: round_half_up(value, 2)
        if name.startswith(("days", "repetition", "simultaneous"))
        else value
        for name, value in asdict(description).items()
    }
    print_json(
        {
            "data": log,
            "file": spec.file,
            "kind": split.events.kind,
            "split": str(split),
            "version": __version__,
            "machine": environment(),
            **figures,
            "parts": split.sizes,
        }
    )


def _table(description: "Description", split: "Split") -> "Table":
    from tclgraph.cli.terminal import new_table, round_half_up

    table = new_table("", "")
    table.show_header = False
    for name, value in (
        ("interactions", f"{description.interactions:,}"),
        ("sources", f"{description.sources:,}"),
        ("targets", f"{description.targets:,}"),
        ("distinct nodes", f"{description.nodes:,}"),
        ("days", f"{round_half_up(description.days, 2):.2f}"),
        ("repetition density", f"{round_half_up(description.repetition_density, 2):.2f} %"),
        (
            "  as the paper's text defines it: test pairs that occur in train",
            f"{round_half_up(description.repetition_density_in_text, 2):.2f} %",
        ),
        ("median interval of a node", f"{description.median_interval:,.0f} s"),
        (
            "same source and time as the event before",
            f"{round_half_up(description.simultaneous, 2):.2f} %",
        ),
        *((part, f"{size:,}") for part, size in split.sizes.items()),
    ):
        table.add_row(name, value)
    return table
