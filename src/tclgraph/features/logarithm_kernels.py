"""log(1 + x) in single precision, for many numbers at a time.

The library function works on one number at a time, in double precision, and would take a third of
the time of all features.
"""

from typing import Any

import numpy as np

from tclgraph.compilation import REORDERED_SUMS, kernel


@kernel(**REORDERED_SUMS)
def log_one_plus(value: Any) -> Any:
    """Return log(1 + value) of a number that is not negative.

    The number 1 + value is split into a power of two and a factor near 1, whose logarithm is a
    polynomial. The error is about one unit in the last place. Near 0 it is larger, about 1e-7,
    because 1 + value is rounded first.
    """
    bits = np.float32(np.float32(value) + np.float32(1.0)).view(np.int32)
    power = np.int32((bits >> np.int32(23)) - np.int32(126))
    mantissa = np.int32((bits & np.int32(0x007FFFFF)) | np.int32(0x3F000000))
    half = np.int32(mantissa).view(np.float32)  # between 1/2 and 1
    is_low = half < np.float32(0.70710678)
    exponent = np.float32(power - np.int32(1)) if is_low else np.float32(power)
    rest = (half + half if is_low else half) - np.float32(1.0)
    square = rest * rest
    series = np.float32(7.0376836292e-2)
    series = series * rest - np.float32(1.1514610310e-1)
    series = series * rest + np.float32(1.1676998740e-1)
    series = series * rest - np.float32(1.2420140846e-1)
    series = series * rest + np.float32(1.4249322787e-1)
    series = series * rest - np.float32(1.6668057665e-1)
    series = series * rest + np.float32(2.0000714765e-1)
    series = series * rest - np.float32(2.4999993993e-1)
    series = series * rest + np.float32(3.3333331174e-1)
    # ln 2 is split into two parts, so that the sum keeps all its digits.
    low = series * rest * square - np.float32(2.12194440e-4) * exponent
    low -= np.float32(0.5) * square
    return rest + low + np.float32(0.693359375) * exponent


@kernel(**REORDERED_SUMS)
def log_all(values: Any) -> None:
    """Replace every number of an array by log(1 + number)."""
    for index in range(len(values)):
        values[index] = log_one_plus(values[index])


@kernel(**REORDERED_SUMS)
def log_columns(table: Any, is_logarithm: Any) -> None:
    """Replace the numbers of some columns by log(1 + number); the rest must not be negative."""
    for row in range(len(table)):
        numbers = table[row]
        for column in range(len(numbers)):
            logarithm = log_one_plus(numbers[column])
            numbers[column] = logarithm if is_logarithm[column] else numbers[column]
