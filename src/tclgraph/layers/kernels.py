"""Packed multi-head attention on the CPU, forward and backward, as compiled loops.

Every query has its own list of keys and touches no other; nothing is padded. A row's key and its
value lie side by side. Head h owns the columns h, h + H, h + 2H, … of queries, keys and values (see
`packed_attention`), so that the innermost loops run over all heads at once. Everything is first
copied into small arrays of a fixed size: only then does the compiler dare to use wide registers.

A kernel works on a range of queries and lets go of Python's lock, so that threads can share a job.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import overload
from numpy.typing import NDArray

from tclgraph.arrays import IntArray

Float = NDArray[np.floating[Any]]

_options: dict[str, Any] = {
    "cache": True,
    "error_model": "numpy",
    # Sums may be taken in any order, but NaN and infinity stay what they are.
    "fastmath": {"contract", "arcp", "nsz", "reassoc"},
    "nogil": True,
}


def _exp(value: float) -> float:
    return math.exp(value)


@overload(_exp, inline="always")
def _compiled_exp(value: Any) -> Any:
    """In single precision a polynomial, exact to a unit in the last place.

    The library's exponential takes one number at a time, which would be half of all the work.
    """

    def double(value: Any) -> Any:
        return math.exp(value)

    def single(value: Any) -> Any:
        bounded = max(value, np.float32(-87.0))
        whole = np.floor(bounded * np.float32(1.44269504) + np.float32(0.5))
        # ln 2 in two parts, so that the remainder keeps all its digits.
        rest = bounded - whole * np.float32(0.693359375) + whole * np.float32(2.12194440e-4)
        series = np.float32(1.9875691500e-4)
        series = series * rest + np.float32(1.3981999507e-3)
        series = series * rest + np.float32(8.3334519073e-3)
        series = series * rest + np.float32(4.1665795894e-2)
        series = series * rest + np.float32(1.6666665459e-1)
        series = series * rest + np.float32(5.0000001201e-1)
        series = series * rest * rest + rest + np.float32(1.0)
        power = np.int32((np.int32(whole) + np.int32(127)) << np.int32(23)).view(np.float32)
        return series * power

    return single if value == types.float32 else double


@lru_cache
def forward_kernel(num_heads: int, head_width: int) -> Callable[..., None]:
    """Compiled for these sizes, so that the innermost loops can be unrolled."""
    width = num_heads * head_width

    @njit(**_options)  # type: ignore[untyped-decorator]
    def forward(
        first_query: int,
        last_query: int,
        query: Float,
        key_value: Float,
        start: IntArray,
        keys: IntArray,
        output: Float,
        weight: Float,
    ) -> None:
        """What queries take from their keys into `output`; shares, [pair, head], into `weight`."""
        scale = query.dtype.type(1.0 / math.sqrt(head_width))
        asked = np.empty(width, query.dtype)
        product = np.empty(width, query.dtype)
        taken = np.empty(width, query.dtype)
        best = np.empty(num_heads, query.dtype)
        share = np.empty(num_heads, query.dtype)
        total = np.empty(num_heads, query.dtype)
        for at in range(first_query, last_query):
            first, last = start[at], start[at + 1]
            if last - first == 1:  # an only key takes it all
                row = keys[first]
                for head in range(num_heads):
                    weight[first, head] = 1.0
                for column in range(width):
                    output[at, column] = key_value[row, width + column]
                continue
            for column in range(width):
                asked[column] = query[at, column] * scale
                taken[column] = 0.0
            for head in range(num_heads):
                best[head] = -np.inf
                total[head] = 0.0
            for pair in range(first, last):
                row = keys[pair]
                for column in range(width):
                    product[column] = asked[column] * key_value[row, column]
                for head in range(num_heads):
                    score = product[head]
                    for turn in range(1, head_width):
                        score += product[turn * num_heads + head]
                    weight[pair, head] = score
                    best[head] = max(best[head], score)
            for pair in range(first, last):
                row = keys[pair]
                for head in range(num_heads):
                    share[head] = _exp(weight[pair, head] - best[head])
                    weight[pair, head] = share[head]
                    total[head] += share[head]
                for turn in range(head_width):
                    for head in range(num_heads):
                        column = turn * num_heads + head
                        taken[column] += share[head] * key_value[row, width + column]
            for head in range(num_heads):
                total[head] = 1.0 / total[head]
            for pair in range(first, last):
                for head in range(num_heads):
                    weight[pair, head] *= total[head]
            for turn in range(head_width):
                for head in range(num_heads):
                    column = turn * num_heads + head
                    output[at, column] = taken[column] * total[head]

    return forward  # type: ignore[no-any-return]


@lru_cache
def backward_kernel(num_heads: int, head_width: int) -> Callable[..., None]:
    """Compiled for these sizes, so that the innermost loops can be unrolled."""
    width = num_heads * head_width

    @njit(**_options)  # type: ignore[untyped-decorator]
    def backward(
        first_query: int,
        last_query: int,
        gradient: Float,
        query: Float,
        key_value: Float,
        start: IntArray,
        keys: IntArray,
        weight: Float,
        for_query: Float,
        for_key_value: Float,
    ) -> None:
        """Gradients, given that of the output; those of keys and values are added to."""
        scale = query.dtype.type(1.0 / math.sqrt(head_width))
        longest = 0
        for at in range(first_query, last_query):
            longest = max(longest, start[at + 1] - start[at])
        asked = np.empty(width, query.dtype)
        given = np.empty(width, query.dtype)
        product = np.empty(width, query.dtype)
        spread = np.empty(width, query.dtype)
        into = np.empty(width, query.dtype)
        mean = np.empty(num_heads, query.dtype)
        flow = np.empty((longest, num_heads), query.dtype)
        for at in range(first_query, last_query):
            first, last = start[at], start[at + 1]
            if last - first == 1:
                row = keys[first]
                for column in range(width):
                    for_key_value[row, width + column] += gradient[at, column]
                    for_query[at, column] = 0.0
                continue
            for column in range(width):
                asked[column] = query[at, column] * scale
                given[column] = gradient[at, column]
                into[column] = 0.0
            for head in range(num_heads):
                mean[head] = 0.0
            for pair in range(first, last):
                row = keys[pair]
                for column in range(width):
                    product[column] = given[column] * key_value[row, width + column]
                for head in range(num_heads):
                    through = product[head]
                    for turn in range(1, head_width):
                        through += product[turn * num_heads + head]
                    flow[pair - first, head] = through
                    mean[head] += weight[pair, head] * through
                for turn in range(head_width):
                    for head in range(num_heads):
                        spread[turn * num_heads + head] = weight[pair, head]
                for column in range(width):
                    for_key_value[row, width + column] += spread[column] * given[column]
            for pair in range(first, last):
                row = keys[pair]
                for turn in range(head_width):
                    for head in range(num_heads):
                        spread[turn * num_heads + head] = weight[pair, head] * (
                            flow[pair - first, head] - mean[head]
                        )
                for column in range(width):
                    into[column] += spread[column] * key_value[row, column]
                for column in range(width):
                    for_key_value[row, column] += spread[column] * asked[column]
            for column in range(width):
                for_query[at, column] = into[column] * scale

    return backward  # type: ignore[no-any-return]
