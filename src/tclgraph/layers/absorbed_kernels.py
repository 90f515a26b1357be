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
from numpy.typing import NDArray

from tclgraph.arrays import IntArray
from tclgraph.compilation import kernel
from tclgraph.layers.lanes import divisor_up_to, exp, fill, fold, load, maximum, repeat, store, tile

Float = NDArray[np.floating[Any]]

# Numbers that are processed at once. The vectors of a kernel should fit in the registers.
_MAX_LANES = 64


class AbsorbedInputs(NamedTuple):
    """What forward and backward read: query q attends to the rows keys[start[q]:start[q + 1]]."""

    query: Float
    """[query, inner column]."""
    hidden: Float
    """[row, column]."""
    key_weight: Float
    """[inner column, column], and so is `value_weight`."""
    value_weight: Float
    start: IntArray
    keys: IntArray


class AbsorbedGradients(NamedTuple):
    """Gradients of the arrays of `AbsorbedInputs`; those of rows and weights are added up."""

    query: Float
    hidden: Float
    key_weight: Float
    value_weight: Float


class _Parts(NamedTuple):
    """Compiled parts of both kernels, for fixed sizes."""

    by_head: Callable[..., None]
    match: Callable[..., None]
    average: Callable[..., None]
    from_heads: Callable[..., None]


