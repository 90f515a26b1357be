"""Compiled loops of `conditioned_scores`: scores of candidates and the gradients of their weights.

A kernel handles a range of candidates for all queries, so that several threads can share the work.
Within its range it keeps the part of every hidden unit that comes from steady features, [hidden,
candidate], and changes only the columns that a query changes.
"""

from typing import Any, NamedTuple

import numpy as np

from tclgraph.arrays import IntArray, RealArray
from tclgraph.compilation import BORROWING, REORDERED_SUMS, kernel
from tclgraph.features.block import NUM_MOVING, NUM_STEADY

# The loops over moving features are unrolled by hand: w0 to w7, m0 to m7 and so on.
assert NUM_MOVING == 8, "unroll the loops of this file for another number of moving features"


class Candidates(NamedTuple):
    """The arrays of `CandidateFeatures`."""

    steady: RealArray
    change_start: IntArray
    change_column: IntArray
    change: RealArray
    moving: RealArray


class Weights(NamedTuple):
    """Weights of the hidden units, or the gradients of these weights."""

    bias: RealArray
    """[H]"""
    steady: RealArray
    """[H, NUM_STEADY]"""
    moving: RealArray
    """[H, NUM_MOVING]"""


@kernel(**REORDERED_SUMS)
def forward(
    first: int,
    last: int,
    candidates: Candidates,
    weights: Weights,
    coefficient: RealArray,
    scores: RealArray,
) -> None:
    """Write the scores of the candidates from `first` to before `last`, [B, K]."""
    num_hidden = len(weights.bias)
    base = _steady_part(first, last, candidates, weights)
    for query in range(len(coefficient)):
        changes = candidates.change_start[query : query + 2]
        for position in range(changes[0], changes[1]):
            column = candidates.change_column[position]
            if first <= column < last:
                _set_column(base, column - first, candidates.change[position], weights)
        score = scores[query][first:last]
        score[:] = 0.0
        moving = _moving_rows(query, first, last, candidates)
        for unit in range(0, num_hidden, 2):
            _add_units(unit, moving, base, weights.moving, coefficient[query], score)


@kernel(**REORDERED_SUMS, **BORROWING)
def _add_units(
    unit: int,
    moving: Any,
    base: RealArray,
    weight: RealArray,
    coefficient: RealArray,
    score: RealArray,
) -> None:
    """Add what a hidden unit and the next contribute to the scores.

    Two at a time, so that the moving features are read half as often.
    """
    w0, w1, w2, w3, w4, w5, w6, w7 = _row(weight, unit)
    v0, v1, v2, v3, v4, v5, v6, v7 = _row(weight, unit + 1)
    c, d = coefficient[unit], coefficient[unit + 1]
    row, next_row = base[unit], base[unit + 1]
    m0, m1, m2, m3, m4, m5, m6, m7 = moving
    zero = base.dtype.type(0.0)
    for k in range(len(score)):
        z = row[k] + w0 * m0[k] + w1 * m1[k] + w2 * m2[k] + w3 * m3[k]
        z += w4 * m4[k] + w5 * m5[k] + w6 * m6[k] + w7 * m7[k]
        y = next_row[k] + v0 * m0[k] + v1 * m1[k] + v2 * m2[k] + v3 * m3[k]
        y += v4 * m4[k] + v5 * m5[k] + v6 * m6[k] + v7 * m7[k]
        score[k] += c * max(z, zero) + d * max(y, zero)


@kernel(**REORDERED_SUMS)
def backward(
    first: int,
    last: int,
    candidates: Candidates,
    weights: Weights,
    coefficient: RealArray,
    gradient: RealArray,
    weight_gradient: Weights,
    coefficient_gradient: RealArray,
) -> None:
    """Add the gradients that the candidates from `first` to before `last` contribute.

    `gradient` is that of the scores. A steady feature is the same for many queries, so the
    gradients of its column are summed first, in `column_sum`, and multiplied by it at the end.
    """
    num_hidden = len(weights.bias)
    base = _steady_part(first, last, candidates, weights)
    steady = candidates.steady[first:last].copy()
    column_sum = np.zeros_like(base)
    for query in range(len(coefficient)):
        changes = candidates.change_start[query : query + 2]
        for position in range(changes[0], changes[1]):
            column = candidates.change_column[position] - first
            if 0 <= column < last - first:
                _close_column(column, steady[column], column_sum, weight_gradient)
                steady[column] = candidates.change[position]
                _set_column(base, column, candidates.change[position], weights)
        moving = _moving_rows(query, first, last, candidates)
        score_gradient = gradient[query][first:last]
        for unit in range(num_hidden):
            coefficient_gradient[query, unit] += _unit_gradient(
                coefficient[query, unit],
                moving,
                base[unit],
                unit,
                weights.moving,
                score_gradient,
                column_sum[unit],
                weight_gradient.moving[unit],
            )
    for column in range(last - first):
        _close_column(column, steady[column], column_sum, weight_gradient)


