"""Segments of targets: what temporal attention over neighbors reads and writes on the CPU.

A *segment* is a node whose neighbors and neighbors' vectors stay the same over consecutive queries.
A *cell* is a segment at a query. Nothing is padded and nothing is copied per neighbor: segments
refer to rows of tables. The arrays with queries or cells as columns have `CELLS_AT_ONCE` further
columns (see `cell_kernels`).

Shapes: S segments, N neighbors of a segment, B queries, M cells, H heads, D width of a node,
T width of a time code, E = D + T, P = 2T turns of a timestamp, F output width, K hidden width of a
decoder.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tclgraph.arrays import IntArray, RealArray


class StateTables(NamedTuple):
    """What attention needs of every state of a node, and of every event."""

    state: RealArray
    """[state, D]"""
    query: RealArray
    """[state, H, E] Queries in the space of the keys."""
    value: RealArray
    """[state, H, F] Values, without their time codes."""
    hidden: RealArray
    """[state, F] Vectors to which the attention output is added."""
    turns: RealArray
    """[event, P]"""


class NeighborTable(NamedTuple):
    """What attention needs of the neighbors of segments, if the vectors of nodes depend on time."""

    start: IntArray
    """[S] Row of the segment's first neighbor; its other neighbors follow."""
    columns: RealArray
    """[row, H · F + H · D + H] Values of the heads, without their time codes; keys of the heads in
    the space of the node's vector; and matches with the constant part of the query."""
    turns: RealArray
    """[event, P]"""


class Queries(NamedTuple):
    """Queries, as columns."""

    turns: RealArray
    """[P, B] Turns of the query times."""
    source: RealArray
    """[K, B] Hidden input of the decoder from the sources."""


class MovingCells(NamedTuple):
    """Cells of nodes whose vectors depend on time."""

    own: RealArray
    """[D, M] Vectors of the nodes, in the space of the neighbors' keys."""
    time_query: RealArray
    """[H · T, M] Queries in the space of the time codes."""
    hidden: RealArray
    """[F, M] Vectors to which the attention output is added."""


class Attended(NamedTuple):
    """Output of attention, which a product of the time codes and a matrix completes."""

    code: RealArray
    """[H · T, M] Mean time codes of the heads, one after the other."""
    sums: RealArray
    """[F, M] Sums of the hidden vector and the mean values."""


class Segments(NamedTuple):
    """Segments, as row numbers of the tables and of the queries."""

    own: IntArray
    """[S] State of each node."""
    neighbor: IntArray
    """[S, N] State of each neighbor."""
    event: IntArray
    """[S, N] Event that made the neighbor."""
    num_neighbors: IntArray
    """[S]"""
    column: IntArray
    """[S] Column of the scores."""
    begin: IntArray
    """[S] First query."""
    end: IntArray
    """[S] Query after the last one."""


def cell_chunks(segments: Segments, size: int) -> Iterator[tuple[int, int]]:
    """Divide segments into ranges with at most `size` cells, or with a single segment."""
    cells = np.concatenate([[0], np.cumsum(segments.end - segments.begin)])
    first = 0
    while first < len(segments.own):
        last = int(np.searchsorted(cells, cells[first] + size, side="right")) - 1
        last = max(last, first + 1)
        yield first, last
        first = last
