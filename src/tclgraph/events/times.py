"""Convert the times of a log to float64 Unix seconds.

Numbers are read in the given unit, by default seconds. ISO 8601 text and date columns need no unit.
A date without a time zone is read as UTC, and a notice says so.
"""

from collections.abc import Callable
from typing import Literal, TypeAlias, cast, get_args

import numpy as np
import polars as pl

from tclgraph.arrays import FloatArray
from tclgraph.errors import InputError, did_you_mean
from tclgraph.events.stream import Notify

TimeUnit: TypeAlias = Literal["s", "ms", "us", "ns"]
Place: TypeAlias = Callable[[int], str]
"""Describes a row for an error message: "log.csv, row 3 (line 4), column 'time'"."""

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_ISO_8601 = (
    r"^(?<date>\d{4}-\d{2}-\d{2})"
    r"(?:[Tt ](?<clock>\d{2}:\d{2})(?::(?<second>\d{2})(?<fraction>[.,]\d+)?)?)?"
    r" ?(?<zone>[Zz]|[+-]\d{2}(?::?\d{2})?)?$"
)
_REMEDY = "write it as a number of seconds or like 2024-05-31T12:00:00Z"
# As seconds since 1970, 1e11 is the year 5138; as milliseconds, it is 1973.
_LARGEST_PLAUSIBLE_SECONDS = 1e11
# From 1980 to 2100, when nearly all events of logs take place.
_PLAUSIBLE_SECONDS = 315_532_800, 4_102_444_800
_UTC_NOTICE = "times have no time zone and are read as UTC"


def check_time_unit(unit: str) -> TimeUnit:
    """Return `unit` if it is a valid time unit; otherwise raise an `InputError`."""
    if unit not in get_args(TimeUnit):
        raise InputError(f"unknown time unit {unit!r}; {did_you_mean(unit, get_args(TimeUnit))}")
    return cast("TimeUnit", unit)


def to_seconds(column: pl.Series, unit: TimeUnit, place: Place, notify: Notify) -> FloatArray:
    """Return the Unix seconds of every row; raise an `InputError` for the first invalid row."""
    check_time_unit(unit)
    if column.dtype == pl.Date:
        column = column.cast(pl.Datetime("us"))
    if column.dtype == pl.Datetime:
        _refuse_empty(column, place)
        if column.dtype.time_zone is None:  # type: ignore[attr-defined]
            notify(_UTC_NOTICE)
        resolution = column.dtype.time_unit  # type: ignore[attr-defined]
        return _scaled(column.dt.epoch(resolution), _PER_SECOND[resolution])
    if column.dtype == pl.String:
        column = column.str.strip_chars()
        _refuse_empty(column.replace("", None), place)
        numbers = column.cast(pl.Float64, strict=False)
        if numbers.null_count():
            return _from_text(column, numbers, place, notify)
        integers = column.cast(pl.Int64, strict=False)
        numbers = numbers if integers.null_count() else integers
    elif column.dtype.is_numeric():
        _refuse_empty(column, place)
        # NumPy has neither decimals nor integers of 128 bits.
        is_wide = column.dtype.is_decimal() or column.dtype == pl.Int128
        numbers = column.cast(pl.Float64) if is_wide else column
    else:
        raise InputError(f"{place(0)}: type {column.dtype} cannot be read as a time; {_REMEDY}")
    return _from_numbers(numbers, column, unit, place, notify)


def parse_time(text: str) -> float:
    """Return the Unix seconds of a text with a number of seconds or a date.

    >>> parse_time("1970-01-02T00:00Z"), parse_time("17.5")
    (86400.0, 17.5)
    """
    return float(to_seconds(pl.Series([text]), "s", lambda _: f"time {text!r}", lambda _: None)[0])


def are_dates(text: pl.Series) -> pl.Series:
    """Return whether each text has the form of a date that `to_seconds` reads."""
    return text.str.contains(_ISO_8601)


