"""Attention that projects queries instead of keys and values, as compiled loops.

The score of a row x for head h is q_h · (K_h x) = (K_h' q_h) · x, and the mean of the values is V_h
applied to the mean of the rows. So a query needs K_h' q_h, a *probe* with as many columns as a row,
for every head, but no row has to be projected. That is less work if there are few queries and each
row is in few lists.

Arrays of probes and of mean rows are [column, head]; so a vector of adjacent numbers holds all
heads of a column, then all heads of the next. Head h owns the columns h, h + H, h + 2H, … of
queries and of the output (see `packed_attention`).
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tclgraph.arrays import IntArray, RealArray
from tclgraph.compilation import kernel
from tclgraph.lanes import divisor_up_to, exp, fill, fold, load, maximum, repeat, store, tile

# Numbers that are processed at once. The vectors of a kernel should fit in the registers.
_MAX_LANES = 64


class AbsorbedInputs(NamedTuple):
    """What forward and backward read: query q attends to the rows keys[start[q]:start[q + 1]]."""

    query: RealArray
    """[query, inner column]."""
    hidden: RealArray
    """[row, column]."""
    key_weight: RealArray
    """[inner column, column], and so is `value_weight`."""
    value_weight: RealArray
    start: IntArray
    keys: IntArray


class AbsorbedGradients(NamedTuple):
    """Gradients of the arrays of `AbsorbedInputs`; those of rows and weights are added up."""

    query: RealArray
    hidden: RealArray
    key_weight: RealArray
    value_weight: RealArray


# Parts of the kernels below. They are copied into the kernels, because sizes must be constants.
_INLINED: dict[str, Any] = {"error_model": "numpy", "inline": "always"}


@kernel(**_INLINED)
def _by_head(
    index: int,
    rows: RealArray,
    weight: RealArray,
    result: RealArray,
    width: int,
    inner: int,
    lanes: int,
    num_heads: int,
) -> None:
    """Write weight_h' · row_h for all heads h, [column, head]; `weight` is transposed."""
    for column in range(width):
        total = fill(rows.dtype.type(0.0), num_heads)
        for start in range(0, inner, lanes):
            product = load(rows, index, start, lanes) * load(weight, column, start, lanes)
            total = total + fold(product, num_heads)
        store(result, column, 0, total)


@kernel(**_INLINED)
def _match(
    keys: IntArray,
    hidden: RealArray,
    probe: RealArray,
    score: RealArray,
    width: int,
    block: int,
    block_lanes: int,
    num_heads: int,
) -> None:
    """Write the product of all rows and probes, [key, head]."""
    for pair in range(0, len(keys), 2):  # two rows share the loading of the probes
        other = min(pair + 1, len(keys) - 1)
        total = fill(hidden.dtype.type(0.0), block_lanes)
        other_total = total
        for column in range(0, width, block):
            probes = load(probe, column, 0, block_lanes)
            row = load(hidden, keys[pair], column, block)
            other_row = load(hidden, keys[other], column, block)
            total = total + repeat(row, num_heads) * probes
            other_total = other_total + repeat(other_row, num_heads) * probes
        store(score, pair, 0, fold(total, num_heads))
        store(score, other, 0, fold(other_total, num_heads))


@kernel(**_INLINED)
def _weighted_sum(
    keys: IntArray,
    hidden: RealArray,
    weight: RealArray,
    result: RealArray,
    width: int,
    block: int,
    block_lanes: int,
    num_heads: int,
) -> None:
    """Write the sum of all rows, weighted for every head, [column, head]."""
    for column in range(0, width, block):
        total = fill(hidden.dtype.type(0.0), block_lanes)
        for pair in range(len(keys)):
            row = repeat(load(hidden, keys[pair], column, block), num_heads)
            total = total + row * tile(load(weight, pair, 0, num_heads), block_lanes)
        store(result, column, 0, total)


@kernel(**_INLINED)
def _from_heads(
    index: int,
    heads: RealArray,
    weight: RealArray,
    result: RealArray,
    width: int,
    inner: int,
    lanes: int,
    num_heads: int,
) -> None:
    """Write weight_h · heads_h for all heads h; `weight` is transposed."""
    for start in range(0, inner, lanes):
        total = fill(heads.dtype.type(0.0), lanes)
        for column in range(width):
            product = tile(load(heads, column, 0, num_heads), lanes)
            total = total + product * load(weight, column, start, lanes)
        store(result, index, start, total)


