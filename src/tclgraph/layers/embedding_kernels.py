"""Compiled sum of input embeddings, forward and backward; see `input_embeddings` for the terms."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tclgraph.arrays import IntArray
from tclgraph.compilation import kernel

Float = NDArray[np.floating[Any]]

_options: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract", "nsz"}}


class Tables(NamedTuple):
    """Embedding tables, or their gradients."""

    node: Float
    depth: Float
    interval: Float
    """[column]: the embedding of an interval of 1."""


class Rows(NamedTuple):
    """What every row is embedded by."""

    node: IntArray
    depth: IntArray
    interval: Float
    is_kept: NDArray[np.bool_]
    """Dropout: the numbers that remain, [row, column]. Without rows there is no dropout."""


@kernel(**_options)
def embed(first: int, last: int, tables: Tables, rows: Rows, scale: float, output: Float) -> None:
    """Write the embeddings of a range of rows."""
    width = output.shape[1]
    has_dropout = len(rows.is_kept) > 0
    for row in range(first, last):
        node, depth, interval = rows.node[row], rows.depth[row], rows.interval[row]
        for column in range(width):
            output[row, column] = (
                tables.node[node, column]
                + tables.depth[depth, column]
                + interval * tables.interval[column]
            )
        if has_dropout:
            for column in range(width):
                factor = scale if rows.is_kept[row, column] else output.dtype.type(0.0)
                output[row, column] *= factor


@kernel(**_options)
def embed_backward(
    first: int, last: int, gradient: Float, rows: Rows, scale: float, totals: Tables
) -> None:
    """Add the gradients of a range of columns to those of the tables."""
    has_dropout = len(rows.is_kept) > 0
    local = np.empty(last - first, gradient.dtype)
    for row in range(len(gradient)):
        node, depth, interval = rows.node[row], rows.depth[row], rows.interval[row]
        for column in range(first, last):
            local[column - first] = gradient[row, column]
        if has_dropout:
            for column in range(first, last):
                factor = scale if rows.is_kept[row, column] else gradient.dtype.type(0.0)
                local[column - first] *= factor
        for column in range(first, last):
            totals.node[node, column] += local[column - first]
        for column in range(first, last):
            totals.depth[depth, column] += local[column - first]
        for column in range(first, last):
            totals.interval[column] += interval * local[column - first]
