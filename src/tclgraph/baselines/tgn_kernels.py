"""Scores of TGN on the CPU, as compiled loops without gradients.

Shapes: B queries, M cells, H heads, T width of a time code, P = 2T turns of a timestamp, F hidden
width, K hidden width of the decoder. Arrays with queries or cells as columns have `CELLS_AT_ONCE`
further columns.
"""

from typing import NamedTuple

import numpy as np

from tclgraph.arrays import RealArray
from tclgraph.compilation import kernel
from tclgraph.layers.cell_kernels import CELLS_AT_ONCE, add_product, apply_relu, fill_rows
from tclgraph.layers.segment_kernels import (
    attend_segments,
    score_segments,
    segments_up_to,
    work_memory,
)
from tclgraph.layers.segments import Attended, Queries, Segments, StateTables

_CELLS_PER_STEP = 512
"""Number of cells to compute together, so that the arrays in between fit in cache."""


class TargetWeights(NamedTuple):
    """Weights after attention, as maps of row vectors."""

    code: RealArray
    """[H · T, F] From time codes to the hidden layer."""
    output: RealArray
    """[F, K] From the hidden layer to the hidden layer of the decoder."""
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
    weights: TargetWeights,
    queries: Queries,
    scores: RealArray,
) -> None:
    """Write the scores of the segments from `first` to `last` to the scores, [B, targets]."""
    now, source = queries
    heads, width = tables.value.shape[1:]
    work = work_memory(segments, heads, now, len(now), width)
    num_columns = max(_CELLS_PER_STEP, len(scores)) + CELLS_AT_ONCE
    code = np.zeros((len(weights.code), num_columns), now.dtype)
    hidden = np.zeros((len(weights.output), num_columns), now.dtype)
    target = np.zeros((len(source), num_columns), now.dtype)
    while first < last:
        stop, num_cells = segments_up_to(first, last, segments, _CELLS_PER_STEP)
        attend_segments(first, stop, segments, tables, now, work, Attended(code, hidden))
        add_product(weights.code, code, hidden, num_cells)
        apply_relu(hidden, num_cells)
        fill_rows(weights.output_bias, target, 0, num_cells)
        add_product(weights.output, hidden, target, num_cells)
        score_segments(first, stop, segments, target, source, weights.score, scores)
        first = stop
