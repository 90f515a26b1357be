from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tclgraph.errors import InputError
from tclgraph.events.times import TimeUnit, to_seconds


def seconds(
    values: list[object] | pl.Series, unit: TimeUnit = "s", notices: list[str] | None = None
) -> list[float]:
    column = values if isinstance(values, pl.Series) else pl.Series(values)
    notify = (notices if notices is not None else []).append
    return list(to_seconds(column, unit, lambda row: f"row {row + 1}", notify))


def test_numbers_are_seconds() -> None:
    assert seconds([1, 2]) == [1.0, 2.0]
    assert seconds(["1082040961", " 1e3", "-0.5"]) == [1082040961.0, 1000.0, -0.5]


@pytest.mark.parametrize(("unit", "factor"), [("s", 1), ("ms", 1e3), ("us", 1e6), ("ns", 1e9)])
def test_other_units(unit: TimeUnit, factor: float) -> None:
    assert seconds([1_700_000_000 * factor], unit) == [1_700_000_000]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-02", 86_400),
        ("1970-01-01T00:01", 60),
        ("1970-01-01 00:00:01.25", 1.25),
        ("1970-01-01T00:00:00,5Z", 0.5),
        ("1970-01-01T02:00:00+02:00", 0),
        ("1970-01-01T02:00:00 +0200", 0),
        ("1969-12-31T18:30:00-05:30", 0),
        ("1970-01-01T01:00:00+01", 0),
        ("1960-01-01T00:00:00.5Z", -315_619_199.5),
    ],
)
def test_iso_8601(text: str, expected: float) -> None:
    assert seconds([text]) == [expected]


@given(
    update=st.datetimes(min_value=datetime(1900, 1, 1), max_value=datetime(2200, 1, 1)),
    minutes_east=st.integers(-14 * 60, 14 * 60),
)
def test_iso_8601_agrees_with_python(update: datetime, minutes_east: int) -> None:
    zoned = update.replace(tzinfo=timezone(timedelta(minutes=minutes_east)))
    # Whole seconds and the fraction apart, as Python's timestamp() rounds once more.
    whole = zoned.replace(microsecond=0).timestamp()
    assert seconds([zoned.isoformat()]) == [whole + update.microsecond / 1e6]


def test_date_columns_carry_their_own_unit() -> None:
    update = datetime(2024, 5, 31, 12, 0, 0, 250_000)
    notices: list[str] = []
    for resolution in ("ms", "us", "ns"):
        column = pl.Series([update]).cast(pl.Datetime(resolution))
        assert seconds(column, notices=notices) == [update.replace(tzinfo=UTC).timestamp()]
    assert notices == ["times have no zone and are taken as UTC"] * 3
    zoned = pl.Series([update]).dt.replace_time_zone("Europe/Paris")
    assert seconds(zoned) == [update.replace(tzinfo=UTC).timestamp() - 2 * 3600]
    assert seconds(pl.Series([update.date()])) == [datetime(2024, 5, 31, tzinfo=UTC).timestamp()]


def test_a_missing_zone_and_suspicious_magnitudes_are_remarked_on() -> None:
    notices: list[str] = []
    seconds(["2024-01-01"], notices=notices)
    seconds([1_700_000_000_000], notices=notices)
    assert "UTC" in notices[0]
    assert "--time-unit ms" in notices[1]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["1", "soon"], r"row 2: cannot read 'soon' as a time"),
        (["1", "nan"], r"row 2: time nan is not finite"),
        (["1", "-inf"], r"row 2: time -inf is not finite"),
        ([1.0, float("nan")], r"row 2: time nan is not finite"),
        (["1", ""], r"row 2: the time is empty"),
        ([1.0, None], r"row 2: the time is empty"),
        (["1", "2024-01-01"], r"row 2: '2024-01-01' is written in another way than '1'"),
        (["2024-01-01", "2024-01-01", "7"], r"row 3: '7' is written in another way"),
        (["2024-01-01T00:00Z", "2024-01-01T00:00"], r"row 2: .* only one has a time zone"),
        (["2024-02-29", "2023-02-29"], r"row 2: '2023-02-29' is not a date that exists"),
        (["2024-01-01T25:00"], r"row 1: '2024-01-01T25:00' is not a date that exists"),
        ([True], r"row 1: type Boolean cannot be read as a time"),
    ],
)
def test_bad_times_name_their_row(values: list[object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        seconds(values)


def test_an_unknown_unit_is_refused() -> None:
    with pytest.raises(InputError, match="unknown time unit 'mss'; did you mean \"ms\""):
        to_seconds(pl.Series([1]), "mss", str, print)  # type: ignore[arg-type]


def test_large_integers_lose_nothing_to_a_detour() -> None:
    assert seconds(np.array([2**53 - 1], dtype=np.int64).tolist()) == [2.0**53 - 1]
