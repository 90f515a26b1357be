"""Compiled loops of `pair_scores`: the activation of hidden units, and its slope."""

import math
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from tclgraph.arrays import IntArray
from tclgraph.compilation import REORDERED_SUMS, kernel
from tclgraph.layers.exponential import exponential

_ROOT_OF_HALF = math.sqrt(0.5)
_HIGHEST_DENSITY = 1.0 / math.sqrt(2.0 * math.pi)


@kernel(**REORDERED_SUMS)
def activate(start: IntArray, addend: Any, hidden: Any, slope: Any) -> None:
    """Replace x = hidden + addend by GELU(x) = x · Φ(x), and write Φ(x) + x · φ(x) to `slope`.

    Φ is the normal distribution and φ its density. `start` has the first row of `hidden` of every
    row of `addend`, and the last end.
    """
    half = hidden.dtype.type(0.5)
    highest = hidden.dtype.type(_HIGHEST_DENSITY)
    for group in range(len(addend)):
        extra = addend[group]
        for row in range(start[group], start[group + 1]):
            values, slopes = hidden[row], slope[row]
            for unit in range(len(values)):
                value = values[unit] + extra[unit]
                density = exponential(-half * value * value)
                below = normal_distribution(value, density)
                values[unit] = value * below
                slopes[unit] = below + value * highest * density


@kernel(**REORDERED_SUMS)
def sum_groups(start: IntArray, values: Any, sums: Any) -> None:
    """Add the rows of every group to a row of `sums`."""
    for group in range(len(sums)):
        total = sums[group]
        for row in range(start[group], start[group + 1]):
            for unit in range(len(total)):
                total[unit] += values[row, unit]


def normal_distribution(value: float, density: float) -> float:  # noqa: ARG001
    """Return the probability of a normal variable below a value, given exp(-value² / 2)."""
    return 0.5 * (1.0 + math.erf(value * _ROOT_OF_HALF))


@overload(normal_distribution, inline="always")
def _compiled(value: Any, density: Any) -> Any:  # noqa: ARG001
    """Replace `normal_distribution` in compiled code, in single precision by a formula.

    The formula is exact to 1e-7 (Abramowitz and Stegun, 7.1.26). The library function cannot be
    vectorized.
    """

    def double(value: Any, density: Any) -> Any:  # noqa: ARG001
        return 0.5 * (1.0 + math.erf(value * _ROOT_OF_HALF))

    def single(value: Any, density: Any) -> Any:
        unit = np.float32(1.0)
        part = unit / (unit + np.float32(0.3275911 * _ROOT_OF_HALF) * abs(value))
        series = np.float32(0.5 * 1.061405429)
        series = series * part - np.float32(0.5 * 1.453152027)
        series = series * part + np.float32(0.5 * 1.421413741)
        series = series * part - np.float32(0.5 * 0.284496736)
        series = series * part + np.float32(0.5 * 0.254829592)
        half = np.float32(0.5)
        return half + math.copysign(half - series * part * density, value)

    return single if value == types.float32 else double
