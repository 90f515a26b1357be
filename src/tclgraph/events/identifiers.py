"""Outside keys (text or integers) and the dense ids that stand for them, both ways.

Ids count from 0 in order of first appearance, so reading a log again, or appending to it, never
renumbers a node. Keys need not be contiguous, sorted or positive.
"""

from collections.abc import Callable, Iterable

import numpy as np
import polars as pl

from tclgraph.arrays import IntArray
from tclgraph.errors import InputError

Key = str | int

# Decimal points or exponents: what "17" turns into when a tool reads a key column as numbers.
_LOOKS_LIKE_FLOAT = r"^[+-]?(\d+\.\d*|\.\d+|\d+[eE][+-]?\d+|\d+\.\d*[eE][+-]?\d+)$"


class Identifiers:
    """The keys of one id space; position is the dense id."""

    def __init__(self, keys: pl.Series) -> None:
        self.keys = keys
        self._id_of: dict[Key, int] = {}

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def are_integers(self) -> bool:
        return self.keys.dtype == pl.Int64

    def key(self, id_: int) -> Key:
        key: Key = self.keys[int(id_)]
        return key

    def id(self, key: Key) -> int:
        """The dense id of a key; where keys are integers their text ("17") is taken too."""
        if not self._id_of:
            self._id_of = {known: id_ for id_, known in enumerate(self.keys.to_list())}
        wanted = self._in_key_type(key)
        if wanted not in self._id_of:
            some = ", ".join(repr(one) for one in self.keys.head(3))
            raise InputError(f"unknown key {key!r}; the log has {len(self):,} others, like {some}")
        return self._id_of[wanted]

    def _in_key_type(self, key: Key) -> Key:
        if not self.are_integers:
            return str(key)
        try:
            return int(key)
        except ValueError:
            return key

    def ids(self, keys: Iterable[Key]) -> IntArray:
        return np.array([self.id(key) for key in keys], dtype=np.int64)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identifiers) and self.keys.equals(other.keys)

    __hash__ = None  # type: ignore[assignment]  # compared by content, and holds a cache


def number(values: pl.Series) -> tuple[pl.Series, IntArray]:
    """Distinct values in order of first appearance, and every value's position among them.

    >>> distinct, position = number(pl.Series(["b", "a", "b"]))
    >>> distinct.to_list(), position.tolist()
    (['b', 'a'], [0, 1, 0])
    """
    distinct = values.unique(maintain_order=True)
    if len(distinct) == 0:
        return distinct, np.empty(0, dtype=np.int64)
    position = values.replace_strict(distinct, pl.Series(np.arange(len(distinct))))
    return distinct, position.to_numpy().astype(np.int64)


def clean_keys(column: pl.Series, what: str) -> pl.Series:
    """A key column as Int64 where every key is a plain whole number, else as text.

    `what` names the column in the error for a type that cannot be a key.

    One rule for every source, so that text and binary files of one log give the same keys:
    white space around a key is no part of it, and "17" is the integer 17 while "017" stays text.
    """
    if not (column.dtype.is_integer() or column.dtype in (pl.String, pl.Categorical, pl.Enum)):
        raise InputError(
            f"{what} has type {column.dtype}, and a key is an integer or text; "
            "convert the column or name another one"
        )
    if column.dtype.is_integer():
        try:
            return column.cast(pl.Int64)
        except pl.exceptions.PolarsError:  # beyond 64 bits signed
            return column.cast(pl.String)
    text = column.cast(pl.String).str.strip_chars()
    whole = text.cast(pl.Int64, strict=False)
    if (whole.cast(pl.String) == text).all(ignore_nulls=False):
        return whole
    return text


def check_keys(keys: pl.Series, place: Callable[[int], str]) -> None:
    """Refuse empty keys, and keys that most likely are one node written in two ways.

    Where all keys are numbers, "17" in one row and "17.0" in another come from a tool that read
    the column as floats somewhere; where other text stands among them, they are just text.
    """
    is_empty = keys.is_null()
    if keys.dtype == pl.String:
        is_empty |= keys == ""
    if is_empty.any():
        row = int(is_empty.arg_max() or 0)
        raise InputError(f"{place(row)}: the key is empty; fill it in or drop the row")
    if keys.dtype != pl.String:
        return
    is_float = keys.str.contains(_LOOKS_LIKE_FLOAT)
    is_whole = keys.str.contains(r"^[+-]?\d+$")
    if (is_float | is_whole).all() and is_float.any() and is_whole.any():
        row = int((is_float != is_float[0]).arg_max() or 0)
        raise InputError(
            f"{place(row)}: key {keys[row]!r} and key {keys[0]!r} in row 1 look like a float and "
            "an integer; write all keys one way"
        )