def are_unix_times(numbers: pl.Series) -> bool:
    """Return whether all numbers are plausible Unix times of the same unit.

    >>> are_unix_times(pl.Series([1_717_156_800_000])), are_unix_times(pl.Series([17]))
    (True, False)
    """
    first, last = _PLAUSIBLE_SECONDS
    return len(numbers) > 0 and any(
        bool(numbers.is_between(first * factor, last * factor).all())
        for factor in _PER_SECOND.values()
    )


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
        raise InputError(f"{place(row)}: time {column[row]} is not finite; {_REMEDY}")
    if unit == "s" and 2 * (numbers.abs() > _LARGEST_PLAUSIBLE_SECONDS).sum() > len(numbers):
        notify(
            "times are too large for seconds; if they have another unit, pass --time-unit ms "
            "(or us, ns)"
        )
    return _scaled(numbers, _PER_SECOND[unit])


def _scaled(numbers: pl.Series, per_second: int) -> FloatArray:
    """Convert to seconds; divide integers as integers, because float64 cannot hold nanoseconds."""
    values = numbers.to_numpy()
    if not numbers.dtype.is_integer():
        return np.asarray(values / per_second, dtype=np.float64)
    return np.asarray(values // per_second + values % per_second / per_second, dtype=np.float64)


def _from_text(column: pl.Series, numbers: pl.Series, place: Place, notify: Notify) -> FloatArray:
    parts = column.str.extract_groups(_ISO_8601).struct.unnest()
    is_date, is_number = parts["date"].is_not_null(), numbers.is_not_null()
    if not (is_date | is_number).all():
        row = int((~(is_date | is_number)).arg_max() or 0)
        raise InputError(f"{place(row)}: cannot read {column[row]!r} as a time; {_REMEDY}")
    if is_number.any():
        row = int((is_date != is_date[0]).arg_max() or 0)
        raise InputError(
            f"{place(row)}: {column[row]!r} has another format than {column[0]!r} in row 1; "
            "write all times as numbers or all as dates"
        )
    has_zone = parts["zone"].is_not_null()
    if has_zone.any() and not has_zone.all():
        row = int((has_zone != has_zone[0]).arg_max() or 0)
        raise InputError(
            f"{place(row)}: of {column[row]!r} and {column[0]!r} in row 1, only one has a time "
            "zone; give a zone to all times or to none"
        )
    if not has_zone.any():
        notify(_UTC_NOTICE)
    seconds = _full_seconds(parts)
    if seconds.null_count():
        row = int(seconds.is_null().arg_max() or 0)
        raise InputError(
            f"{place(row)}: {column[row]!r} is not an existing date and time; correct it"
        )
    fraction = parts["fraction"].str.replace(",", ".").cast(pl.Float64).fill_null(0.0)
    return np.asarray((seconds - _zone_offset(parts["zone"])).to_numpy() + fraction.to_numpy())


def _full_seconds(parts: pl.DataFrame) -> pl.Series:
    """Return the seconds without their fraction and without the zone offset."""
    text = pl.concat_str(
        pl.col("date"),
        pl.lit(" "),
        pl.col("clock").fill_null("00:00"),
        pl.lit(":"),
        pl.col("second").fill_null("00"),
    )
    datetimes = parts.select(text.str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False)).to_series()
    return datetimes.dt.epoch("s")


def _zone_offset(zone: pl.Series) -> pl.Series:
    """Return the offset from UTC in seconds, positive to the east; 0 for Z and for no zone."""
    digits = zone.str.extract_groups(r"^([+-]\d{2}):?(\d{2})?$").struct.unnest()
    hours, minutes = (digits.to_series(group).cast(pl.Int64).fill_null(0) for group in (0, 1))
    is_west = zone.str.starts_with("-").fill_null(value=False)
    return hours * 3600 + minutes * 60 * pl.Series(np.where(is_west, -1, 1))
