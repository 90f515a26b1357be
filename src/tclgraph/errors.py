"""The one failure a user can cause: input that cannot be used, said in one sentence."""

from collections.abc import Iterable
from difflib import get_close_matches


class InputError(ValueError):
    """Bad input. The message names the value, the place and the cure, and is shown as it is."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of an "unknown name" message: the nearest known name, or all of them.

    >>> did_you_mean("wikipedai", ["wikipedia", "reddit"])
    'did you mean "wikipedia"?'
    >>> did_you_mean("xyz", ["wikipedia", "reddit"])
    'known are: wikipedia, reddit'
    """
    names = list(known)
    by_lower_case = {one.lower(): one for one in names}
    close = get_close_matches(name.lower(), by_lower_case, n=1)
    if close:
        return f'did you mean "{by_lower_case[close[0]]}"?'
    return f"known are: {', '.join(names)}"