@lru_cache
def _parts(num_heads: int, head_width: int, width: int) -> _Parts:
    inner = num_heads * head_width
    lanes = num_heads * divisor_up_to(_MAX_LANES // num_heads, head_width)
    block = divisor_up_to(_MAX_LANES // num_heads, width)  # columns of a row
    block_lanes = block * num_heads
    wide = divisor_up_to(2 * _MAX_LANES // num_heads, width)
    wide_lanes = wide * num_heads

    @kernel(error_model="numpy")
    def by_head(index: int, rows: Float, weight: Float, result: Float) -> None:
        """Write weight_h' · row_h for all heads h, [column, head]; `weight` is transposed."""
        for column in range(width):
            total = fill(rows.dtype.type(0.0), num_heads)
            for start in range(0, inner, lanes):
                product = load(rows, index, start, lanes) * load(weight, column, start, lanes)
                total = total + fold(product, num_heads)
            store(result, column, 0, total)

    @kernel(error_model="numpy")
    def match(keys: IntArray, hidden: Float, probe: Float, score: Float) -> None:
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

    @kernel(error_model="numpy")
    def average(keys: IntArray, hidden: Float, weight: Float, result: Float) -> None:
        """Write the sum of all rows, weighted for every head, [column, head]."""
        for column in range(0, width, wide):
            total = fill(hidden.dtype.type(0.0), wide_lanes)
            for pair in range(len(keys)):
                row = repeat(load(hidden, keys[pair], column, wide), num_heads)
                total = total + row * tile(load(weight, pair, 0, num_heads), wide_lanes)
            store(result, column, 0, total)

    @kernel(error_model="numpy")
    def from_heads(index: int, heads: Float, weight: Float, result: Float) -> None:
        """Write weight_h · heads_h for all heads h; `weight` is transposed."""
        for start in range(0, inner, lanes):
            total = fill(heads.dtype.type(0.0), lanes)
            for column in range(width):
                product = tile(load(heads, column, 0, num_heads), lanes)
                total = total + product * load(weight, column, start, lanes)
            store(result, index, start, total)

    return _Parts(by_head, match, average, from_heads)


@lru_cache
def forward_kernel(num_heads: int, head_width: int, width: int) -> Callable[..., None]:
    """Return the forward kernel for these sizes, which are constants for the compiler."""
    by_head, match, average, from_heads = _parts(num_heads, head_width, width)

    @kernel(error_model="numpy")
    def forward(
        first_query: int, last_query: int, inputs: AbsorbedInputs, output: Float, weight: Float
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
            by_head(index, query, key_weight_T, probe)
            match(keys[first:last], hidden, probe, weight[first:last])
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
            average(keys[first:last], hidden, weight[first:last], mean)
            from_heads(index, mean, value_weight_T, output)

    return forward  # type: ignore[no-any-return]


@lru_cache
def backward_kernel(num_heads: int, head_width: int, width: int) -> Callable[..., None]:
    """Return the backward kernel for these sizes, which are constants for the compiler."""
    by_head, match, average, from_heads = _parts(num_heads, head_width, width)
    spread, add_outer, add_rows = _backward_parts(num_heads, head_width, width)

    @kernel(error_model="numpy")
    def backward(
        first_query: int,
        last_query: int,
        inputs: AbsorbedInputs,
        weight: Float,
        gradient: Float,
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
            by_head(index, gradient, value_weight_T, mean_gradient)
            average(rows, hidden, share, mean)
            add_outer(index, gradient, mean, totals.value_weight)
            match(rows, hidden, mean_gradient, score_gradient)
            average_gradient = fill(number(0.0), num_heads)
            for pair in range(last - first):
                derivative = load(score_gradient, pair, 0, num_heads)
                average_gradient = average_gradient + load(share, pair, 0, num_heads) * derivative
            for pair in range(last - first):
                deviation = load(score_gradient, pair, 0, num_heads) - average_gradient
                derivative = load(share, pair, 0, num_heads) * deviation * scale
                store(score_gradient, pair, 0, derivative)
            average(rows, hidden, score_gradient, probe_gradient)
            from_heads(index, probe_gradient, key_weight_T, totals.query)
            add_outer(index, query, probe_gradient, totals.key_weight)
            spread(index, gradient, value_weight, mean_gradient_T)
            spread(index, query, key_weight, probe_T)
            add_rows(rows, share, mean_gradient_T, score_gradient, probe_T, totals.hidden)

    return backward  # type: ignore[no-any-return]


def _backward_parts(num_heads: int, head_width: int, width: int) -> tuple[Callable[..., None], ...]:
    inner = num_heads * head_width
    lanes = num_heads * divisor_up_to(_MAX_LANES // num_heads, head_width)
    row_lanes = divisor_up_to(_MAX_LANES, width)

    @kernel(error_model="numpy")
    def spread(index: int, rows: Float, weight: Float, result: Float) -> None:
        """Write weight_h' · row_h for all heads h, [head, column]."""
        for column in range(0, width, row_lanes):
            for head in range(num_heads):
                total = fill(rows.dtype.type(0.0), row_lanes)
                for place in range(head, inner, num_heads):
                    total = total + load(weight, place, column, row_lanes) * rows[index, place]
                store(result, head, column, total)

    @kernel(error_model="numpy")
    def add_outer(index: int, rows: Float, heads: Float, result: Float) -> None:
        """Add the product of a row and a column of all heads to a transposed weight gradient."""
        for start in range(0, inner, lanes):
            row = load(rows, index, start, lanes)
            for column in range(width):
                product = tile(load(heads, column, 0, num_heads), lanes) * row
                store(result, column, start, load(result, column, start, lanes) + product)

    @kernel(error_model="numpy")
    def add_rows(
        keys: IntArray,
        first_weight: Float,
        first: Float,
        second_weight: Float,
        second: Float,
        result: Float,
    ) -> None:
        """Add the sums over heads of first_weight · first + second_weight · second to rows."""
        for column in range(0, width, row_lanes):
            for pair in range(len(keys)):
                total = load(result, keys[pair], column, row_lanes)
                other = fill(result.dtype.type(0.0), row_lanes)
                for head in range(num_heads):
                    total = total + load(first, head, column, row_lanes) * first_weight[pair, head]
                    other = (
                        other + load(second, head, column, row_lanes) * second_weight[pair, head]
                    )
                store(result, keys[pair], column, total + other)

    return spread, add_outer, add_rows
