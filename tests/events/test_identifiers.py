import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tclgraph.errors import InputError
from tclgraph.events.identifiers import Identifiers, check_keys, clean_keys, number


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
def test_keys_become_integers_only_if_all_are_plain_integers(
    keys: list[str], expected: list[object]
) -> None:
    assert clean_keys(pl.Series(keys), "source").to_list() == expected


def test_all_integer_types_become_int64() -> None:
    for dtype in (pl.Int8, pl.UInt32, pl.Int64):
        assert clean_keys(pl.Series([1, 2], dtype=dtype), "source").dtype == pl.Int64
    huge = pl.Series([2**63], dtype=pl.UInt64)
    assert clean_keys(huge, "source").to_list() == [str(2**63)]


@pytest.mark.parametrize("values", [[1.5], [True], [b"x"], [[1]]])
def test_other_types_are_refused_as_keys(values: list[object]) -> None:
    with pytest.raises(InputError, match="but a key must be an integer or text"):
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
def test_errors_about_keys_name_the_row(keys: list[str | None], place: str) -> None:
    with pytest.raises(InputError, match=place):
        check_keys(pl.Series(keys), lambda row: f"row {row}")


@pytest.mark.parametrize("keys", [["1.0", "2.5"], ["1.0", "2", "version"], ["a", "b"], ["1", "2"]])
def test_keys_of_the_same_form_are_accepted(keys: list[str]) -> None:
    check_keys(pl.Series(keys), str)


def test_seeds_depend_on_key_and_salt_alone() -> None:
    seeds = Identifiers(pl.Series(["a", "b", "c"])).seeds(0, "1")
    assert len(set(seeds.tolist())) == 3
    assert Identifiers(pl.Series(["x", "c", "b"])).seeds(1, "1").tolist() == seeds[[2, 1]].tolist()
    assert not set(Identifiers(pl.Series(["a", "b", "c"])).seeds(0, "2")) & set(seeds)
    # An integer and its text are the same key.
    numbers = Identifiers(pl.Series([17])), Identifiers(pl.Series(["17"]))
    assert numbers[0].seeds(0, "").tolist() == numbers[1].seeds(0, "").tolist()
    assert Identifiers(pl.Series(["a"])).seeds(1, "").tolist() == []
