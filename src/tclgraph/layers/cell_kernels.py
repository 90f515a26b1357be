"""Dense layers on the CPU, as compiled loops without gradients.

The inputs of a layer are *cells*, which are the columns of an array: [width, cells]. So a vector
holds a number of several adjacent cells, and nothing has to be summed within a vector. An array has
`CELLS_AT_ONCE` columns more than cells, because the last vector may hold fewer cells.
"""

from typing import Any

from tclgraph.arrays import RealArray
from tclgraph.compilation import kernel
from tclgraph.lanes import fill, load, load_rows, maximum, outer, sqrt, store, store_rows

CELLS_AT_ONCE = 16
ROWS_AT_ONCE = 8
"""Sums that are computed at once: 8 rows of 16 cells take a quarter of the registers of AVX-512."""
_EPSILON = 1e-5  # torch's default
_EXACT: dict[str, Any] = {"error_model": "numpy"}


@kernel(**_EXACT)
def fill_rows(numbers: RealArray, result: RealArray, begin: int, end: int) -> None:
    """Write a number per row to the cells from `begin` to `end`."""
    for row in range(len(numbers)):
        lanes = fill(numbers[row], CELLS_AT_ONCE)
        for cell in range(begin, end, CELLS_AT_ONCE):
            store(result, row, cell, lanes)


@kernel(inline="always", **_EXACT)
def sums_of(
    sums: Any, depth: int, weight: RealArray, row: int, right: RealArray, cell: int, rows: int
) -> Any:
    """Return sums plus `rows` rows of weightᵀ · right, from `row` on, at the cells from `cell` on.

    Both have `depth` rows.
    """
    for column in range(depth):
        factor = load(right, column, cell, CELLS_AT_ONCE)
        sums = sums + outer(load(weight, column, row, rows), factor)
    return sums


@kernel(**_EXACT)
def add_product(weight: RealArray, right: RealArray, result: RealArray, num_cells: int) -> None:
    """Add weightᵀ · right to the result."""
    depth, num_rows = weight.shape
    block_end = num_rows - num_rows % ROWS_AT_ONCE
    for cell in range(0, num_cells, CELLS_AT_ONCE):
        for row in range(0, block_end, ROWS_AT_ONCE):
            sums = load_rows(result, row, cell, ROWS_AT_ONCE, CELLS_AT_ONCE)
            sums = sums_of(sums, depth, weight, row, right, cell, ROWS_AT_ONCE)
            store_rows(result, row, cell, ROWS_AT_ONCE, sums)
        for row in range(block_end, num_rows):
            sums = load(result, row, cell, CELLS_AT_ONCE)
            store(result, row, cell, sums_of(sums, depth, weight, row, right, cell, 1))


@kernel(**_EXACT)
def apply_relu(values: RealArray, num_cells: int) -> None:
    """Replace negative numbers by 0."""
    zero = fill(values.dtype.type(0.0), CELLS_AT_ONCE)
    for row in range(len(values)):
        for cell in range(0, num_cells, CELLS_AT_ONCE):
            store(values, row, cell, maximum(load(values, row, cell, CELLS_AT_ONCE), zero))


@kernel(**_EXACT)
def divide_by_deviation(values: RealArray, num_rows: int, num_cells: int) -> None:
    """Divide the first rows of every cell by the deviation of all its rows, whose mean is 0.

    This is LayerNorm without weights.
    """
    number = values.dtype.type
    for cell in range(0, num_cells, CELLS_AT_ONCE):
        squares = fill(number(0.0), CELLS_AT_ONCE)
        for row in range(len(values)):
            value = load(values, row, cell, CELLS_AT_ONCE)
            squares = squares + value * value
        variance = squares * number(1.0 / len(values))
        inverse = number(1.0) / sqrt(variance + number(_EPSILON))
        for row in range(num_rows):
            store(values, row, cell, load(values, row, cell, CELLS_AT_ONCE) * inverse)
