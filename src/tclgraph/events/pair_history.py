"""Which targets each source has interacted with: how often, and when last.

The history is append-only and its size is linear in the number of distinct pairs. A pair is
ordered: a source and a target. The caller numbers interactions 1, 2, … in the order of the events,
so that "latest" is well defined among simultaneous events; the number 0 means "never".
"""

from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from tclgraph.arrays import FloatArray, IntArray
from tclgraph.compilation import BORROWING, kernel
from tclgraph.events.pair_table import PairTable

Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass(frozen=True, slots=True)
class Neighbors:
    """The distinct targets that a source has interacted with, in order of first interaction."""

    target: IntArray
    count: IntArray
    """Number of interactions."""
    last_number: IntArray
    """Number of the latest interaction."""
    last_time: FloatArray
    """Time of the latest interaction, in seconds."""


class PairColumns(NamedTuple):
    """The arrays of a history, for kernels. The first five have an entry per pair.

    A kernel may count interactions of pairs in them. The pairs of a source form a linked list.
    """

    target: IntArray
    num_interactions: IntArray
    """0 for a pair that was added and has not interacted yet."""
    last_number: IntArray
    last_time: FloatArray
    earlier: IntArray
    """Entry of the pair that the same source added before, or -1."""
    newest: IntArray
    """[source] Entry of the pair that the source added last, or -1."""


class PairHistory:
    """Records interactions with `observe` and returns the neighbors of a source.

    >>> history = PairHistory()
    >>> history.observe([0, 0, 0], [5, 7, 5], [1.0, 2.0, 3.0], [1, 2, 3])
    >>> neighbors = history.neighbors_of(0)
    >>> neighbors.target.tolist(), neighbors.count.tolist(), neighbors.last_number.tolist()
    ([5, 7], [2, 1], [3, 2])
    """

    def __init__(self) -> None:
        self._table = PairTable()
        # These arrays double when they are full.
        self._count = np.zeros(0, dtype=np.int64)
        self._last_number = np.zeros(0, dtype=np.int64)
        self._last_time = np.zeros(0)
        self._earlier = np.zeros(0, dtype=np.int64)
        self._newest = np.zeros(0, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._table)

    @property
    def columns(self) -> PairColumns:
        """The arrays of the history; `add` may replace them by larger ones."""
        return PairColumns(
            self._table.arrays.second,
            self._count,
            self._last_number,
            self._last_time,
            self._earlier,
            self._newest,
        )

    def add(self, sources: IntArray, targets: IntArray) -> IntArray:
        """Return the entry of each pair; a new pair gets an entry without interactions."""
        first = len(self)
        entry = self._table.add(sources, targets)
        size = len(self._table.arrays.first)
        if size > len(self._count):
            self._count = _grown(self._count, size, 0)
            self._last_number = _grown(self._last_number, size, 0)
            self._last_time = _grown(self._last_time, size, 0.0)
            self._earlier = _grown(self._earlier, size, -1)
        num_sources = int(sources.max(initial=-1)) + 1
        if num_sources > len(self._newest):
            self._newest = _grown(self._newest, max(num_sources, 2 * len(self._newest)), -1)
        _link(first, self._table.first, self._earlier, self._newest)
        return entry

    def observe(
        self,
        sources: "IntArray | list[int]",
        targets: "IntArray | list[int]",
        times: "FloatArray | list[float]",
        numbers: "IntArray | list[int]",
    ) -> None:
        """Record interactions, earliest first."""
        entry = self.add(np.asarray(sources, dtype=np.int64), np.asarray(targets, dtype=np.int64))
        time, number = np.asarray(times, dtype=np.float64), np.asarray(numbers, dtype=np.int64)
        _record(self.columns, entry, time, number)

    def neighbors_of(self, source: int) -> Neighbors:
        """Return the neighbors of a source as copies, which later interactions do not change."""
        columns = self.columns
        entry = _entries_of(columns, int(source))
        return Neighbors(
            target=columns.target[entry],
            count=columns.num_interactions[entry],
            last_number=columns.last_number[entry],
            last_time=columns.last_time[entry],
        )


def _grown(array: NDArray[Scalar], size: int, value: float) -> NDArray[Scalar]:
    """Return a copy with `size` elements, of which the additional ones have this value."""
    larger = np.full(size, value, dtype=array.dtype)
    larger[: len(array)] = array
    return larger


@kernel
def _link(first: int, source: IntArray, earlier: IntArray, newest: IntArray) -> None:
    """Put the entries from `first` on into the lists of their sources."""
    for entry in range(first, len(source)):
        earlier[entry] = newest[source[entry]]
        newest[source[entry]] = entry


@kernel(**BORROWING)
def record_interaction(columns: PairColumns, entry: int, time: float, number: int) -> None:
    """Count an interaction of a pair."""
    columns.num_interactions[entry] += 1
    columns.last_number[entry] = number
    columns.last_time[entry] = time


@kernel
def _record(columns: PairColumns, entry: IntArray, time: FloatArray, number: IntArray) -> None:
    for row in range(len(entry)):
        record_interaction(columns, entry[row], time[row], number[row])


@kernel
def _entries_of(columns: PairColumns, source: int) -> IntArray:
    """Return the entries of a source in the order in which they were added."""
    size = 0
    newest = columns.newest[source] if source < len(columns.newest) else -1
    entry = newest
    while entry >= 0:
        size += 1
        entry = columns.earlier[entry]
    entries = np.empty(size, np.int64)
    entry = newest
    while entry >= 0:
        size -= 1
        entries[size] = entry
        entry = columns.earlier[entry]
    return entries
