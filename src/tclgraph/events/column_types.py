"""Guess the columns of source, target and time from the types and values of a table's columns.

The time is a column of dates or Unix times. If there are several, it is the one that rises from row
to row, because most logs are written in order of time. Without such a column, it is the column of
numbers that rises, unless another column of numbers has more distinct values: then the log may be
grouped by the rising column. Source and target are the first columns, in the order of the table, of
text or whole numbers that repeat.

Two kinds of columns look like a time or a key but are neither: the first column of a table, if it
numbers the rows, and a column that rises together with the time, such as an order number.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from tclgraph.errors import InputError
from tclgraph.events.times import are_dates, are_unix_times

# A merged log has a few rows in the wrong order.
_MAX_FALLS_PER_RISE = 0.01
# A column with few rises may rise together with the time by chance.
_MIN_RISES_OF_SERIAL_NUMBER = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class _Profile:
    """What the type and the values of a column say about its role."""

    name: str
    num_rows: int
    num_missing: int
    num_distinct: int
    num_rises: int
    """Number of values that are larger than the value before."""
    num_falls: int
    """Number of values that are smaller than the value before."""
    is_date: bool
    is_number: bool
    is_unix_time: bool
    is_counter: bool
    """Whether every value is the value before plus 1."""
    can_be_key: bool
    """Whether the values are text or whole numbers."""

    @property
    def is_rising(self) -> bool:
        """Whether the values never fall, or nearly never."""
        return self.num_rises > 0 and self.num_falls <= _MAX_FALLS_PER_RISE * self.num_rises

    @property
    def is_serial_number(self) -> bool:
        """Whether the values rise too often to do so by chance."""
        return self.is_rising and self.num_rises >= _MIN_RISES_OF_SERIAL_NUMBER

    @property
    def repeats(self) -> bool:
        """Whether some values, but not all, are equal."""
        return 1 < self.num_distinct < self.num_rows


def guess_roles(
    roles: Sequence[str],
    columns: Sequence[pl.Series],
    *,
    time: str | None,
    names: Sequence[str],
    origin: str,
) -> dict[str, str]:
    """Return the name of a column for every role, the time first.

    `columns` are the columns without a role, and the column `time` if that role is known. `names`
    are the names of all columns. Raise an `InputError` if no column or several fit a role.

    >>> buyers = pl.Series("buyer", ["ann", "bob", "ann"])
    >>> dates = pl.Series("bought_at", ["2024-05-30", "2024-05-31", "2024-05-31"])
    >>> names = ["buyer", "product", "bought_at"]
    >>> guess_roles(["source", "time"], [buyers, dates], time=None, names=names, origin="log.csv")
    {'time': 'bought_at', 'source': 'buyer'}
    """
    profiles = {column.name: _profile(column) for column in columns if _has_known_type(column)}
    guessed: dict[str, str] = {}
    if time is None:
        likely = _likely_times(list(profiles.values()), first=next(iter(names), ""))
        guessed = _assign(["time"], likely, names, origin)
        time = guessed["time"]
    time_profile = profiles.pop(time, None)
    is_in_order = time_profile is not None and time_profile.is_rising
    key_roles = [role for role in roles if role != "time"]
    likely = _likely_keys(list(profiles.values()), len(key_roles), is_in_order=is_in_order)
    return guessed | _assign(key_roles, likely, names, origin)


def _assign(
    roles: Sequence[str], likely: Sequence[str], names: Sequence[str], origin: str
) -> dict[str, str]:
    """Assign the likely columns to the roles if there are as many."""
    if len(likely) == len(roles):
        return dict(zip(roles, likely, strict=True))
    columns, pronoun = ("column", "it") if len(roles) == 1 else ("columns", "them")
    flags = " and ".join(f"--{role}" for role in roles)
    entries = ", ".join(f'"{role}": …' for role in roles)
    raise InputError(
        f"{origin}: cannot guess the {' and '.join(roles)} {columns} among "
        f"{', '.join(likely or names)}; name {pronoun} with {flags} "
        f"(in Python: columns={{{entries}}})"
    )


def _likely_times(profiles: Sequence[_Profile], first: str) -> list[str]:
    """Return the columns that are most likely the time; `first` is the first of the table."""
    times = [profile for profile in profiles if profile.is_date or profile.is_unix_time]
    for group in (
        [profile for profile in times if profile.is_date and profile.is_rising],
        [profile for profile in times if profile.is_rising],
        times,
    ):
        if group:
            return [profile.name for profile in group]
    numbers = [
        profile
        for profile in profiles
        if profile.is_number and not (profile.is_counter and profile.name == first)
    ]
    rising = [profile for profile in numbers if profile.is_rising]
    if not rising:
        return []
    fewest = min(profile.num_distinct for profile in rising)
    return [
        profile.name for profile in numbers if profile.is_rising or profile.num_distinct > fewest
    ]


def _likely_keys(profiles: Sequence[_Profile], count: int, *, is_in_order: bool) -> list[str]:
    """Return the first `count` columns that are likely keys, or all that could be.

    `is_in_order` says whether the rows are in order of time.
    """
    possible = [profile for profile in profiles if profile.can_be_key]
    likely = [
        profile
        for profile in possible
        if profile.repeats
        and not profile.num_missing
        and not profile.is_unix_time
        and not (is_in_order and profile.is_serial_number)
    ]
    return [profile.name for profile in (likely[:count] if len(likely) >= count else possible)]


def _has_known_type(column: pl.Series) -> bool:
    dtype = column.dtype
    is_text = dtype in (pl.String, pl.Categorical, pl.Enum)
    return is_text or dtype in (pl.Date, pl.Datetime) or dtype.is_numeric()


def _profile(column: pl.Series) -> _Profile:
    if not (column.dtype.is_numeric() or column.dtype.is_temporal()):
        column = column.cast(pl.String).str.strip_chars().replace("", None)
    values = column.drop_nulls()
    is_text = values.dtype == pl.String
    is_date = _are_most(are_dates(values)) if is_text else values.dtype.is_temporal()
    numbers = _numbers(values) if is_text and not is_date else values
    is_number = numbers.dtype.is_numeric()
    can_be_key = not is_date and (numbers.dtype.is_integer() or not is_number)
    if is_number:
        numbers = numbers.cast(pl.Float64)  # small integer types would overflow
    previous = numbers.shift(1)
    return _Profile(
        name=column.name,
        num_rows=len(column),
        num_missing=len(column) - len(values),
        num_distinct=values.n_unique(),
        num_rises=int((numbers > previous).sum()),
        num_falls=int((numbers < previous).sum()),
        is_date=is_date,
        is_number=is_number,
        is_unix_time=is_number and are_unix_times(numbers),
        is_counter=is_number and bool((numbers - previous == 1).all()),
        can_be_key=can_be_key,
    )


def _numbers(text: pl.Series) -> pl.Series:
    """Return the numbers of a column of text if most of the text are numbers, else the text."""
    numbers = text.cast(pl.Float64, strict=False)
    if not _are_most(numbers.is_not_null()):
        return text
    integers = text.cast(pl.Int64, strict=False)
    are_whole = integers.null_count() == numbers.null_count()
    return (integers if are_whole else numbers).drop_nulls()


def _are_most(flags: pl.Series) -> bool:
    return 2 * int(flags.sum()) > len(flags)
