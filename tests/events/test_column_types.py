"""Guessing source, target and time from the types and values of columns with odd names."""

import os
import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tclgraph.errors import InputError
from tclgraph.events.catalog import load
from tclgraph.events.columns import Columns, choose
from tclgraph.events.readers import read_file
from tests.streams import refuse_notices, write

BUYERS = {"buyer": ["ann", "bob", "ann", "cat", "bob"]}
PRODUCTS = {"thing": ["tea", "jam", "jam", "tea", "jam"]}
DATES = ["2024-05-01", "2024-05-01", "2024-05-02", "2024-05-03", "2024-05-09"]
UNSORTED_DATES = ["2024-05-07", "2024-05-02", "2024-05-09", "2024-05-03", "2024-05-09"]
UNIX = [1_700_000_000, 1_700_000_036, 1_700_000_036, 1_700_000_077, 1_700_000_090]
UNSORTED_UNIX = [1_700_000_090, 1_700_000_036, 1_700_000_077, 1_700_000_000, 1_700_000_036]
SECONDS = [0.0, 36.0, 36.5, 77.0, 90.0]
PRICES = [3, 4, 3, 4, 3]
LONG = range(40)


def guess(table: dict[str, Any], **named: str) -> tuple[str, str, str]:
    """Return source, target and time, which must be the same if all values are text."""
    frame = pl.DataFrame(table)
    answer = guess_in(frame, Columns(**named))
    assert guess_in(frame.cast(pl.String), Columns(**named)) == answer
    return answer


def guess_in(frame: pl.DataFrame, columns: Columns) -> tuple[str, str, str]:
    chosen = choose(
        columns,
        frame.columns,
        has_header=True,
        origin="log.csv",
        notify=lambda _: None,
        read=lambda names: frame.select(names).get_columns(),
    )
    return chosen.source, chosen.target, chosen.time


