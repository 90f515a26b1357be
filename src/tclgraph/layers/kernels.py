"""Packed multi-head attention on the CPU, forward and backward, as compiled loops.

Every query has its own list of keys and reads no other rows; nothing is padded. The key and the
value of a row are adjacent columns of one array. Head h owns the columns h, h + H, h + 2H, … of
queries, keys and values (see `packed_attention`), so the innermost loops run over all heads. Rows
are copied into small local arrays first, because only then does the compiler vectorize the loops.

A kernel processes a range of queries and releases Python's global interpreter lock, so that several
threads can share the work.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import overload
from numpy.typing import NDArray

from tclgraph.compilation import kernel
from tclgraph.arrays import IntArray

Float = NDArray[np.floating[Any]]

_options: dict[str, Any] = {
    "error_model": "numpy",
    # The compiler may reorder sums, but must handle NaN and infinity correctly.
    "fastmath": {"contract", "arcp", "nsz", "reassoc"},
}


class AttentionInputs(NamedTuple):
    """What forward and backward read: query q attends to the rows keys[start[q]:start[q + 1]]."""

    query: Float
    """[query, column]."""
    key_value: Float
    """[row, column]: the columns of the row's key, then those of its value."""
    start: IntArray
    keys: IntArray


def _exp(value: float) -> float:
    return math.exp(value)


@overload(_exp, inline="always")
def _compiled_exp(value: Any) -> Any:
    """Replace `_exp` in compiled code, in single precision by a polynomial.

    The polynomial is exact to one unit in the last place. The library function cannot be vectorized
    and would take half of the kernel's time.
    """

    def double(value: Any) -> Any:
        return math.exp(value)

    def single(value: Any) -> Any:
        bounded = max(value, np.float32(-87.0))
        power = np.floor(bounded * np.float32(1.44269504) + np.float32(0.5))
        # ln 2 is split into two parts, so that the remainder keeps all its digits.
        rest = bounded - power * np.float32(0.693359375) + power * np.float32(2.12194440e-4)
        series = np.float32(1.9875691500e-4)
        series = series * rest + np.float32(1.3981999507e-3)
        series = series * rest + np.float32(8.3334519073e-3)
        series = series * rest + np.float32(4.1665795894e-2)
        series = series * rest + np.float32(1.6666665459e-1)
        series = series * rest + np.float32(5.0000001201e-1)
        series = series * rest * rest + rest + np.float32(1.0)
        exponent_bits = np.int32((np.int32(power) + np.int32(127)) << np.int32(23))
        return series * exponent_bits.view(np.float32)

    return single if value == types.float32 else double


@lru_cache
def forward_kernel(num_heads: int, head_width: int) -> Callable[..., None]:
    """Return the forward kernel for these sizes; constant sizes let the compiler unroll loops."""
    width = num_heads * head_width

    @kernel(**_options)
    def forward(
        first_query: int,
        last_query: int,
        inputs: AttentionInputs,
        output: Float,
        weight: Float,
    ) -> None:
        """Write the attention output of the queries, and the weights, [pair, head]."""
        query, key_value, start, keys = inputs
        scale = query.dtype.type(1.0 / math.sqrt(head_width))
        scaled_query = np.empty(width, query.dtype)
        product = np.empty(width, query.dtype)
        weighted_sum = np.empty(width, query.dtype)
        highest = np.empty(num_heads, query.dtype)
        share = np.empty(num_heads, query.dtype)
        total = np.empty(num_heads, query.dtype)
        for index in range(first_query, last_query):
            first, last = start[index], start[index + 1]
            if last - first == 1:  # a single key has the weight 1
                row = keys[first]
                for head in range(num_heads):
                    weight[first, head] = 1.0
                for column in range(width):
                    output[index, column] = key_value[row, width + column]
                continue
            for column in range(width):
                scaled_query[column] = query[index, column] * scale
                weighted_sum[column] = 0.0
            for head in range(num_heads):
                highest[head] = -np.inf
                total[head] = 0.0
            for pair in range(first, last):
                row = keys[pair]
                for column in range(width):
                    product[column] = scaled_query[column] * key_value[row, column]
                for head in range(num_heads):
                    score = product[head]
                    for part in range(1, head_width):
                        score += product[part * num_heads + head]
                    weight[pair, head] = score
                    highest[head] = max(highest[head], score)
            for pair in range(first, last):
                row = keys[pair]
                for head in range(num_heads):
                    share[head] = _exp(weight[pair, head] - highest[head])
                    weight[pair, head] = share[head]
                    total[head] += share[head]
                for part in range(head_width):
                    for head in range(num_heads):
                        column = part * num_heads + head
                        weighted_sum[column] += share[head] * key_value[row, width + column]
            for head in range(num_heads):
                total[head] = 1.0 / total[head]
            for pair in range(first, last):
                for head in range(num_heads):
                    weight[pair, head] *= total[head]
            for part in range(head_width):
                for head in range(num_heads):
                    column = part * num_heads + head
                    output[index, column] = weighted_sum[column] * total[head]

    return forward  # type: ignore[no-any-return]


