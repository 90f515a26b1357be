"""Times in whatever form a log has them, to float64 Unix seconds.

Numbers are taken in the unit given (seconds unless told otherwise); ISO-8601 text and date columns
carry their own. A date without a zone is taken as UTC, and that is said.
"""

from collections.abc import Callable
from typing import Literal, TypeAlias, get_args

import numpy as np
import polars as pl

from tclgraph.arrays import FloatArray
from tclgraph.errors import InputError, did_you_mean
from tclgraph.events.stream import Notify

TimeUnit: TypeAlias = Literal["s", "ms", "us", "ns"]
Place: TypeAlias = Callable[[int], str]
"""Names a row for an error message: "log.csv, row 3 (line 4), column 'time'"."""

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_ISO_8601 = (
    r"^(?<date>\d{4}-\d{2}-\d{2})"
    r"(?:[Tt ](?<clock>\d{2}:\d{2})(?::(?<second>\d{2})(?<fraction>[.,]\d+)?)?)?"
    r" ?(?<zone>[Zz]|[+-]\d{2}(?::?\d{2})?)?$"
)
_CURE = "write it as a number of seconds or like 2024-05-31T12:00:00Z"
# Seconds since 1970 reach 1e11 in the year 5138; milliseconds passed it in 1973.
_SURELY_NOT_SECONDS = 1e11


def to_seconds(column: pl.Series, unit: TimeUnit, place: Place, notify: Notify) -> FloatArray:
    """Unix seconds of every row, or an `InputError` that names the first row that has none."""
    if unit not in get_args(TimeUnit):
        raise InputError(f"unknown time unit {unit!r}; {did_you_mean(unit, get_args(TimeUnit))}")
    if column.dtype == pl.Date:
        column = column.cast(pl.Datetime("us"))
    if column.dtype == pl.Datetime:
        _refuse_empty(column, place)
        if column.dtype.time_zone is None:  # type: ignore[attr-defined]
            notify("times have no zone and are taken as UTC")
        resolution = column.dtype.time_unit  # type: ignore[attr-defined]
        return _scaled(column.dt.epoch(resolution), _PER_SECOND[resolution])
    if column.dtype == pl.String:
        column = column.str.strip_chars()
        _refuse_empty(column.replace("", None), place)
        numbers = column.cast(pl.Float64, strict=False)
        if numbers.null_count():
            return _from_text(column, numbers, place, notify)
        whole = column.cast(pl.Int64, strict=False)
        numbers = numbers if whole.null_count() else whole
    elif column.dtype.is_numeric():
        _refuse_empty(column, place)
        numbers = column
    else:
        raise InputError(f"{place(0)}: type {column.dtype} cannot be read as a time; {_CURE}")
    return _from_numbers(numbers, column, unit, place, notify)


def parse_time(text: str) -> float:
    """One time that a person wrote: seconds, or a date.

    >>> parse_time("1970-01-02T00:00Z"), parse_time("17.5")
    (86400.0, 17.5)
    """
    return float(to_seconds(pl.Series([text]), "s", lambda _: f"time {text!r}", lambda _: None)[0])


def _refuse_empty(column: pl.Series, place: Place) -> None:
    if column.null_count():
        row = int(column.is_null().arg_max() or 0)
        raise InputError(f"{place(row)}: the time is empty; fill it in or drop the row")


def _from_numbers(
    numbers: pl.Series, column: pl.Series, unit: TimeUnit, place: Place, notify: Notify
) -> FloatArray:
    is_bad = ~numbers.is_finite()
    if is_bad.any():
        row = int(is_bad.arg_max() or 0)
        raise InputError(f"{place(row)}: time {column[row]} is not finite; {_CURE}")
    if unit == "s" and 2 * (numbers.abs() > _SURELY_NOT_SECONDS).sum() > len(numbers):
        notify("times look finer than seconds; if so, pass --time-unit ms (or us, ns)")
    return _scaled(numbers, _PER_SECOND[unit])


def _scaled(numbers: pl.Series, per_second: int) -> FloatArray:
    """Divide, but never take an integer through float64 first: nanoseconds do not fit into it."""
    values = numbers.to_numpy()
    if not numbers.dtype.is_integer():
        return np.asarray(values / per_second, dtype=np.float64)
    return np.asarray(values // per_second + values % per_second / per_second, dtype=np.float64)


def _from_text(column: pl.Series, numbers: pl.Series, place: Place, notify: Notify) -> FloatArray:
    parts = column.str.extract_groups(_ISO_8601).struct.unnest()
    is_date, is_number = parts["date"].is_not_null(), numbers.is_not_null()
    if not (is_date | is_number).all():
        row = int((~(is_date | is_number)).arg_max() or 0)
        raise InputError(f"{place(row)}: cannot read {column[row]!r} as a time; {_CURE}")
    if is_number.any():
        row = int((is_date != is_date[0]).arg_max() or 0)
        raise InputError(
            f"{place(row)}: {column[row]!r} is written in another way than {column[0]!r} in row 1; "
            "write all times as numbers or all as dates"
        )
    has_zone = parts["zone"].is_not_null()
    if has_zone.any() and not has_zone.all():
        row = int((has_zone != has_zone[0]).arg_max() or 0)
        raise InputError(
            f"{place(row)}: {column[row]!r} and {column[0]!r} in row 1 differ in that only one has "
            "a time zone; give all a zone or none"
        )
    if not has_zone.any():
        notify("times have no zone and are taken as UTC")
    whole = _whole_seconds(parts)
    if whole.null_count():
        row = int(whole.is_null().arg_max() or 0)
        raise InputError(f"{place(row)}: {column[row]!r} is not a date that exists; correct it")
    fraction = parts["fraction"].str.replace(",", ".").cast(pl.Float64).fill_null(0.0)
    return np.asarray((whole - _zone_offset(parts["zone"])).to_numpy() + fraction.to_numpy())


def _whole_seconds(parts: pl.DataFrame) -> pl.Series:
    clock = pl.concat_str(
        pl.col("date"),
        pl.lit(" "),
        pl.col("clock").fill_null("00:00"),
        pl.lit(":"),
        pl.col("second").fill_null("00"),
    )
    update = parts.select(clock.str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False)).to_series()
    return update.dt.epoch("s")


def _zone_offset(zone: pl.Series) -> pl.Series:
    """Seconds east of UTC; 0 for Z and for no zone."""
    digits = zone.str.extract_groups(r"^([+-]\d{2}):?(\d{2})?$").struct.unnest()
    hours, minutes = (digits.to_series(n).cast(pl.Int64).fill_null(0) for n in (0, 1))
    is_west = zone.str.starts_with("-").fill_null(value=False)
    return hours * 3600 + minutes * 60 * pl.Series(np.where(is_west, -1, 1))
