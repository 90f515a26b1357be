"""Compiled sum of input embeddings, forward and backward; see `input_embeddings` for the terms."""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from tclgraph.arrays import BoolArray, IntArray, RealArray
from tclgraph.compilation import kernel
from tclgraph.lanes import divisor_up_to, load, mask, store

# Columns that are processed at once. The vectors of a kernel should fit in the registers.
_MAX_LANES = 32


class Tables(NamedTuple):
    """Embedding tables, or their gradients."""

    node: RealArray
    depth: RealArray
    interval: RealArray
    """[1, column]: the embedding of an interval of 1."""


class Rows(NamedTuple):
    """What every row is embedded by."""

    node: IntArray
    depth: IntArray
    interval: RealArray
    is_kept: BoolArray
    """Dropout: the numbers that remain, [row, column]. Without rows there is no dropout."""


def columns_at_once(width: int) -> int:
    """Return the number of columns to process at once."""
    return divisor_up_to(_MAX_LANES, width)


@lru_cache
def forward_kernel(width: int) -> Callable[..., None]:
    """Return the forward kernel for this width, which is a constant for the compiler."""
    lanes = columns_at_once(width)

    @kernel(error_model="numpy")
    def forward(
        first: int, last: int, tables: Tables, rows: Rows, scale: float, output: RealArray
    ) -> None:
        """Write the embeddings of a range of rows; those that remain are multiplied by `scale`."""
        has_dropout = len(rows.is_kept) > 0
        for row in range(first, last):
            for column in range(0, width, lanes):
                value = load(tables.node, rows.node[row], column, lanes)
                value = value + load(tables.depth, rows.depth[row], column, lanes)
                value = value + load(tables.interval, 0, column, lanes) * rows.interval[row]
                if has_dropout:
                    value = mask(value * scale, rows.is_kept, row, column)
                store(output, row, column, value)

    return forward  # type: ignore[no-any-return]


@lru_cache
def backward_kernel(width: int) -> Callable[..., None]:
    """Return the backward kernel for this width, which is a constant for the compiler."""
    lanes = columns_at_once(width)

    @kernel(error_model="numpy")
    def backward(
        first: int, last: int, gradient: RealArray, rows: Rows, scale: float, totals: Tables
    ) -> None:
        """Add the gradients of a range of columns to those of the tables."""
        has_dropout = len(rows.is_kept) > 0
        for row in range(len(gradient)):
            node, depth = rows.node[row], rows.depth[row]
            for column in range(first, last, lanes):
                value = load(gradient, row, column, lanes)
                if has_dropout:
                    value = mask(value * scale, rows.is_kept, row, column)
                earlier = load(totals.node, node, column, lanes)
                store(totals.node, node, column, earlier + value)
                earlier = load(totals.depth, depth, column, lanes)
                store(totals.depth, depth, column, earlier + value)
                earlier = load(totals.interval, 0, column, lanes)
                store(totals.interval, 0, column, earlier + value * rows.interval[row])

    return backward  # type: ignore[no-any-return]