@lru_cache
def backward_kernel(num_heads: int, head_width: int) -> Callable[..., None]:
    """Return the backward kernel for these sizes; constant sizes let the compiler unroll loops."""
    width = num_heads * head_width

    @kernel(**_options)
    def backward(
        first_query: int,
        last_query: int,
        inputs: AttentionInputs,
        weight: Float,
        gradient: Float,
        query_gradient: Float,
        key_value_gradient: Float,
    ) -> None:
        """Write the gradients of queries, and add to those of keys and values.

        `gradient` is the gradient of the output, and `weight` what the forward kernel wrote.
        """
        query, key_value, start, keys = inputs
        scale = query.dtype.type(1.0 / math.sqrt(head_width))
        longest = 0
        for index in range(first_query, last_query):
            longest = max(longest, start[index + 1] - start[index])
        scaled_query = np.empty(width, query.dtype)
        output_gradient = np.empty(width, query.dtype)
        product = np.empty(width, query.dtype)
        spread = np.empty(width, query.dtype)
        query_total = np.empty(width, query.dtype)
        mean_gradient = np.empty(num_heads, query.dtype)
        weight_gradient = np.empty((longest, num_heads), query.dtype)
        for index in range(first_query, last_query):
            first, last = start[index], start[index + 1]
            if last - first == 1:
                row = keys[first]
                for column in range(width):
                    key_value_gradient[row, width + column] += gradient[index, column]
                    query_gradient[index, column] = 0.0
                continue
            for column in range(width):
                scaled_query[column] = query[index, column] * scale
                output_gradient[column] = gradient[index, column]
                query_total[column] = 0.0
            for head in range(num_heads):
                mean_gradient[head] = 0.0
            for pair in range(first, last):
                row = keys[pair]
                for column in range(width):
                    product[column] = output_gradient[column] * key_value[row, width + column]
                for head in range(num_heads):
                    derivative = product[head]
                    for part in range(1, head_width):
                        derivative += product[part * num_heads + head]
                    weight_gradient[pair - first, head] = derivative
                    mean_gradient[head] += weight[pair, head] * derivative
                for part in range(head_width):
                    for head in range(num_heads):
                        spread[part * num_heads + head] = weight[pair, head]
                for column in range(width):
                    key_value_gradient[row, width + column] += (
                        spread[column] * output_gradient[column]
                    )
            for pair in range(first, last):
                row = keys[pair]
                for part in range(head_width):
                    for head in range(num_heads):
                        spread[part * num_heads + head] = weight[pair, head] * (
                            weight_gradient[pair - first, head] - mean_gradient[head]
                        )
                for column in range(width):
                    query_total[column] += spread[column] * key_value[row, column]
                for column in range(width):
                    key_value_gradient[row, column] += spread[column] * scaled_query[column]
            for column in range(width):
                query_gradient[index, column] = query_total[column] * scale

    return backward  # type: ignore[no-any-return]
