"""Packed multi-head attention on the CPU, forward and backward, as compiled loops.

Every query has its own list of keys and reads no other rows; nothing is padded. The key and the
value of a row are adjacent columns of one array. Head h owns the columns h, h + H, h + 2H, … of
queries, keys and values (see `packed_attention`), so a vector of adjacent columns holds all heads
several times over: `fold` adds up the products of every head, and `tile` repeats the weights of all
heads for every column.

A kernel processes a range of queries and releases Python's global interpreter lock, so that several
threads can share the work.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tclgraph.arrays import IntArray, RealArray
from tclgraph.compilation import kernel
from tclgraph.lanes import divisor_up_to, exp, fill, fold, load, maximum, store, tile

# Columns that are processed at once. The vectors of a kernel should fit in the registers.
_MAX_LANES = 64


class AttentionInputs(NamedTuple):
    """What forward and backward read: query q attends to the rows keys[start[q]:start[q + 1]]."""

    query: RealArray
    """[query, column]."""
    key_value: RealArray
    """[row, column]: the columns of the row's key, then those of its value."""
    start: IntArray
    keys: IntArray


def _lanes(num_heads: int, head_width: int) -> int:
    """Return the number of columns to process at once: some columns of all heads."""
    return num_heads * divisor_up_to(_MAX_LANES // num_heads, head_width)


@lru_cache
def forward_kernel(num_heads: int, head_width: int) -> Callable[..., None]:
    """Return the forward kernel for these sizes, which are constants for the compiler."""
    width, lanes = num_heads * head_width, _lanes(num_heads, head_width)

    @kernel(error_model="numpy")
    def forward(
        first_query: int,
        last_query: int,
        inputs: AttentionInputs,
        output: RealArray,
        weight: RealArray,
    ) -> None:
        """Write the attention output of the queries, and the weights, [pair, head]."""
        query, key_value, start, keys = inputs
        number = query.dtype.type
        scale = number(1.0 / math.sqrt(head_width))
        for index in range(first_query, last_query):
            first, last = start[index], start[index + 1]
            if last - first == 1:  # a single key has the weight 1
                store(weight, first, 0, fill(number(1.0), num_heads))
                for column in range(0, width, lanes):
                    store(
                        output, index, column, load(key_value, keys[first], width + column, lanes)
                    )
                continue
            highest = fill(number(-np.inf), num_heads)
            for pair in range(first, last):
                score = fill(number(0.0), num_heads)
                for column in range(0, width, lanes):
                    key = load(key_value, keys[pair], column, lanes)
                    score = score + fold(load(query, index, column, lanes) * key, num_heads)
                score = score * scale
                store(weight, pair, 0, score)
                highest = maximum(highest, score)
            total = fill(number(0.0), num_heads)
            for pair in range(first, last):
                share = exp(load(weight, pair, 0, num_heads) - highest)
                store(weight, pair, 0, share)
                total = total + share
            inverse = number(1.0) / total
            for pair in range(first, last):
                store(weight, pair, 0, load(weight, pair, 0, num_heads) * inverse)
            for column in range(0, width, lanes):
                weighted_sum = fill(number(0.0), lanes)
                for pair in range(first, last):
                    share = tile(load(weight, pair, 0, num_heads), lanes)
                    value = load(key_value, keys[pair], width + column, lanes)
                    weighted_sum = weighted_sum + share * value
                store(output, index, column, weighted_sum)

    return forward  # type: ignore[no-any-return]


@lru_cache
def backward_kernel(num_heads: int, head_width: int) -> Callable[..., None]:
    """Return the backward kernel for these sizes, which are constants for the compiler."""
    width, lanes = num_heads * head_width, _lanes(num_heads, head_width)

    @kernel(error_model="numpy")
    def backward(
        first_query: int,
        last_query: int,
        inputs: AttentionInputs,
        weight: RealArray,
        gradient: RealArray,
        query_gradient: RealArray,
        key_value_gradient: RealArray,
    ) -> None:
        """Write the gradients of queries, and add to those of keys and values.

        `gradient` is the gradient of the output, and `weight` what the forward kernel wrote.
        """
        query, key_value, start, keys = inputs
        number = query.dtype.type
        scale = number(1.0 / math.sqrt(head_width))
        longest = 0
        for index in range(first_query, last_query):
            longest = max(longest, start[index + 1] - start[index])
        score_gradient = np.empty((longest, num_heads), query.dtype)
        for index in range(first_query, last_query):
            first, last = start[index], start[index + 1]
            mean = fill(number(0.0), num_heads)
            for pair in range(first, last):
                share = load(weight, pair, 0, num_heads)
                derivative = fill(number(0.0), num_heads)
                for column in range(0, width, lanes):
                    output_gradient = load(gradient, index, column, lanes)
                    value = load(key_value, keys[pair], width + column, lanes)
                    derivative = derivative + fold(output_gradient * value, num_heads)
                    total = load(key_value_gradient, keys[pair], width + column, lanes)
                    total = total + tile(share, lanes) * output_gradient
                    store(key_value_gradient, keys[pair], width + column, total)
                store(score_gradient, pair - first, 0, derivative)
                mean = mean + share * derivative
            if last - first == 1:  # the weight of a single key is constant
                for column in range(0, width, lanes):
                    store(query_gradient, index, column, fill(number(0.0), lanes))
                continue
            for pair in range(first, last):
                deviation = load(score_gradient, pair - first, 0, num_heads) - mean
                derivative = load(weight, pair, 0, num_heads) * deviation * scale
                store(score_gradient, pair - first, 0, derivative)
            for column in range(0, width, lanes):
                own = load(query, index, column, lanes)
                query_total = fill(number(0.0), lanes)
                for pair in range(first, last):
                    derivative = tile(load(score_gradient, pair - first, 0, num_heads), lanes)
                    key = load(key_value, keys[pair], column, lanes)
                    query_total = query_total + derivative * key
                    total = load(key_value_gradient, keys[pair], column, lanes)
                    store(key_value_gradient, keys[pair], column, total + derivative * own)
                store(query_gradient, index, column, query_total)

    return backward  # type: ignore[no-any-return]
