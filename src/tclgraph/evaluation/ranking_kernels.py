"""Compiled counts behind ranks: one pass over the scores, without tables of comparisons."""

from typing import Any

import numpy as np

from tclgraph.arrays import BoolArray, IntArray, ScoreArray
from tclgraph.compilation import kernel


@kernel
def count_better(scores: ScoreArray, true: IntArray, is_candidate: BoolArray) -> Any:
    """Return per row the number of better and of equal candidates, and of those with NaN scores.

    Better or equal means in comparison with column `true[row]`, which is a candidate itself.
    """
    num_rows = len(scores)
    better, equal = np.zeros(num_rows, np.int64), np.zeros(num_rows, np.int64)
    nan = np.zeros(num_rows, np.int64)
    for row in range(num_rows):
        values, true_value = scores[row], scores[row, true[row]]
        num_better, num_equal, num_nan = 0, 0, 0
        for column in range(len(values)):
            value = values[column]
            is_counted = is_candidate[column]
            num_better += is_counted & (value > true_value)
            num_equal += is_counted & (value == true_value)
            num_nan += is_counted & (value != value)
        better[row], equal[row], nan[row] = num_better, num_equal, num_nan
    return better, equal, nan
