"""The error that invalid input raises, and helpers to word its message."""

from collections.abc import Iterable
from difflib import get_close_matches


class InputError(ValueError):
    """Invalid input from the user.

    The message is one sentence that says what is wrong, where, and what to do. The command line
    prints it without a traceback.
    """


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the end of an "unknown name" message: the closest known name, or all known names.

    >>> did_you_mean("wikipedai", ["wikipedia", "reddit"])
    'did you mean "wikipedia"?'
    >>> did_you_mean("xyz", ["wikipedia", "reddit"])
    'known are: wikipedia, reddit'
    """
    names = list(known)
    by_lower_case = {known_name.lower(): known_name for known_name in names}
    close = get_close_matches(name.lower(), by_lower_case, n=1)
    if close:
        return f'did you mean "{by_lower_case[close[0]]}"?'
    return f"known are: {', '.join(names)}"