@kernel(**REORDERED_SUMS, **BORROWING)
def _unit_gradient(
    coefficient: float,
    moving: Any,
    row: RealArray,
    unit: int,
    weight: RealArray,
    gradient: RealArray,
    column_sum: RealArray,
    weight_gradient: RealArray,
) -> Any:
    """Compute the gradients of one hidden unit for one query; return that of its coefficient."""
    w0, w1, w2, w3, w4, w5, w6, w7 = _row(weight, unit)
    m0, m1, m2, m3, m4, m5, m6, m7 = moving
    zero = row.dtype.type(0.0)
    g0, g1, g2, g3, g4, g5, g6, g7, total = zero, zero, zero, zero, zero, zero, zero, zero, zero
    for k in range(len(row)):
        z = row[k] + w0 * m0[k] + w1 * m1[k] + w2 * m2[k] + w3 * m3[k]
        z += w4 * m4[k] + w5 * m5[k] + w6 * m6[k] + w7 * m7[k]
        total += max(z, zero) * gradient[k]
        g = coefficient * gradient[k] if z > zero else zero
        column_sum[k] += g
        g0 += g * m0[k]
        g1 += g * m1[k]
        g2 += g * m2[k]
        g3 += g * m3[k]
        g4 += g * m4[k]
        g5 += g * m5[k]
        g6 += g * m6[k]
        g7 += g * m7[k]
    weight_gradient[0] += g0
    weight_gradient[1] += g1
    weight_gradient[2] += g2
    weight_gradient[3] += g3
    weight_gradient[4] += g4
    weight_gradient[5] += g5
    weight_gradient[6] += g6
    weight_gradient[7] += g7
    return total


@kernel(**REORDERED_SUMS)
def _moving_rows(query: int, first: int, last: int, candidates: Candidates) -> Any:
    """Return the rows of moving features, each in adjacent memory, which a slice of all is not."""
    rows = candidates.moving[query]
    return (
        rows[0][first:last],
        rows[1][first:last],
        rows[2][first:last],
        rows[3][first:last],
        rows[4][first:last],
        rows[5][first:last],
        rows[6][first:last],
        rows[7][first:last],
    )


@kernel(**REORDERED_SUMS, **BORROWING)
def _row(weight: RealArray, unit: int) -> Any:
    """Return the weights of a unit as numbers, which the compiler keeps in registers."""
    row = weight[unit]
    return row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7]


@kernel(**REORDERED_SUMS)
def _steady_part(first: int, last: int, candidates: Candidates, weights: Weights) -> RealArray:
    """Return what bias and steady features give before the first query, [hidden, candidate]."""
    base = np.empty((len(weights.bias), last - first), weights.bias.dtype)
    for column in range(first, last):
        _set_column(base, column - first, candidates.steady[column], weights)
    return base


@kernel(**REORDERED_SUMS, **BORROWING)
def _set_column(base: RealArray, column: int, steady: RealArray, weights: Weights) -> None:
    for unit in range(len(base)):
        value = weights.bias[unit]
        for feature in range(NUM_STEADY):
            value += weights.steady[unit, feature] * steady[feature]
        base[unit, column] = value


@kernel(**REORDERED_SUMS, **BORROWING)
def _close_column(column: int, steady: RealArray, column_sum: RealArray, gradient: Weights) -> None:
    """Add a column's sums to the gradients of bias and steady weights, and clear the sums."""
    for unit in range(len(column_sum)):
        total = column_sum[unit, column]
        column_sum[unit, column] = 0.0
        gradient.bias[unit] += total
        for feature in range(NUM_STEADY):
            gradient.steady[unit, feature] += total * steady[feature]
