"""Flags that a command receives as one argument instead of as many parameters."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import wraps
from typing import Any, TypeAlias, get_type_hints

Command: TypeAlias = Callable[..., None]


def with_flags(parameter: str, group: type) -> Callable[[Command], Command]:
    """Give a command one flag per field of a dataclass, and an instance of it as `parameter`."""
    hints = get_type_hints(group, include_extras=True)
    flags = [flag(field.name, field.default, hints[field.name]) for field in fields(group)]
    return lambda command: with_parameter(command, parameter, flags, lambda **v: group(**v))


def flag(name: str, default: Any, annotation: Any) -> inspect.Parameter:
    """Return the parameter from which typer makes a flag."""
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def with_parameter(
    command: Command, parameter: str, flags: Sequence[inspect.Parameter], make: Callable[..., Any]
) -> Command:
    """Replace a parameter of a command by flags; `make` turns their values into its argument.

    typer reads the flags from the signature of a command, so the signature is replaced.
    """

    @wraps(command)
    def run(**arguments: Any) -> None:
        values = {entry.name: arguments.pop(entry.name) for entry in flags}
        command(**arguments, **{parameter: make(**values)})

    signature = inspect.signature(command)
    others = [entry for name, entry in signature.parameters.items() if name != parameter]
    parameters = [*others, *flags]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {entry.name: entry.annotation for entry in parameters}
    return run
