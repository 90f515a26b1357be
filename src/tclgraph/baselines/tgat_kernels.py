"""Scores of TGAT on the CPU, as compiled loops without gradients.

Shapes: S segments, B queries, M cells, H heads, D width of a node, T width of a time code, P = 2T
turns of a timestamp, F = D + T, K hidden width of the decoder. Arrays with queries or cells as
columns have `CELLS_AT_ONCE` further columns.
"""

from typing import NamedTuple

import numpy as np

from tclgraph.arrays import RealArray
from tclgraph.compilation import kernel
from tclgraph.layers.cell_kernels import (
    CELLS_AT_ONCE,
    add_product,
    apply_relu,
    divide_by_deviation,
    fill_rows,
)
from tclgraph.layers.segment_kernels import (
    attend_moving_segments,
    attend_segments,
    score_segments,
    segments_up_to,
    work_memory,
)
from tclgraph.layers.segments import (
    Attended,
    MovingCells,
    NeighborTable,
    Queries,
    Segments,
    StateTables,
)

_CELLS_PER_STEP = 256
"""Number of cells to compute together, so that the arrays in between fit in cache."""


class TargetWeights(NamedTuple):
    """Weights of both layers (see `RotatedLayer`) and of the decoder, as maps of row vectors."""

    first_code: RealArray
    """[H · T, F] From the time codes of the first layer to its norm."""
    first_hidden: RealArray
    """[D, D] From the norm of the first layer to its hidden layer."""
    node_hidden: RealArray
    """[node, D] Part of the first hidden layer that comes from the node's features."""
    between: RealArray
    """[D, D + H · T + F] From the hidden layer of the first layer to that of the second layer, to
    the queries in the space of the time codes, and to the second norm."""
    between_bias: RealArray
    """[D + H · T + F]"""
    second_code: RealArray
    second_hidden: RealArray
    output: RealArray
    """[D, K] From the hidden layer of the second layer to that of the decoder."""
    output_bias: RealArray
    """[K]"""
    score: RealArray
    """[K] From the hidden layer of the decoder to the score."""


@kernel
def score_targets(
    first: int,
    last: int,
    segments: Segments,
    tables: StateTables,
    earlier: NeighborTable,
    weights: TargetWeights,
    queries: Queries,
    scores: RealArray,
) -> None:
    """Write the scores of the segments from `first` to `last` to the scores, [B, targets]."""
    now, source = queries
    full, (_, heads, _) = weights.first_code.shape[1], tables.value.shape
    first_work = work_memory(segments, heads, now, len(now), full)
    second_work = work_memory(segments, heads, now, len(weights.first_hidden), full)
    num_columns = max(_CELLS_PER_STEP, len(scores)) + CELLS_AT_ONCE
    attended = Attended(
        np.zeros((len(weights.first_code), num_columns), now.dtype),
        np.zeros((full, num_columns), now.dtype),
    )
    hidden = np.zeros((len(weights.between), num_columns), now.dtype)
    between = np.zeros((len(weights.between_bias), num_columns), now.dtype)
    target = np.zeros((len(source), num_columns), now.dtype)
    width, num_rows = len(hidden), len(between)
    moving = MovingCells(hidden, between[width : num_rows - full], between[num_rows - full :])
    while first < last:
        stop, num_cells = segments_up_to(first, last, segments, _CELLS_PER_STEP)
        attend_segments(first, stop, segments, tables, now, first_work, attended)
        _fill_by_node(first, stop, segments, weights.node_hidden, hidden)
        _merge(weights.first_code, weights.first_hidden, attended, hidden, num_cells)
        fill_rows(weights.between_bias, between, 0, num_cells)
        add_product(weights.between, hidden, between, num_cells)
        attend_moving_segments(first, stop, segments, earlier, moving, now, second_work, attended)
        _merge(weights.second_code, weights.second_hidden, attended, between[:width], num_cells)
        fill_rows(weights.output_bias, target, 0, num_cells)
        add_product(weights.output, between[:width], target, num_cells)
        score_segments(first, stop, segments, target, source, weights.score, scores)
        first = stop


@kernel
def _merge(
    code: RealArray,
    hidden_weight: RealArray,
    attended: Attended,
    hidden: RealArray,
    num_cells: int,
) -> None:
    """Complete the hidden layer, which has the part that comes from the node's own vector."""
    normed = attended.sums
    add_product(code, attended.code, normed, num_cells)
    divide_by_deviation(normed, len(hidden_weight), num_cells)
    add_product(hidden_weight, normed, hidden, num_cells)
    apply_relu(hidden, num_cells)


@kernel
def _fill_by_node(
    first: int, last: int, segments: Segments, table: RealArray, result: RealArray
) -> None:
    """Write a row of the table to all cells of a segment; the row is that of the node."""
    cell = 0
    for segment in range(first, last):
        end = cell + segments.end[segment] - segments.begin[segment]
        fill_rows(table[segments.own[segment]], result, cell, end)
        cell = end
