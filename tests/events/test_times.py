from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

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
    assert seconds(pl.Series([Decimal("1082040961.25"), Decimal("2.5")])) == [1082040961.25, 2.5]
    assert seconds(pl.Series([1082040961], dtype=pl.Int128)) == [1082040961.0]


@pytest.mark.parametrize(("unit", "factor"), [("s", 1), ("ms", 1e3), ("us", 1e6), ("ns", 1e9)])
def test_numbers_in_other_units_become_seconds(unit: TimeUnit, factor: float) -> None:
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
def test_iso_8601_text_becomes_seconds(text: str, expected: float) -> None:
    assert seconds([text]) == [expected]


@given(
    moment=st.datetimes(min_value=datetime(1900, 1, 1), max_value=datetime(2200, 1, 1)),
    minutes_east=st.integers(-14 * 60, 14 * 60),
)
def test_iso_8601_agrees_with_python(moment: datetime, minutes_east: int) -> None:
    zoned = moment.replace(tzinfo=timezone(timedelta(minutes=minutes_east)))
    # Add the fraction separately, because Python's timestamp() rounds once more.
    full_seconds = zoned.replace(microsecond=0).timestamp()
    assert seconds([zoned.isoformat()]) == [full_seconds + moment.microsecond / 1e6]


def test_date_columns_need_no_unit() -> None:
    moment = datetime(2024, 5, 31, 12, 0, 0, 250_000)
    notices: list[str] = []
    for resolution in ("ms", "us", "ns"):
        column = pl.Series([moment]).cast(pl.Datetime(resolution))
        assert seconds(column, notices=notices) == [moment.replace(tzinfo=UTC).timestamp()]
    assert notices == ["times have no time zone and are read as UTC"] * 3
    zoned = pl.Series([moment]).dt.replace_time_zone("Europe/Paris")
    assert seconds(zoned) == [moment.replace(tzinfo=UTC).timestamp() - 2 * 3600]
    assert seconds(pl.Series([moment.date()])) == [datetime(2024, 5, 31, tzinfo=UTC).timestamp()]


def test_a_missing_zone_and_large_numbers_give_a_notice() -> None:
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
        (["1", "2024-01-01"], r"row 2: '2024-01-01' has another format than '1'"),
        (["2024-01-01", "2024-01-01", "7"], r"row 3: '7' has another format"),
        (["2024-01-01T00:00Z", "2024-01-01T00:00"], r"row 2: of .* only one has a time zone"),
        (["2024-02-29", "2023-02-29"], r"row 2: '2023-02-29' is not an existing date"),
        (["2024-01-01T25:00"], r"row 1: '2024-01-01T25:00' is not an existing date"),
        ([True], r"row 1: type Boolean cannot be read as a time"),
    ],
)
def test_errors_about_times_name_the_row(values: list[object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        seconds(values)


def test_an_unknown_unit_is_refused() -> None:
    with pytest.raises(InputError, match="unknown time unit 'mss'; did you mean \"ms\""):
        to_seconds(pl.Series([1]), "mss", str, print)  # type: ignore[arg-type]


def test_large_integers_stay_exact() -> None:
    assert seconds(np.array([2**53 - 1], dtype=np.int64).tolist()) == [2.0**53 - 1]
