"""Conversion between the keys of a log (text or integers) and dense ids.

Ids count from 0 in order of first appearance, so reading a log again or appending to it does not
renumber a node. Keys need not be contiguous, sorted or positive.
"""

from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tclgraph.arrays import IntArray
from tclgraph.errors import InputError

Key = str | int

# A decimal point or an exponent: a tool that reads a key column as numbers turns "17" into "17.0".
_LOOKS_LIKE_FLOAT = r"^[+-]?(\d+\.\d*|\.\d+|\d+[eE][+-]?\d+|\d+\.\d*[eE][+-]?\d+)$"


class Identifiers:
    """The keys of an id space. The position of a key is its dense id."""

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
        """Return the dense id of a key. If keys are integers, their text ("17") is accepted too."""
        wanted = self._in_key_type(key)
        if wanted not in self._ids_by_key:
            examples = ", ".join(map(repr, self.keys.head(3)))
            raise InputError(
                f"unknown key {key!r}; give one of the {len(self):,} keys in the log, "
                f"like {examples}"
            )
        return self._ids_by_key[wanted]

    @property
    def _ids_by_key(self) -> dict[Key, int]:
        if not self._id_of:
            self._id_of = {key: id_ for id_, key in enumerate(self.keys.to_list())}
        return self._id_of

    def _in_key_type(self, key: Key) -> Key:
        if not self.are_integers:
            return str(key)
        try:
            return int(key)
        except ValueError:
            return key

    def ids(self, keys: Iterable[Key]) -> IntArray:
        return np.array([self.id(key) for key in keys], dtype=np.int64)

    def has(self, key: Key) -> bool:
        """Return whether this is a key of the id space."""
        return self._in_key_type(key) in self._ids_by_key

    def with_keys(self, keys: pl.Series) -> "Identifiers":
        """Return an id space with further keys, which get the next ids in their order.

        Keys that are there already keep their ids; without a new key, this object is returned.
        """
        keys = self._column_in_key_type(keys)
        new = [key for key in keys.to_list() if key not in self._ids_by_key]
        if not new:
            return self
        distinct = pl.Series(list(dict.fromkeys(new)), dtype=self.keys.dtype)
        return Identifiers(pl.concat([self.keys, distinct]))

    def _column_in_key_type(self, keys: pl.Series) -> pl.Series:
        """Return keys as integers or as text, like the keys of the id space."""
        if keys.dtype == self.keys.dtype or not self.are_integers:
            return keys.cast(self.keys.dtype)
        integers = keys.cast(pl.Int64, strict=False)
        is_text = ~(integers.cast(pl.String) == keys).fill_null(value=False)
        if is_text.any():
            raise InputError(
                f"the key {keys[int(is_text.arg_max() or 0)]!r} is text, but those of the log that "
                "the model was fitted on are integers; give an integer, or fit on a log with it"
            )
        return integers

    def first(self, count: int) -> "Identifiers":
        """Return the first keys with their ids."""
        return self if count == len(self) else Identifiers(self.keys.head(count))

    def seeds(self, start: int, salt: str) -> NDArray[np.uint64]:
        """Return a random number for each key from id `start` on, a function of key and salt."""
        digests = (
            blake2b(f"{salt} {key}".encode(), digest_size=8).digest()
            for key in self.keys[start:].to_list()
        )
        return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identifiers) and self.keys.equals(other.keys)

    __hash__ = None  # type: ignore[assignment]  # compares by content and holds a cache


def number(values: pl.Series) -> tuple[pl.Series, IntArray]:
    """Return the distinct values in order of first appearance, and each value's position in them.

    >>> distinct, position = number(pl.Series(["b", "a", "b"]))
    >>> distinct.to_list(), position.tolist()
    (['b', 'a'], [0, 1, 0])
    """
    distinct = values.unique(maintain_order=True)
    if len(distinct) == 0:
        return distinct, np.empty(0, dtype=np.int64)
    position = values.replace_strict(distinct, pl.Series(np.arange(len(distinct))))
    return distinct, position.to_numpy().astype(np.int64)


def key_column(keys: Sequence[Key]) -> pl.Series:
    """Return keys that a user gave as a column of integers or text; empty ones are refused.

    >>> key_column(["17", 4]).to_list(), key_column(["17", "ann"]).to_list()
    ([17, 4], ['17', 'ann'])
    """
    column = clean_keys(pl.Series([str(key) for key in keys], dtype=pl.String), "key")
    check_keys(column, lambda position: f"key {position + 1}")
    return column


def clean_keys(column: pl.Series, column_name: str) -> pl.Series:
    """Return a key column as Int64 if every key is a plain integer, and as text otherwise.

    The same rule holds for text and binary files, so that both give the same keys: white space
    around a key is removed, "17" becomes the integer 17, and "017" stays text.

    `column_name` names the column in the error for a type that cannot be a key.
    """
    if not (column.dtype.is_integer() or column.dtype in (pl.String, pl.Categorical, pl.Enum)):
        raise InputError(
            f"{column_name} has type {column.dtype}, but a key must be an integer or text; "
            "convert the column or name another one"
        )
    if column.dtype.is_integer():
        try:
            return column.cast(pl.Int64)
        except pl.exceptions.PolarsError:  # an integer exceeds 64 bits
            return column.cast(pl.String)
    text = column.cast(pl.String).str.strip_chars()
    integers = text.cast(pl.Int64, strict=False)
    if (integers.cast(pl.String) == text).all(ignore_nulls=False):
        return integers
    return text


def check_keys(keys: pl.Series, place: Callable[[int], str]) -> None:
    """Refuse empty keys, and keys that most likely write the same node in two ways.

    If all keys look like numbers, "17" in one row and "17.0" in another suggest that a tool read
    part of the column as floats. If the column has other text too, such keys are accepted.
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
    is_integer = keys.str.contains(r"^[+-]?\d+$")
    if (is_float | is_integer).all() and is_float.any() and is_integer.any():
        row = int((is_float != is_float[0]).arg_max() or 0)
        raise InputError(
            f"{place(row)}: key {keys[row]!r} and key {keys[0]!r} in row 1 look like a float and "
            "an integer; write all keys in the same form"
        )
