"""From scores to the rank of the true target, with ties and NaNs settled in the open."""

from dataclasses import dataclass

import numpy as np

from tclgraph.arrays import BoolArray, FloatArray, IntArray, ScoreArray


@dataclass(frozen=True, slots=True)
class Ranks:
    """Ranks of the true targets, 1 the best."""

    middle: FloatArray
    """Mean of the next two: what a fair coin among equals would give. All metrics use this one."""
    optimistic: FloatArray
    """As if the true target came first among its equals."""
    pessimistic: FloatArray
    """As if it came last."""
    is_nan: BoolArray
    """Where the row held a NaN; such a row gets the last rank."""

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


def rank(scores: ScoreArray, true: IntArray) -> Ranks:
    """Rank column `true[row]` of every row among all columns.

    >>> rank(np.array([[3.0, 1.0, 1.0, 0.0]]), np.array([1])).middle
    array([2.5])
    """
    true_score = np.take_along_axis(scores, true[:, None], axis=1)
    num_better = np.count_nonzero(scores > true_score, axis=1)
    num_equal = np.count_nonzero(scores == true_score, axis=1)
    is_nan = np.asarray(np.isnan(scores).any(axis=1))
    last = scores.shape[1]
    optimistic = np.where(is_nan, last, num_better + 1).astype(np.float64)
    pessimistic = np.where(is_nan, last, num_better + num_equal).astype(np.float64)
    return Ranks((optimistic + pessimistic) / 2, optimistic, pessimistic, is_nan)
