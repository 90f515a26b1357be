"""Command line options that several commands share."""

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Optional, TypeAlias, get_type_hints

import typer

from tclgraph.cli.flag_groups import Command, flag, with_parameter
from tclgraph.errors import InputError
from tclgraph.events.log_spec import LogSpec

Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object to stdout and nothing else.")
]

At = Annotated[
    Optional[str],
    typer.Option(help="Use only events before this time: seconds or a date. Default: all events."),
]

Top = Annotated[int, typer.Option(min=1, help="Number of entries to show.")]

Settings = Annotated[
    Optional[list[str]],
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Setting of the model, such as epochs=5 or encoder.levels=4; repeatable.",
    ),
]

DEFAULT_MODEL = "ranker"

LOG_HELP = "Catalog name, path of a file, or git:PATH for the history of a git repository."
"""Help of the argument that names a log."""

SpecFor: TypeAlias = Callable[[str], LogSpec]
"""Returns the `LogSpec` of a log, with the values of the log options."""

_LOG_OPTIONS = {
    "kind": typer.Option(
        help="Graph kind: bipartite or one-mode. Default: the kind of the data set, else bipartite."
    ),
    "source": typer.Option(help="Name of the source column. Default: guess it."),
    "target": typer.Option(help="Name of the target column. Default: guess it."),
    "time": typer.Option(help="Name of the time column. Default: guess it."),
    "time_unit": typer.Option(help="Unit of numeric times: s, ms, us or ns."),
    "header": typer.Option(
        "--header/--no-header",
        help="Whether a text file has a header line. Default: detect it. Without a header, the "
        "columns are named 1, 2, 3, …",
    ),
    "split": typer.Option(
        help="Percentages of train/valid/test. Default: the paper's for its data sets, else "
        "70/15/15."
    ),
    "split_by": typer.Option(
        help="Split by shares of the rows or of the time span, or at quantiles of the event times, "
        "where simultaneous events stay together: rows, time or quantiles."
    ),
    "seen_only": typer.Option(
        "--seen-only",
        help="Drop valid and test events whose source is never a source in train or whose target "
        "is never a target in train, as the paper's authors do.",
    ),
}
"""One option for each field of `LogSpec`, except `log`, `ahead` and `num_events`."""


def read_settings(assignments: list[str] | None) -> dict[str, str]:
    """Return the settings given with --set; the model checks their names and types."""
    settings = {}
    for assignment in assignments or ():
        name, equals, value = assignment.partition("=")
        if not equals:
            raise InputError(f"cannot read the setting {assignment!r}; write --set NAME=VALUE")
        settings[name.strip()] = value.strip()
    return settings


def refuse_log_options(spec_for: SpecFor, run: Path) -> None:
    """Refuse log options for a run, which knows how its log was read."""
    if flags := spec_for("log").flags():
        raise InputError(
            f"{run} already says how its log is read and split; leave out {' '.join(flags)}"
        )


def with_log_options(command: Command) -> Command:
    """Add the log options to a command, which receives their values as `spec_for`."""
    hints = get_type_hints(LogSpec)
    defaults = {field.name: field.default for field in fields(LogSpec)}
    flags = [
        flag(name, defaults[name], Annotated[hints[name], option])
        for name, option in _LOG_OPTIONS.items()
    ]
    return with_parameter(
        command, "spec_for", flags, lambda **values: lambda log: LogSpec(log=log, **values)
    )