USUAL = ("buyer", "thing", "at")
CLEAR: dict[str, tuple[dict[str, Any], tuple[str, str, str]]] = {
    "dates": ({**BUYERS, **PRODUCTS, "at": UNSORTED_DATES, "price": PRICES}, USUAL),
    "date columns": (
        {**BUYERS, **PRODUCTS, "at": pl.Series(DATES).str.to_date(), "price": PRICES},
        USUAL,
    ),
    "time first": ({"at": DATES, **BUYERS, **PRODUCTS, "price": PRICES}, USUAL),
    "time in the middle": ({**BUYERS, "at": DATES, **PRODUCTS, "price": PRICES}, USUAL),
    "Unix seconds": ({**BUYERS, **PRODUCTS, "price": PRICES, "at": UNSORTED_UNIX}, USUAL),
    "Unix milliseconds": (
        {**BUYERS, **PRODUCTS, "at": [1000 * time + 7 for time in UNSORTED_UNIX]},
        USUAL,
    ),
    "two dates, of which the sorted is the time": (
        {**BUYERS, **PRODUCTS, "shipped": UNSORTED_DATES, "at": DATES},
        USUAL,
    ),
    "a birthday and a sorted Unix time": (
        {"born": UNSORTED_DATES, **BUYERS, **PRODUCTS, "at": UNIX},
        USUAL,
    ),
    "numbers that rise": ({**BUYERS, **PRODUCTS, "at": SECONDS, "price": PRICES}, USUAL),
    "numbers that rise among numbers": (
        {"buyer": [0, 1, 0, 2, 1], "thing": [7, 8, 8, 7, 8], "at": [0, 36, 36, 40, 77]},
        USUAL,
    ),
    "small integers": (
        {
            "buyer": pl.Series([0, 1, 0, 2, 1], dtype=pl.UInt8),
            "thing": pl.Series([7, -8, -8, 7, 127], dtype=pl.Int8),
            "at": pl.Series([1, 36, 36, 40, 77], dtype=pl.UInt32),
        },
        USUAL,
    ),
    "steps": ({**BUYERS, **PRODUCTS, "at": [1, 2, 3, 4, 5], "price": PRICES}, USUAL),
    "row numbers": ({"": LONG[:5], **BUYERS, **PRODUCTS, "at": SECONDS}, USUAL),
    "grouped by source": (
        {"buyer": [1, 1, 1, 2, 2], "thing": [7, 8, 9, 7, 8], "stars": PRICES, "at": UNSORTED_UNIX},
        USUAL,
    ),
    "grouped by many sources": (
        {
            "buyer": [row // 2 for row in LONG],
            "thing": [row % 7 for row in LONG],
            "stars": [row % 3 for row in LONG],
            "at": [1_700_000_000 + 61 * row % 999 for row in LONG],
        },
        USUAL,
    ),
    "a source that rises by chance": (
        {"buyer": list("aabbc"), **PRODUCTS, "city": list("qrqrq"), "at": DATES},
        USUAL,
    ),
    "a second Unix time": (
        {"signed_up": UNSORTED_UNIX, **BUYERS, **PRODUCTS, "at": UNIX},
        USUAL,
    ),
    "order numbers": (
        {
            "order": [500 + row // 2 for row in LONG],
            "buyer": [row // 2 % 5 for row in LONG],
            "thing": [row % 7 for row in LONG],
            "at": [1_700_000_000 + 60 * (row // 2) for row in LONG],
        },
        USUAL,
    ),
    "a few rows in the wrong order": (
        {
            "buyer": [row % 5 for row in range(500)],
            "thing": [row % 7 for row in range(500)],
            "at": [3 * row - 10 * (row % 200 == 50) for row in range(500)],
        },
        USUAL,
    ),
    "a column with gaps": (
        {"note": ["x", None, "x", "", "y"], **BUYERS, **PRODUCTS, "at": DATES},
        USUAL,
    ),
    "a constant column": ({"country": ["de"] * 5, **BUYERS, **PRODUCTS, "at": DATES}, USUAL),
    "distinct targets": ({**BUYERS, "thing": list("vwxyz"), "at": DATES}, USUAL),
    "codes, most of them numbers": (
        {**BUYERS, "thing": ["71053", "8440B", "71053", "22752", "8440B"], "at": DATES},
        USUAL,
    ),
    "categories": (
        {**BUYERS, "thing": pl.Series(list("xyxyz"), dtype=pl.Categorical), "at": DATES},
        USUAL,
    ),
}


@pytest.mark.parametrize("case", CLEAR)
def test_values_decide_the_roles_that_names_do_not(case: str) -> None:
    table, wanted = CLEAR[case]
    assert guess(table) == wanted


def test_names_come_before_values() -> None:
    table = {"city": list("qrqrq"), **BUYERS, **PRODUCTS, "at": DATES, "born": UNSORTED_DATES}
    assert guess(table) == ("city", "buyer", "at")
    assert guess(table, source="buyer") == ("buyer", "city", "at")
    assert guess(table, source="buyer", target="thing") == ("buyer", "thing", "at")
    assert guess(table, time="born") == ("city", "buyer", "born")
    assert guess({**table, "User": list("mnmnm")}) == ("User", "city", "at")
    assert guess({**table, "date": UNSORTED_DATES}) == ("city", "buyer", "date")


def test_columns_that_names_give_another_meaning_are_no_keys() -> None:
    numbers = dict.fromkeys(("label", "weight", "feature_0"), PRICES)
    assert guess({**numbers, **BUYERS, **PRODUCTS, "at": DATES}) == USUAL


UNCLEAR: dict[str, tuple[dict[str, Any], str]] = {
    "two sorted dates": (
        {**BUYERS, **PRODUCTS, "at": DATES, "paid": DATES},
        "cannot guess the time column among at, paid; name it with --time",
    ),
    "two unsorted times": (
        {**BUYERS, **PRODUCTS, "at": UNSORTED_DATES, "paid": UNSORTED_UNIX},
        "cannot guess the time column among at, paid; name it with --time",
    ),
    "two sorted numbers": (
        {**BUYERS, **PRODUCTS, "at": SECONDS, "price": [1.5, 2.5, 3.5, 5.0, 7.5]},
        "cannot guess the time column among at, price; name it with --time",
    ),
    "grouped by source, with times since its first event": (
        {"buyer": [1, 1, 1, 2, 2], **PRODUCTS, "at": [0, 36, 77, 0, 5]},
        "cannot guess the time column among buyer, at; name it with --time",
    ),
    "no time": (
        {"row": LONG[:5], **BUYERS, **PRODUCTS, "price": PRICES},
        "cannot guess the time column among row, buyer, thing, price; name it with --time",
    ),
    "one key": (
        {**BUYERS, "at": DATES, "price": [3.5, 4.0, 3.5, 4.0, 3.5]},
        "cannot guess the source and target columns among buyer; "
        'name them with --source and --target (in Python: columns={"source": …, "target": …})',
    ),
    "distinct keys": (
        {**BUYERS, "thing": list("vwxyz"), "place": list("klmno"), "at": DATES},
        "cannot guess the source and target columns among buyer, thing, place; name them with",
    ),
    "no column": ({}, "cannot guess the time column among ; name it with --time"),
}


@pytest.mark.parametrize("case", UNCLEAR)
def test_columns_that_are_equally_likely_are_named(case: str) -> None:
    table, message = UNCLEAR[case]
    with pytest.raises(InputError) as caught:
        guess(table)
    assert message in str(caught.value)


SHOP = (
    "buyer,product,bought_at,price\n"
    "ann,tea,2024-05-01T10:00Z,3.50\nbob,jam,2024-05-01T11:30Z,4\nann,jam,2024-05-02T09:00Z,4\n"
)
SHOP_NOTICE = (
    "buyer is the source, product is the target, bought_at is the time; "
    "pass --source and --time to change what is guessed from the values"
)


def test_the_guess_from_values_gives_a_notice_with_the_flags(tmp_path: Path) -> None:
    path = write(tmp_path, "shop.csv", SHOP)
    named = read_file(path, columns={"source": "buyer", "target": "product", "time": "bought_at"})
    notices: list[str] = []
    assert read_file(path, notify=notices.append).equals(named)
    frame = pl.read_csv(path, try_parse_dates=True)
    frame.write_parquet(tmp_path / "shop.parquet")
    assert read_file(tmp_path / "shop.parquet", notify=notices.append).equals(named)
    for table in (frame, frame.to_dict(as_series=False), pd.read_csv(path)):
        assert load(table, notify=notices.append).equals(named), type(table)
    origins = ["shop.csv", "shop.parquet", *["data frame"] * 3]
    assert notices == [f"{origin}: {SHOP_NOTICE}" for origin in origins]
    notices.clear()
    assert read_file(path, columns={"source": "buyer"}, notify=notices.append).equals(named)
    assert notices == [
        "shop.csv: product is the target, bought_at is the time; "
        "pass --time to change what is guessed from the values"
    ]


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(SHOP,))
    writer.start()
    assert len(read_file(pipe, notify=lambda _: None)) == 3
    writer.join()


def test_a_bad_row_is_named_as_if_the_columns_were(tmp_path: Path) -> None:
    for row, message in (
        ("cat,jam,noon,4", "row 4 (line 5), column 'bought_at': cannot read 'noon' as a time"),
        ("cat,,2024-05-03T09:00Z,4", "row 4 (line 5), column 'product': the key is empty"),
        ("cat,jam,2024-05-03T09:00Z", "row 4 (line 5): 3 fields instead of 4"),
    ):
        path = write(tmp_path, "shop.csv", SHOP + row + "\n")
        with pytest.raises(InputError) as caught:
            read_file(path, notify=lambda _: None)
        assert message in str(caught.value)
    with pytest.raises(InputError, match="the file has a header but no rows"):
        read_file(write(tmp_path, "shop.csv", "buyer,product,bought_at,price\n"))


def test_columns_that_polars_cannot_hold_do_not_stop_the_guess() -> None:
    frame = pd.DataFrame({**BUYERS, "thing": PRODUCTS["thing"], "at": pd.to_datetime(DATES)})
    wanted = load(frame, columns={"source": "buyer", "target": "thing", "time": "at"})
    for odd in ([1, "x", 2.5, None, "y"], [{1}, {2}, {1}, {2}, {3}], [[1], "x", [2], 3, None]):
        frame.insert(0, "odd", pd.Series(odd, dtype=object))
        assert load(frame, notify=lambda _: None).equals(wanted), odd
        frame = frame.drop(columns="odd")


def test_labels_of_a_data_frame_need_not_be_text() -> None:
    frame = pd.DataFrame({0: BUYERS["buyer"], 1: PRODUCTS["thing"], 2: UNIX})
    wanted = load({"source": frame[0], "target": frame[1], "time": UNIX}, notify=refuse_notices)
    assert load(frame, notify=lambda _: None).equals(wanted)
    columns = {"source": "0", "target": "1", "time": "2"}
    assert load(frame, columns=columns, notify=refuse_notices).equals(wanted)


events = st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"), st.integers(0, 10**8))


@given(st.lists(events, min_size=1, max_size=8), st.permutations(["at", "who", "what", "price"]))
def test_odd_names_in_any_order_are_read_like_common_names(
    rows: list[tuple[str, str, int]], order: list[str]
) -> None:
    table = {
        "who": [row[0] for row in rows],
        "what": [row[1] for row in rows],
        "at": [1_600_000_000 + row[2] for row in rows],
        "price": [f"{number}.5" for number, _ in enumerate(rows)],
    }
    source, target = (name for name in order if name in ("who", "what"))
    wanted = load({"source": table[source], "target": table[target], "time": table["at"]})
    with TemporaryDirectory() as folder:
        path = Path(folder) / "log.csv"
        pl.DataFrame({name: table[name] for name in order}).write_csv(path)
        assert read_file(path, notify=lambda _: None).equals(wanted)