@kernel(**_INLINED)
def _spread(
    index: int,
    rows: RealArray,
    weight: RealArray,
    result: RealArray,
    width: int,
    inner: int,
    lanes: int,
    num_heads: int,
) -> None:
    """Write weight_h' · row_h for all heads h, [head, column]."""
    for column in range(0, width, lanes):
        for head in range(num_heads):
            total = fill(rows.dtype.type(0.0), lanes)
            for place in range(head, inner, num_heads):
                total = total + load(weight, place, column, lanes) * rows[index, place]
            store(result, head, column, total)


@kernel(**_INLINED)
def _add_outer(
    index: int,
    rows: RealArray,
    heads: RealArray,
    result: RealArray,
    width: int,
    inner: int,
    lanes: int,
    num_heads: int,
) -> None:
    """Add the product of a row and a column of all heads to a transposed weight gradient."""
    for start in range(0, inner, lanes):
        row = load(rows, index, start, lanes)
        for column in range(width):
            product = tile(load(heads, column, 0, num_heads), lanes) * row
            store(result, column, start, load(result, column, start, lanes) + product)


@kernel(**_INLINED)
def _add_rows(
    keys: IntArray,
    first_weight: RealArray,
    first: RealArray,
    second_weight: RealArray,
    second: RealArray,
    result: RealArray,
    lanes: int,
    num_heads: int,
) -> None:
    """Add the sums over heads of first_weight · first + second_weight · second to rows."""
    for column in range(0, result.shape[1], lanes):
        for pair in range(len(keys)):
            total = load(result, keys[pair], column, lanes)
            other = fill(result.dtype.type(0.0), lanes)
            for head in range(num_heads):
                total = total + load(first, head, column, lanes) * first_weight[pair, head]
                other = other + load(second, head, column, lanes) * second_weight[pair, head]
            store(result, keys[pair], column, total + other)


@lru_cache
def forward_kernel(num_heads: int, head_width: int, width: int) -> Callable[..., None]:
    """Return the forward kernel for these sizes, which are constants for the compiler."""
    inner, lanes, block, block_lanes, wide, wide_lanes, _ = _sizes(num_heads, head_width, width)

    @kernel(error_model="numpy")
    def forward(
        first_query: int,
        last_query: int,
        inputs: AbsorbedInputs,
        output: RealArray,
        weight: RealArray,
    ) -> None:
        """Write the attention output of the queries, and the weights, [pair, head]."""
        query, hidden, key_weight, value_weight, start, keys = inputs
        number = query.dtype.type
        scale = number(1.0 / math.sqrt(head_width))
        key_weight_T = np.ascontiguousarray(key_weight.T)
        value_weight_T = np.ascontiguousarray(value_weight.T)
        probe = np.empty((width, num_heads), query.dtype)
        mean = np.empty((width, num_heads), query.dtype)
        for index in range(first_query, last_query):
            first, last = start[index], start[index + 1]
            _by_head(index, query, key_weight_T, probe, width, inner, lanes, num_heads)
            _match(
                keys[first:last],
                hidden,
                probe,
                weight[first:last],
                width,
                block,
                block_lanes,
                num_heads,
            )
            highest = fill(number(-np.inf), num_heads)
            for pair in range(first, last):
                highest = maximum(highest, load(weight, pair, 0, num_heads))
            total = fill(number(0.0), num_heads)
            for pair in range(first, last):
                share = exp((load(weight, pair, 0, num_heads) - highest) * scale)
                store(weight, pair, 0, share)
                total = total + share
            inverse = number(1.0) / total
            for pair in range(first, last):
                store(weight, pair, 0, load(weight, pair, 0, num_heads) * inverse)
            _weighted_sum(
                keys[first:last],
                hidden,
                weight[first:last],
                mean,
                width,
                wide,
                wide_lanes,
                num_heads,
            )
            _from_heads(index, mean, value_weight_T, output, width, inner, lanes, num_heads)

    return forward  # type: ignore[no-any-return]


