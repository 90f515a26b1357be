"""A hash table that numbers pairs of integers 0, 1, … in the order in which they are added.

The number of a pair is its *entry*. Callers keep what they know about a pair in arrays of their
own, in the order of the entries. Pairs are ordered: a caller to whom (1, 2) and (2, 1) are the same
pair sorts both before.

The table uses open addressing with linear probing and doubles when it is half full, so that adding
a pair takes constant time on average. `PairTable` is for Python. Kernels use `PairArrays` with
`empty_pairs`, `add_pairs`, `add_pair` and `find_pair`.
"""

from typing import Any, NamedTuple

import numpy as np

from tclgraph.arrays import IntArray
from tclgraph.compilation import BORROWING, INLINED, kernel

_FREE = -1
_MIN_SLOTS = 16


class PairArrays(NamedTuple):
    """The arrays of a table. A table that grows gets new arrays, so use what `add_pair` returns."""

    slots: IntArray
    """Entry in each slot, or -1 if the slot is free. The number of slots is a power of two."""
    first: IntArray
    """First integer of each entry; as long as the most entries that fit, half of the slots."""
    second: IntArray
    """Second integer of each entry."""
    size: IntArray
    """[1] Number of entries."""


class PairTable:
    """Numbers pairs in the order in which they are added.

    >>> table = PairTable()
    >>> table.add(np.array([4, 4, 9]), np.array([0, 1, 0])).tolist()
    [0, 1, 2]
    >>> table.add(np.array([4, 7]), np.array([1, 1])).tolist()
    [1, 3]
    >>> table.find(np.array([9, 0]), np.array([0, 9])).tolist()
    [2, -1]
    """

    def __init__(self) -> None:
        self.arrays: PairArrays = empty_pairs()

    def __len__(self) -> int:
        return int(self.arrays.size[0])

    @property
    def first(self) -> IntArray:
        """First integer of each entry."""
        return self.arrays.first[: len(self)]

    @property
    def second(self) -> IntArray:
        """Second integer of each entry."""
        return self.arrays.second[: len(self)]

    def add(self, first: IntArray, second: IntArray) -> IntArray:
        """Return the entry of each pair; a pair that is not in the table gets the next entry."""
        entry: IntArray
        self.arrays, entry = add_pairs(self.arrays, first, second)
        return entry

    def find(self, first: IntArray, second: IntArray) -> IntArray:
        """Return the entry of each pair, or -1 if the pair is not in the table."""
        entry: IntArray = _find_pairs(self.arrays, first, second)
        return entry


@kernel
def empty_pairs() -> Any:
    """Return the arrays of a table without entries."""
    return _sized(_MIN_SLOTS)


@kernel
def _sized(num_slots: int) -> Any:
    return PairArrays(
        np.full(num_slots, _FREE, np.int64),
        np.empty(num_slots // 2, np.int64),
        np.empty(num_slots // 2, np.int64),
        np.zeros(1, np.int64),
    )


@kernel
def add_pair(table: PairArrays, first: int, second: int) -> Any:
    """Return the table and the entry of a pair, which is added if it is not in the table."""
    slot = _slot_of(table, first, second)
    entry = table.slots[slot]
    if entry != _FREE:
        return table, entry
    entry = table.size[0]
    if entry == len(table.first):
        table = _doubled(table)
        slot = _slot_of(table, first, second)
    table.slots[slot] = entry
    table.first[entry] = first
    table.second[entry] = second
    table.size[0] = entry + 1
    return table, entry


@kernel(**BORROWING)
def find_pair(table: PairArrays, first: int, second: int) -> int:
    """Return the entry of a pair, or -1 if the pair is not in the table."""
    entry: int = table.slots[_slot_of(table, first, second)]
    return entry


@kernel
def add_pairs(table: PairArrays, first: IntArray, second: IntArray) -> Any:
    """Add pairs in order; return the table and the entry of each pair."""
    entry = np.empty(len(first), np.int64)
    for row in range(len(first)):
        table, entry[row] = add_pair(table, first[row], second[row])
    return table, entry


@kernel
def _find_pairs(table: PairArrays, first: IntArray, second: IntArray) -> IntArray:
    entry = np.empty(len(first), np.int64)
    for row in range(len(first)):
        entry[row] = find_pair(table, first[row], second[row])
    return entry


@kernel
def _doubled(table: PairArrays) -> Any:
    """Return a table with the same entries and twice as many slots."""
    larger = _sized(2 * len(table.slots))
    for entry in range(table.size[0]):
        first, second = table.first[entry], table.second[entry]
        larger.slots[_slot_of(larger, first, second)] = entry
        larger.first[entry] = first
        larger.second[entry] = second
    larger.size[0] = table.size[0]
    return larger


@kernel(**BORROWING)
def _slot_of(table: PairArrays, first: int, second: int) -> int:
    """Return the slot that holds a pair, or else the free slot that it belongs in."""
    last = len(table.slots) - 1
    slot: int = _hash(first, second) & last
    while True:
        entry = table.slots[slot]
        if entry == _FREE or (table.first[entry] == first and table.second[entry] == second):
            return slot
        slot = (slot + 1) & last


@kernel(**INLINED)
def _hash(first: int, second: int) -> np.int64:
    """Mix the bits of a pair as SplitMix64 does: node numbers differ in their low bits only."""
    mixed = np.uint64(first) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(second)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64(mixed ^ (mixed >> np.uint64(31)))
