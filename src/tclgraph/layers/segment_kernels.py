"""Temporal attention of segments on the CPU, as compiled loops without gradients.

A *segment* is a node whose vector, neighbors and neighbors' vectors stay the same over consecutive
queries. A *cell* is a segment at a query. Nothing is padded and nothing is copied per neighbor:
segments refer to rows of tables. All projections that depend on a cell are left to matrix products.

Shapes: S segments, N neighbors of a segment, B queries, M cells, H heads, D width of a node,
T width of a time code, E = D + T, P = 2T turns of a timestamp, F output width.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tclgraph.arrays import IntArray, RealArray
from tclgraph.compilation import REORDERED_SUMS, kernel
from tclgraph.layers.exponential import exponential


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


@kernel(**REORDERED_SUMS)
def segment_keys(first: int, last: int, segments: Segments, tables: StateTables) -> Any:
    """Return the turns of neighbors times the queries, [keys, P], and the matches without time.

    Only the segments from `first` to `last` are read. Each has a key per neighbor and head.
    """
    heads, full = tables.query.shape[1:]
    num_keys = heads * segments.num_neighbors[first:last].sum()
    key = np.empty((num_keys, tables.turns.shape[1]), tables.turns.dtype)
    fixed = np.empty(num_keys, key.dtype)
    time_width = tables.turns.shape[1] // 2
    width, row = full - time_width, 0
    for segment in range(first, last):
        query = tables.query[segments.own[segment]]
        for place in range(segments.num_neighbors[segment]):
            state = tables.state[segments.neighbor[segment, place]]
            turns = tables.turns[segments.event[segment, place]]
            for head in range(heads):
                match = query.dtype.type(0.0)
                for column in range(width):
                    match += query[head, column] * state[column]
                fixed[row] = match
                for column in range(time_width):
                    key[row, column] = query[head, width + column] * turns[column]
                for column in range(time_width):
                    key[row, time_width + column] = (
                        query[head, width + column] * turns[time_width + column]
                    )
                row += 1
    return key, fixed


@kernel(**REORDERED_SUMS)
def attend_segments(
    first: int,
    last: int,
    segments: Segments,
    tables: StateTables,
    now: RealArray,
    match: RealArray,
    first_query: int,
) -> Any:
    """Return the mean time codes, [M, H · T], and the sums of hidden vector and mean value, [M, F].

    `now` has the turns of the queries, [B, P], and `match` the matches of all keys at the queries
    from `first_query` on; they become weights.
    """
    heads, most = tables.query.shape[1], segments.neighbor.shape[1]
    num_cells = (segments.end[first:last] - segments.begin[first:last]).sum()
    code = np.empty((num_cells, heads * (now.shape[1] // 2)), now.dtype)
    output = np.empty((num_cells, tables.value.shape[2]), now.dtype)
    # The compiler vectorizes loops over small local arrays.
    turns = np.empty((most, now.shape[1]), now.dtype)
    value = np.empty((most * heads, tables.value.shape[2]), now.dtype)
    sums = np.empty(max(now.shape[1], tables.value.shape[2]), now.dtype)
    highest, total = np.empty(len(now), now.dtype), np.empty(len(now), now.dtype)
    cell = key = 0
    for segment in range(first, last):
        begin, end = segments.begin[segment], segments.end[segment]
        count = segments.num_neighbors[segment]
        for place in range(count):
            turns[place] = tables.turns[segments.event[segment, place]]
            for head in range(heads):
                value[place * heads + head] = tables.value[segments.neighbor[segment, place], head]
        weight = match[key : key + count * heads, begin - first_query : end - first_query]
        _softmax(count, heads, weight, highest, total)
        hidden = tables.hidden[segments.own[segment]]
        stop = cell + end - begin
        _mean_codes(heads, turns[:count], weight, now[begin:end], sums, code[cell:stop])
        _mean_values(value[: count * heads], weight, hidden, sums, output[cell:stop])
        cell, key = stop, key + count * heads
    return code, output


@kernel(**REORDERED_SUMS)
def _softmax(
    count: int, heads: int, weight: RealArray, highest: RealArray, total: RealArray
) -> None:
    """Turn matches, [N · H, queries], into weights that sum to 1 over the neighbors.

    `highest` and `total` are work memory, with a number per query.
    """
    size = weight.shape[1]
    for head in range(heads):
        for query in range(size):
            highest[query] = -np.inf
        for row in range(head, count * heads, heads):
            for query in range(size):
                highest[query] = max(highest[query], weight[row, query])
        for row in range(head, count * heads, heads):
            for query in range(size):
                weight[row, query] = exponential(weight[row, query] - highest[query])
        for query in range(size):
            total[query] = 0.0
        for row in range(head, count * heads, heads):
            for query in range(size):
                total[query] += weight[row, query]
        for row in range(head, count * heads, heads):
            for query in range(size):
                weight[row, query] /= total[query]


@kernel(**REORDERED_SUMS)
def _mean_codes(
    heads: int,
    turns: RealArray,
    weight: RealArray,
    now: RealArray,
    sums: RealArray,
    code: RealArray,
) -> None:
    """Write the mean time codes of the heads, one after the other, [queries, H · T]."""
    count, size = turns.shape
    width = size // 2
    for query in range(len(now)):
        for head in range(heads):
            for column in range(size):
                sums[column] = 0.0
            place = 0
            # Four at a time, so that the sums are read and written less often.
            while place + 4 <= count:
                row = place * heads + head
                a, b = weight[row, query], weight[row + heads, query]
                c, d = weight[row + 2 * heads, query], weight[row + 3 * heads, query]
                for column in range(size):
                    sums[column] += (
                        a * turns[place, column]
                        + b * turns[place + 1, column]
                        + c * turns[place + 2, column]
                        + d * turns[place + 3, column]
                    )
                place += 4
            while place < count:
                a = weight[place * heads + head, query]
                for column in range(size):
                    sums[column] += a * turns[place, column]
                place += 1
            for column in range(width):
                code[query, head * width + column] = (
                    sums[column] * now[query, column]
                    + sums[width + column] * now[query, width + column]
                )


@kernel(**REORDERED_SUMS)
def _mean_values(
    value: RealArray, weight: RealArray, hidden: RealArray, sums: RealArray, output: RealArray
) -> None:
    """Write the sums of the node's hidden vector and the mean values, [queries, F]."""
    num_keys, size = value.shape
    for query in range(len(output)):
        for column in range(size):
            sums[column] = hidden[column]
        row = 0
        while row + 4 <= num_keys:
            a, b = weight[row, query], weight[row + 1, query]
            c, d = weight[row + 2, query], weight[row + 3, query]
            for column in range(size):
                sums[column] += (
                    a * value[row, column]
                    + b * value[row + 1, column]
                    + c * value[row + 2, column]
                    + d * value[row + 3, column]
                )
            row += 4
        while row < num_keys:
            a = weight[row, query]
            for column in range(size):
                sums[column] += a * value[row, column]
            row += 1
        for column in range(size):
            output[query, column] = sums[column]


@kernel(**REORDERED_SUMS)
def score_segments(
    first: int,
    last: int,
    segments: Segments,
    target: RealArray,
    source: RealArray,
    output: RealArray,
    scores: RealArray,
) -> None:
    """Write output · ReLU(source + target) of the segments' cells to the scores, [B, columns]."""
    cell = 0
    for segment in range(first, last):
        for query in range(segments.begin[segment], segments.end[segment]):
            left, right = source[query], target[cell]
            score = left.dtype.type(0.0)
            for column in range(len(output)):
                score += output[column] * max(left[column] + right[column], left.dtype.type(0.0))
            scores[query, segments.column[segment]] = score
            cell += 1
