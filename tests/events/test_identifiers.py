import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tclgraph.errors import InputError
from tclgraph.events.identifiers import check_keys, clean_keys, number


@given(st.lists(st.text(max_size=3), max_size=30))
def test_numbering_agrees_with_a_dictionary(values: list[str]) -> None:
    seen: dict[str, int] = {}
    expected = [seen.setdefault(value, len(seen)) for value in values]
    distinct, position = number(pl.Series(values, dtype=pl.String))
    assert position.tolist() == expected
    assert distinct.to_list() == list(seen)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (["1", "2"], [1, 2]),
        ([" 1 ", "-2"], [1, -2]),
        (["1", "x"], ["1", "x"]),
        (["01", "1"], ["01", "1"]),
        (["+1", "1"], ["+1", "1"]),
        (["9223372036854775808", "1"], ["9223372036854775808", "1"]),
        (["#tag", " a b "], ["#tag", "a b"]),
    ],
)
def test_whole_numbers_become_integers_and_all_else_stays_text(
    keys: list[str], expected: list[object]
) -> None:
    assert clean_keys(pl.Series(keys), "source").to_list() == expected


def test_every_integer_type_is_one_type() -> None:
    for dtype in (pl.Int8, pl.UInt32, pl.Int64):
        assert clean_keys(pl.Series([1, 2], dtype=dtype), "source").dtype == pl.Int64
    huge = pl.Series([2**63], dtype=pl.UInt64)
    assert clean_keys(huge, "source").to_list() == [str(2**63)]


@pytest.mark.parametrize("values", [[1.5], [True], [b"x"], [[1]]])
def test_other_types_are_no_keys(values: list[object]) -> None:
    with pytest.raises(InputError, match="and a key is an integer or text"):
        clean_keys(pl.Series(values), "source")


@pytest.mark.parametrize(
    ("keys", "place"),
    [
        (["1", "2", "3.0"], "row 2: key '3.0' and key '1'"),
        (["1.0", "2"], "row 1: key '2' and key '1.0'"),
        (["1e5", "2"], "row 1: key '2'"),
        (["a", ""], "row 1: the key is empty"),
        (["a", None], "row 1: the key is empty"),
    ],
)
def test_bad_keys_name_their_row(keys: list[str | None], place: str) -> None:
    with pytest.raises(InputError, match=place):
        check_keys(pl.Series(keys), lambda row: f"row {row}")


@pytest.mark.parametrize("keys", [["1.0", "2.5"], ["1.0", "2", "version"], ["a", "b"], ["1", "2"]])
def test_keys_of_one_look_are_welcome(keys: list[str]) -> None:
    check_keys(pl.Series(keys), str)
