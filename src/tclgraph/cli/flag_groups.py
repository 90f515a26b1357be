"""Flags that a command receives as one object instead of as many parameters."""

import inspect
from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from typing import Any, get_type_hints

Command = Callable[..., None]


def with_flags(parameter: str, group: type) -> Callable[[Command], Command]:
    """Give a command one flag per field of the dataclass `group`.

    The command receives an instance of `group` as its keyword argument `parameter`. typer reads the
    flags from the signature of the command, so the decorator replaces that signature.
    """
    hints = get_type_hints(group, include_extras=True)
    flags = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=hints[field.name],
        )
        for field in fields(group)
    ]

    def decorate(command: Command) -> Command:
        @wraps(command)
        def run(**arguments: Any) -> None:
            values = {flag.name: arguments.pop(flag.name) for flag in flags}
            command(**arguments, **{parameter: group(**values)})

        signature = inspect.signature(command)
        others = [value for name, value in signature.parameters.items() if name != parameter]
        parameters = [*others, *flags]
        run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {value.name: value.annotation for value in parameters}
        return run

    return decorate
