"""Compiled counts behind ranks and recommendations: passes over the scores, without sorting them.

A column is a candidate of a row if it needs at most as many events as are revealed before the row
(see `candidates.Candidates`).
"""

from typing import Any

import numpy as np

from tclgraph.arrays import IntArray, ScoreArray
from tclgraph.compilation import BORROWING, INLINED, kernel

# Number of lanes that columns are dealt to.
_NUM_LANES = 32


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

    Candidates that are scored -inf or NaN are left out. Columns are dealt to lanes in turn, and no
    column can be among the best if `depth` lanes have a better one. So two vectorized passes find
    the few columns that can.
    """
    lane_value = np.empty(_NUM_LANES, scores.dtype)
    top_value, top_column = np.empty(depth, scores.dtype), np.empty(depth, np.int64)
    for row in range(len(scores)):
        values, num_revealed = scores[row], revealed[row]
        _fill_lanes(values, needed, num_revealed, lane_value)
        top_value[:] = -np.inf
        for lane in range(_NUM_LANES):
            _insert(lane_value[lane], lane, top_value, top_column)
        bound = top_value[depth - 1]
        top_value[:] = -np.inf
        top_column[:] = -1
        for start in range(0, len(values), _NUM_LANES):
            end = min(start + _NUM_LANES, len(values))
            if not _has_high(values, start, end, bound):
                continue
            for column in range(start, end):
                if values[column] >= bound and needed[column] <= num_revealed:
                    _insert(values[column], column, top_value, top_column)
        for place in range(depth):
            if top_column[place] >= 0:
                times[top_column[place]] += 1


@kernel(**BORROWING)
def _fill_lanes(values: Any, needed: IntArray, num_revealed: int, lane_value: Any) -> None:
    """Write the highest candidate of every lane, -inf if it has none."""
    lane_value[:] = -np.inf
    num_full = len(values) // _NUM_LANES * _NUM_LANES
    # Only loops of a constant length are vectorized well.
    for start in range(0, num_full, _NUM_LANES):
        for lane in range(_NUM_LANES):
            value, highest = values[start + lane], lane_value[lane]
            is_higher = (needed[start + lane] <= num_revealed) & (value > highest)
            lane_value[lane] = value if is_higher else highest
    for column in range(num_full, len(values)):
        lane = column - num_full
        if needed[column] <= num_revealed and values[column] > lane_value[lane]:
            lane_value[lane] = values[column]


@kernel(**INLINED)
def _has_high(values: Any, start: int, end: int, bound: float) -> bool:
    """Return whether one of the next columns reaches a bound; say so if fewer are left."""
    if end - start < _NUM_LANES:
        return True
    num_high = 0
    for lane in range(_NUM_LANES):
        num_high += values[start + lane] >= bound
    return num_high > 0


@kernel(**INLINED)
def _insert(value: Any, column: int, top_value: Any, top_column: IntArray) -> None:
    """Insert a value into the highest ones, which descend, unless all of these are as high."""
    place = len(top_value) - 1
    if not value > top_value[place]:
        return
    while place > 0 and top_value[place - 1] < value:
        top_value[place] = top_value[place - 1]
        top_column[place] = top_column[place - 1]
        place -= 1
    top_value[place], top_column[place] = value, column
