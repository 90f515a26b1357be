"""Which targets each source has interacted with: how often, and when last.

The history is append-only and its size is linear in the number of distinct pairs. A pair is
ordered: a source and a target. The caller numbers interactions 1, 2, … in the order of the events,
so that "latest" is well defined among simultaneous events; the number 0 means "never".
"""

from array import array
from dataclasses import dataclass

import numpy as np

from tclgraph.arrays import FloatArray, IntArray


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


class PairHistory:
    """Records interactions with `observe` and returns the neighbors of a source.

    >>> history = PairHistory()
    >>> history.observe([0, 0, 0], [5, 7, 5], [1.0, 2.0, 3.0], [1, 2, 3])
    >>> neighbors = history.neighbors_of(0)
    >>> neighbors.target.tolist(), neighbors.count.tolist(), neighbors.last_number.tolist()
    ([5, 7], [2, 1], [3, 2])
    """

    def __init__(self) -> None:
        # Each pair has a slot, which is its position in the columns below.
        self._slot_of: dict[tuple[int, int], int] = {}
        self._slots_of_source: dict[int, array[int]] = {}
        self._target = array("q")
        self._count = array("q")
        self._last_number = array("q")
        self._last_time = array("d")

    def __len__(self) -> int:
        return len(self._target)

    def observe(
        self,
        sources: "IntArray | list[int]",
        targets: "IntArray | list[int]",
        times: "FloatArray | list[float]",
        numbers: "IntArray | list[int]",
    ) -> None:
        """Record interactions, earliest first."""
        for source, target, time, number in zip(
            np.asarray(sources).tolist(),
            np.asarray(targets).tolist(),
            np.asarray(times).tolist(),
            np.asarray(numbers).tolist(),
            strict=True,
        ):
            slot = self._slot_of.get((source, target))
            if slot is None:
                self._slot_of[source, target] = slot = len(self._target)
                self._slots_of_source.setdefault(source, array("q")).append(slot)
                self._target.append(target)
                self._count.append(0)
                self._last_number.append(0)
                self._last_time.append(0.0)
            self._count[slot] += 1
            self._last_number[slot] = number
            self._last_time[slot] = time

    def neighbors_of(self, source: int) -> Neighbors:
        """Return the neighbors of a source as copies, which later interactions do not change."""
        slots = np.frombuffer(self._slots_of_source.get(int(source), array("q")), dtype=np.int64)
        return Neighbors(
            target=np.frombuffer(self._target, dtype=np.int64)[slots],
            count=np.frombuffer(self._count, dtype=np.int64)[slots],
            last_number=np.frombuffer(self._last_number, dtype=np.int64)[slots],
            last_time=np.frombuffer(self._last_time, dtype=np.float64)[slots],
        )
