"""Flags that several verbs share, worded once: what to read, and how to cut it."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from typing import Annotated, Any, Optional, get_type_hints

import typer

from tclgraph.errors import InputError

Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, nothing else.")]

At = Annotated[
    Optional[str],
    typer.Option(help="Seconds or a date; only events before it count. Default: all do."),
]

DEFAULT_MODEL = "tcl"
Preset = Annotated[
    Optional[str],
    typer.Option(
        help="Of tcl: default (if nothing is said), paper (to the letter) or fast (paper, with "
        "shared negatives)."
    ),
]


def read_settings(words: list[str] | None) -> dict[str, str]:
    """What --set says; the model knows which settings there are, and their types."""
    settings = {}
    for word in words or ():
        name, equals, value = word.partition("=")
        if not equals:
            raise InputError(f"cannot read the setting {word!r}; write --set NAME=VALUE")
        settings[name.strip()] = value.strip()
    return settings


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """How a log is read and split. None: as the catalogue has it, or as the file looks."""

    kind: Annotated[
        Optional[str], typer.Option(help="bipartite or one-mode; default: as the data set is.")
    ] = None
    source: Annotated[Optional[str], typer.Option(help="Column of the source; else guessed.")] = (
        None
    )
    target: Annotated[Optional[str], typer.Option(help="Column of the target; else guessed.")] = (
        None
    )
    time: Annotated[Optional[str], typer.Option(help="Column of the time; else guessed.")] = None
    time_unit: Annotated[str, typer.Option(help="Unit of numeric times: s, ms, us or ns.")] = "s"
    header: Annotated[
        Optional[bool],
        typer.Option(
            "--header/--no-header",
            help="Whether a text file has a header line; else seen from it. "
            "Without one, columns are called 1, 2, 3, …",
        ),
    ] = None
    split: Annotated[
        Optional[str],
        typer.Option(help="Percent of train/valid/test; default: the paper's, else 70/15/15."),
    ] = None
    split_by: Annotated[str, typer.Option(help="Shares of rows or of time.")] = "rows"
    seen_only: Annotated[
        bool,
        typer.Option(
            "--seen-only",
            help="Drop valid and test rows whose source or target does not act so in train, "
            "as the paper's authors do.",
        ),
    ] = False

    def words(self) -> list[str]:
        """The flags that say this again.

        >>> LogOptions(split="60/20/20", header=False, seen_only=True).words()
        ['--no-header', '--split', '60/20/20', '--seen-only']
        """
        words = []
        for field in fields(self):
            value, flag = getattr(self, field.name), "--" + field.name.replace("_", "-")
            if value == field.default:
                continue
            if isinstance(value, bool):
                words.append(flag if value else flag.replace("--", "--no-"))
            else:
                words += [flag, value]
        return words


def with_log_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the flags of `LogOptions`, which it receives as one `log_options`.

    The command line is read off a function's signature, so the signature is what is extended.
    """
    own = inspect.signature(command)
    hints = get_type_hints(LogOptions, include_extras=True)

    @wraps(command)
    def run(**words: Any) -> None:
        options = LogOptions(**{field.name: words.pop(field.name) for field in fields(LogOptions)})
        command(**words, log_options=options)

    flags = {
        field.name: inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=hints[field.name],
        )
        for field in fields(LogOptions)
    }
    kept = {name: one for name, one in own.parameters.items() if name != "log_options"}
    run.__signature__ = own.replace(parameters=[*kept.values(), *flags.values()])  # type: ignore[attr-defined]
    run.__annotations__ = {name: one.annotation for name, one in {**kept, **flags}.items()}
    return run
