"""Compiled counts behind ranks and recommendations: passes over the scores, without sorting them.

A column is a candidate of a row if it needs at most as many events as are revealed before the row
(see `candidates.Candidates`).
"""

from typing import Any

import numpy as np

from tclgraph.arrays import IntArray, ScoreArray
from tclgraph.compilation import kernel

# Number of columns that are compared with the lowest of the top scores before one is inserted.
_COLUMNS_PER_CHECK = 64


@kernel
def count_better(scores: ScoreArray, true: IntArray, needed: IntArray, revealed: IntArray) -> Any:
    """Return per row the number of better and of equal candidates, and of those with NaN scores.

    Better or equal means in comparison with column `true[row]`, which is a candidate itself.
    """
    num_rows = len(scores)
    better, equal = np.zeros(num_rows, np.int64), np.zeros(num_rows, np.int64)
    nan = np.zeros(num_rows, np.int64)
    for row in range(num_rows):
        values, true_value = scores[row], scores[row, true[row]]
        num_revealed = revealed[row]
        num_better, num_equal, num_nan = 0, 0, 0
        for column in range(len(values)):
            value = values[column]
            is_counted = needed[column] <= num_revealed
            num_better += is_counted & (value > true_value)
            num_equal += is_counted & (value == true_value)
            num_nan += is_counted & (value != value)
        better[row], equal[row], nan[row] = num_better, num_equal, num_nan
    return better, equal, nan


@kernel
def count_top(
    scores: ScoreArray, needed: IntArray, revealed: IntArray, depth: int, times: IntArray
) -> None:
    """Add 1 to `times` of the `depth` best candidates of every row; the smaller column wins a tie.

    Candidates that are scored -inf or NaN are left out. The candidates of a row are also candidates
    of the rows after it.
    """
    top_value = np.empty(depth, scores.dtype)
    top_column = np.full(depth, -1)
    for row in range(len(scores)):
        num_revealed = revealed[row]
        # The best columns of the row before are often good ones here too, and no column that is
        # worse than all of them can be among the best.
        top_value[:] = np.inf
        bound = top_value[0]
        for column in top_column:
            if column < 0 or not scores[row, column] > -np.inf:
                bound = -top_value[0]
                break
            bound = min(bound, scores[row, column])
        top_value[:] = -np.inf
        top_column[:] = -1
        for start in range(0, scores.shape[1], _COLUMNS_PER_CHECK):
            # Counting is vectorized, and few of these slices have a column that passes.
            values = scores[row, start : start + _COLUMNS_PER_CHECK]
            lowest = top_value[depth - 1]
            num_above = 0
            for number in range(len(values)):
                num_above += (values[number] >= bound) & (values[number] > lowest)
            if num_above == 0:
                continue
            for number in range(len(values)):
                value, column = values[number], start + number
                if value < bound or not value > top_value[depth - 1]:
                    continue
                if needed[column] > num_revealed:
                    continue
                place = depth - 1
                while place > 0 and top_value[place - 1] < value:
                    top_value[place] = top_value[place - 1]
                    top_column[place] = top_column[place - 1]
                    place -= 1
                top_value[place], top_column[place] = value, column
        for column in top_column:
            if column >= 0:
                times[column] += 1
