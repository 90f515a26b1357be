"""The exponential function of single numbers in compiled loops."""

import math
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload


def exponential(value: float) -> float:
    """Return e to the power of a number."""
    return math.exp(value)


@overload(exponential, inline="always")
def _compiled(value: Any) -> Any:
    """Replace `exponential` in compiled code, in single precision by a polynomial.

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
        result = series * exponent_bits.view(np.float32)
        return result if value > np.float32(-87.0) else np.float32(0.0)

    return single if value == types.float32 else double
