"""Compare the kernels of dense layers with torch and numpy, in double precision."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from tclgraph.arrays import RealArray
from tclgraph.layers.cell_kernels import (
    CELLS_AT_ONCE,
    add_product,
    apply_relu,
    divide_by_deviation,
    fill_rows,
)

widths = st.integers(1, 20)  # with and without a rest of rows
cells = st.integers(1, 40)


def draw(seed: int, width: int, num_cells: int) -> RealArray:
    return np.random.default_rng(seed).standard_normal((width, num_cells + CELLS_AT_ONCE))


@given(widths, widths, cells)
def test_product(depth: int, width: int, num_cells: int) -> None:
    weight, right = (
        np.random.default_rng(0).standard_normal((depth, width)),
        draw(1, depth, num_cells),
    )
    result = draw(2, width, num_cells)
    expected = result + weight.T @ right
    add_product(weight, right, result, num_cells)
    assert_allclose(result[:, :num_cells], expected[:, :num_cells], atol=1e-12)


@given(widths, cells)
def test_division_by_the_deviation(width: int, num_cells: int) -> None:
    values = draw(0, width, num_cells)
    values -= values.mean(axis=0)
    rows, before = (width + 1) // 2, values.copy()
    expected = torch.nn.functional.layer_norm(torch.from_numpy(values.T.copy()), (width,)).T
    divide_by_deviation(values, rows, num_cells)
    assert_allclose(values[:rows, :num_cells], expected[:rows, :num_cells], atol=1e-12)
    assert_array_equal(values[rows:], before[rows:])


@given(widths, cells)
def test_relu(width: int, num_cells: int) -> None:
    values = draw(0, width, num_cells)
    expected = np.maximum(values, 0)
    apply_relu(values, num_cells)
    assert_array_equal(values[:, :num_cells], expected[:, :num_cells])


@given(widths, st.integers(0, 20), cells)
def test_fill(width: int, begin: int, num_cells: int) -> None:
    numbers, result = np.arange(width) + 0.5, np.zeros((width, begin + num_cells + CELLS_AT_ONCE))
    fill_rows(numbers, result, begin, begin + num_cells)
    assert_array_equal(result[:, :begin], 0)
    assert (result[:, begin : begin + num_cells] == numbers[:, None]).all()
