"""Who has met whom so far: how often, and when last. Append-only, linear in distinct pairs.

A pair is ordered (a source, a target). Meetings are numbered 1, 2, … over all pairs in the order
observed, so that "latest" is well defined among simultaneous events; a number of 0 means never.
"""

from array import array
from dataclasses import dataclass

import numpy as np

from tclgraph.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Meetings:
    """The distinct targets of one source, in order of first meeting, and what is known of each."""

    target: IntArray
    count: IntArray
    last_number: IntArray
    last_time: FloatArray
    """Seconds."""


class PairHistory:
    """Grown by `observe`, read by `of`.

    >>> history = PairHistory()
    >>> history.observe([0, 0, 0], [5, 7, 5], [1.0, 2.0, 3.0], [1, 2, 3])
    >>> met = history.of(0)
    >>> met.target.tolist(), met.count.tolist(), met.last_number.tolist()
    ([5, 7], [2, 1], [3, 2])
    """

    def __init__(self) -> None:
        self._slot_of: dict[tuple[int, int], int] = {}
        # One growing column per fact; a source keeps the slots of its pairs.
        self._slots_of_source: dict[int, array[int]] = {}
        self._target = array("q")
        self._count = array("q")
        self._last_number = array("q")
        self._last_time = array("d")

    def __len__(self) -> int:
        return len(self._target)

    def observe(
        self,
        source: "IntArray | list[int]",
        target: "IntArray | list[int]",
        time: "FloatArray | list[float]",
        number: "IntArray | list[int]",
    ) -> None:
        """Record meetings, earliest first."""
        for one, other, at, which in zip(
            np.asarray(source).tolist(),
            np.asarray(target).tolist(),
            np.asarray(time).tolist(),
            np.asarray(number).tolist(),
            strict=True,
        ):
            slot = self._slot_of.get((one, other))
            if slot is None:
                self._slot_of[one, other] = slot = len(self._target)
                self._slots_of_source.setdefault(one, array("q")).append(slot)
                self._target.append(other)
                self._count.append(0)
                self._last_number.append(0)
                self._last_time.append(0.0)
            self._count[slot] += 1
            self._last_number[slot] = which
            self._last_time[slot] = at

    def of(self, source: int) -> Meetings:
        """All meetings of a source. The arrays are copies."""
        slots = np.frombuffer(self._slots_of_source.get(int(source), array("q")), dtype=np.int64)
        return Meetings(
            target=np.frombuffer(self._target, dtype=np.int64)[slots],
            count=np.frombuffer(self._count, dtype=np.int64)[slots],
            last_number=np.frombuffer(self._last_number, dtype=np.int64)[slots],
            last_time=np.frombuffer(self._last_time, dtype=np.float64)[slots],
        )

    def to_arrays(self) -> dict[str, IntArray | FloatArray]:
        """Everything, one row per pair; `from_arrays` takes it back."""
        pairs = np.array(list(self._slot_of), dtype=np.int64).reshape(-1, 2)
        return {
            "pair_source": pairs[:, 0].copy(),
            "pair_target": pairs[:, 1].copy(),
            "pair_count": np.array(self._count, dtype=np.int64),
            "pair_last_number": np.array(self._last_number, dtype=np.int64),
            "pair_last_time": np.array(self._last_time, dtype=np.float64),
        }

    @classmethod
    def from_arrays(cls, arrays: "dict[str, IntArray | FloatArray]") -> "PairHistory":
        history = cls()
        history.observe(
            np.asarray(arrays["pair_source"], dtype=np.int64),
            np.asarray(arrays["pair_target"], dtype=np.int64),
            np.asarray(arrays["pair_last_time"], dtype=np.float64),
            np.asarray(arrays["pair_last_number"], dtype=np.int64),
        )
        history._count = array("q", np.asarray(arrays["pair_count"], dtype=np.int64).tobytes())
        return history
