"""Compiled LayerNorm of a sum, forward and backward."""

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from tclgraph.arrays import RealArray
from tclgraph.compilation import kernel
from tclgraph.lanes import divisor_up_to, fill, load, store, total

# Columns that are processed at once. The vectors of a kernel should fit in the registers.
_MAX_LANES = 64
_EPSILON = 1e-5  # torch's default


@lru_cache
def forward_kernel(width: int) -> Callable[..., None]:
    """Return the forward kernel for this width, which is a constant for the compiler."""
    lanes = divisor_up_to(_MAX_LANES, width)

    @kernel(error_model="numpy")
    def forward(
        first: RealArray,
        second: RealArray,
        affine: RealArray,
        normed: RealArray,
        inverse: RealArray,
        output: RealArray,
    ) -> None:
        """Write LN(first + second + offset), which is `scale` · normed + `shift`.

        `affine` has the rows offset, scale and shift; `inverse` is 1 / deviation of each row. The
        sum is written to `first`.
        """
        number = first.dtype.type
        for row in range(len(first)):
            row_total = number(0.0)
            for column in range(0, width, lanes):
                value = load(first, row, column, lanes) + load(second, row, column, lanes)
                value = value + load(affine, 0, column, lanes)
                store(first, row, column, value)
                row_total += total(value)
            mean = row_total * number(1.0 / width)
            squares = number(0.0)
            for column in range(0, width, lanes):
                deviation = load(first, row, column, lanes) - mean
                squares += total(deviation * deviation)
            factor = number(1.0) / np.sqrt(squares * number(1.0 / width) + number(_EPSILON))
            inverse[row] = factor
            for column in range(0, width, lanes):
                value = (load(first, row, column, lanes) - mean) * factor
                store(normed, row, column, value)
                value = value * load(affine, 1, column, lanes) + load(affine, 2, column, lanes)
                store(output, row, column, value)

    return forward  # type: ignore[no-any-return]


@lru_cache
def backward_kernel(width: int) -> Callable[..., None]:
    """Return the backward kernel for this width, which is a constant for the compiler."""
    lanes = divisor_up_to(_MAX_LANES, width)

    @kernel(error_model="numpy")
    def backward(
        gradient: RealArray,
        affine: RealArray,
        normed: RealArray,
        inverse: RealArray,
        affine_gradient: RealArray,
        sum_gradient: RealArray,
    ) -> None:
        """Write the gradient of the sum, and add to those of offset, scale and shift."""
        number = gradient.dtype.type
        for row in range(len(gradient)):
            row_mean, row_slope = number(0.0), number(0.0)
            for column in range(0, width, lanes):
                incoming = load(gradient, row, column, lanes)
                value = load(normed, row, column, lanes)
                scaled = incoming * load(affine, 1, column, lanes)
                row_mean += total(scaled)
                row_slope += total(scaled * value)
                earlier = load(affine_gradient, 1, column, lanes)
                store(affine_gradient, 1, column, earlier + incoming * value)
                earlier = load(affine_gradient, 2, column, lanes)
                store(affine_gradient, 2, column, earlier + incoming)
            row_mean *= number(1.0 / width)
            row_slope *= number(1.0 / width)
            for column in range(0, width, lanes):
                scaled = load(gradient, row, column, lanes) * load(affine, 1, column, lanes)
                value = scaled - load(normed, row, column, lanes) * row_slope
                value = (value - fill(row_mean, lanes)) * inverse[row]
                store(sum_gradient, row, column, value)
                earlier = load(affine_gradient, 0, column, lanes)
                store(affine_gradient, 0, column, earlier + value)

    return backward  # type: ignore[no-any-return]
