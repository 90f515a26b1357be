"""Compiled loops of `lists`."""

import math
from typing import Any

import numpy as np

from tclgraph.arrays import IntArray
from tclgraph.compilation import REORDERED_SUMS, kernel
from tclgraph.layers.exponential import exponential


@kernel(**REORDERED_SUMS)
def log_sum_exp(start: IntArray, values: Any, results: Any) -> None:
    """Write the log-sum-exp of each list of values, and the lowest number for an empty list."""
    lowest = np.finfo(values.dtype).min
    for index in range(len(results)):
        members = values[start[index] : start[index + 1]]
        highest = lowest
        for position in range(len(members)):
            highest = max(highest, members[position])
        total = values.dtype.type(0.0)
        for position in range(len(members)):
            total += exponential(members[position] - highest)
        results[index] = highest + math.log(total) if len(members) else lowest


@kernel(**REORDERED_SUMS)
def weigh_members(
    start: IntArray, values: Any, results: Any, gradient: Any, value_gradient: Any
) -> None:
    """Write the gradient of the values, given the log-sum-exps and the gradient of these."""
    for index in range(len(results)):
        first, end = start[index], start[index + 1]
        members, member_gradient = values[first:end], value_gradient[first:end]
        result, weight = results[index], gradient[index]
        for position in range(len(members)):
            member_gradient[position] = weight * exponential(members[position] - result)