@lru_cache
def backward_kernel(num_heads: int, head_width: int, width: int) -> Callable[..., None]:
    """Return the backward kernel for these sizes, which are constants for the compiler."""
    inner, lanes, block, block_lanes, wide, wide_lanes, row_lanes = _sizes(
        num_heads, head_width, width
    )

    @kernel(error_model="numpy")
    def backward(
        first_query: int,
        last_query: int,
        inputs: AbsorbedInputs,
        weight: RealArray,
        gradient: RealArray,
        totals: AbsorbedGradients,
    ) -> None:
        """Write the gradients of queries, and add to the other gradients.

        `gradient` is the gradient of the output, and `weight` what the forward kernel wrote. The
        gradients of the weights are transposed.
        """
        query, hidden, key_weight, value_weight, start, keys = inputs
        number = query.dtype.type
        scale = number(1.0 / math.sqrt(head_width))
        key_weight_T = np.ascontiguousarray(key_weight.T)
        value_weight_T = np.ascontiguousarray(value_weight.T)
        longest = 0
        for index in range(first_query, last_query):
            longest = max(longest, start[index + 1] - start[index])
        score_gradient = np.empty((longest, num_heads), query.dtype)
        mean = np.empty((width, num_heads), query.dtype)
        mean_gradient = np.empty((width, num_heads), query.dtype)
        probe_gradient = np.empty((width, num_heads), query.dtype)
        # The same with heads as rows, for sums over heads.
        probe_T = np.empty((num_heads, width), query.dtype)
        mean_gradient_T = np.empty((num_heads, width), query.dtype)
        for index in range(first_query, last_query):
            first, last = start[index], start[index + 1]
            rows, share = keys[first:last], weight[first:last]
            _by_head(index, gradient, value_weight_T, mean_gradient, width, inner, lanes, num_heads)
            _weighted_sum(rows, hidden, share, mean, width, wide, wide_lanes, num_heads)
            _add_outer(index, gradient, mean, totals.value_weight, width, inner, lanes, num_heads)
            _match(
                rows, hidden, mean_gradient, score_gradient, width, block, block_lanes, num_heads
            )
            average_gradient = fill(number(0.0), num_heads)
            for pair in range(last - first):
                derivative = load(score_gradient, pair, 0, num_heads)
                average_gradient = average_gradient + load(share, pair, 0, num_heads) * derivative
            for pair in range(last - first):
                deviation = load(score_gradient, pair, 0, num_heads) - average_gradient
                derivative = load(share, pair, 0, num_heads) * deviation * scale
                store(score_gradient, pair, 0, derivative)
            _weighted_sum(
                rows, hidden, score_gradient, probe_gradient, width, wide, wide_lanes, num_heads
            )
            _from_heads(
                index, probe_gradient, key_weight_T, totals.query, width, inner, lanes, num_heads
            )
            _add_outer(
                index, query, probe_gradient, totals.key_weight, width, inner, lanes, num_heads
            )
            _spread(
                index, gradient, value_weight, mean_gradient_T, width, inner, row_lanes, num_heads
            )
            _spread(index, query, key_weight, probe_T, width, inner, row_lanes, num_heads)
            _add_rows(
                rows,
                share,
                mean_gradient_T,
                score_gradient,
                probe_T,
                totals.hidden,
                row_lanes,
                num_heads,
            )

    return backward  # type: ignore[no-any-return]


def _sizes(num_heads: int, head_width: int, width: int) -> tuple[int, ...]:
    """Return the inner width, and what is processed at once.

    These are inner columns; columns of a row and their numbers for all heads, twice: for rows that
    share probes and for sums over rows; and columns of a row.
    """
    inner = num_heads * head_width
    lanes = num_heads * divisor_up_to(_MAX_LANES // num_heads, head_width)
    block = divisor_up_to(_MAX_LANES // num_heads, width)
    wide = divisor_up_to(2 * _MAX_LANES // num_heads, width)
    row_lanes = divisor_up_to(_MAX_LANES, width)
    return inner, lanes, block, block * num_heads, wide, wide * num_heads, row_lanes
