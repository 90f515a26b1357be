"""The rank of the true target among all targets.

Tie rule: targets with equal scores share the mean of their ranks. A model that gives every target
the same score therefore gets the middle rank, not rank 1. A row with a NaN score gets the last
rank.
"""

from dataclasses import dataclass

import numpy as np

from tclgraph.arrays import BoolArray, FloatArray, IntArray, ScoreArray
from tclgraph.evaluation.ranking_kernels import count_better


@dataclass(frozen=True, slots=True)
class Ranks:
    """Ranks of the true targets; rank 1 is the best."""

    middle: FloatArray
    """Mean of the optimistic and the pessimistic rank. All metrics use this rank."""
    optimistic: FloatArray
    """Rank if the true target came first among the targets with its score."""
    pessimistic: FloatArray
    """Rank if the true target came last among the targets with its score."""
    is_nan: BoolArray
    """Whether the scores of the event contain a NaN."""

    def __len__(self) -> int:
        return len(self.middle)

    @classmethod
    def concatenate(cls, blocks: "list[Ranks]") -> "Ranks":
        return cls(
            np.concatenate([block.middle for block in blocks]),
            np.concatenate([block.optimistic for block in blocks]),
            np.concatenate([block.pessimistic for block in blocks]),
            np.concatenate([block.is_nan for block in blocks]),
        )


def rank(scores: ScoreArray, true: IntArray, candidates: IntArray | None = None) -> Ranks:
    """Return the rank of column `true[row]` for every row, among these columns or among all.

    >>> rank(np.array([[3.0, 1.0, 1.0, 0.0]]), np.array([1])).middle
    array([2.5])
    """
    is_candidate = np.full(scores.shape[1], candidates is None)
    if candidates is not None:
        is_candidate[candidates] = True
    # Copies where needed, because numba compiles a kernel again for other kinds of arrays.
    better, equal, nan = count_better(np.ascontiguousarray(scores), np.array(true), is_candidate)
    is_nan, last = nan > 0, np.count_nonzero(is_candidate)
    optimistic = np.where(is_nan, last, better + 1).astype(np.float64)
    pessimistic = np.where(is_nan, last, better + equal).astype(np.float64)
    middle = (optimistic + pessimistic) / 2
    return Ranks(middle, optimistic, pessimistic, is_nan)
