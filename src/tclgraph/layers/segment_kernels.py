"""Temporal attention of segments on the CPU, as compiled loops without gradients.

A vector holds a number of several adjacent cells (see `cell_kernels`). The last vector of a segment
may reach into the cells of the next one, which are written later. The letters of shapes are those
of `segments`.
"""

from typing import Any, NamedTuple

import numpy as np

from tclgraph.arrays import RealArray
from tclgraph.compilation import REORDERED_SUMS, kernel
from tclgraph.lanes import (
    exp,
    fill,
    load,
    load_column,
    load_rows,
    maximum,
    outer,
    repeat,
    store,
    store_rows,
    total,
)
from tclgraph.layers.cell_kernels import CELLS_AT_ONCE, ROWS_AT_ONCE, fill_rows, sums_of
from tclgraph.layers.segments import (
    Attended,
    MovingCells,
    NeighborTable,
    Segments,
    StateTables,
)

KEYS_AT_ONCE = 4


class Work(NamedTuple):
    """Work memory for a segment; a key is a neighbor and a head."""

    turns: RealArray
    """[N, P]"""
    key: RealArray
    """[keys, P or D]"""
    fixed: RealArray
    """[1, keys] Matches that do not depend on the query."""
    value: RealArray
    """[keys, F]"""
    weight: RealArray
    """[keys, CELLS_AT_ONCE]"""
    start: RealArray
    """[F, CELLS_AT_ONCE] Hidden vector of the node."""
    query: RealArray
    """[P, CELLS_AT_ONCE] Query of a head times the turns of the queries."""


@kernel
def work_memory(segments: Segments, heads: int, now: RealArray, key_width: int, width: int) -> Any:
    """Return work memory, given the width of keys and of values."""
    most, size, dtype = segments.neighbor.shape[1], len(now), now.dtype
    num_keys = most * heads + KEYS_AT_ONCE
    return Work(
        np.zeros((most + KEYS_AT_ONCE, size), dtype),
        np.zeros((num_keys, key_width), dtype),
        np.zeros((1, num_keys), dtype),
        np.zeros((num_keys, width), dtype),
        np.zeros((num_keys, CELLS_AT_ONCE), dtype),
        np.zeros((width, CELLS_AT_ONCE), dtype),
        np.zeros((size, CELLS_AT_ONCE), dtype),
    )


@kernel
def segments_up_to(first: int, last: int, segments: Segments, size: int) -> Any:
    """Return the end of a range of segments from `first` on with at most `size` cells, and these.

    The range has at least one segment.
    """
    stop, num_cells = first, 0
    while stop < last:
        more = segments.end[stop] - segments.begin[stop]
        if stop > first and num_cells + more > size:
            break
        stop, num_cells = stop + 1, num_cells + more
    return stop, num_cells


@kernel
def attend_segments(
    first: int,
    last: int,
    segments: Segments,
    tables: StateTables,
    now: RealArray,
    work: Work,
    attended: Attended,
) -> None:
    """Write the output of attention of the segments from `first` to `last`.

    `now` has the turns of the queries, [P, B].
    """
    heads, cell = tables.query.shape[1], 0
    for segment in range(first, last):
        count, end = segments.num_neighbors[segment], segments.end[segment]
        _gather(segment, segments, tables, work)
        fill_rows(tables.hidden[segments.own[segment]], work.start, 0, 1)
        for query in range(segments.begin[segment], end, CELLS_AT_ONCE):
            _match(heads * count, query, work, now)
            _softmax(heads, count, work.weight)
            _mean_codes(count, query, cell, work, now, attended.code)
            _mean_values(heads * count, cell, work, work.start, 0, attended.sums)
            cell += min(CELLS_AT_ONCE, end - query)


@kernel
def attend_moving_segments(
    first: int,
    last: int,
    segments: Segments,
    table: NeighborTable,
    moving: MovingCells,
    now: RealArray,
    work: Work,
    attended: Attended,
) -> None:
    """Write the same as `attend_segments` for nodes whose vectors depend on time."""
    heads, cell = len(attended.code) // (len(now) // 2), 0
    for segment in range(first, last):
        count, end = segments.num_neighbors[segment], segments.end[segment]
        _gather_moving(heads, segment, segments, table, work)
        for query in range(segments.begin[segment], end, CELLS_AT_ONCE):
            for head in range(heads):
                _multiply_query(head, query, cell, moving.time_query, now, work.query)
                _match_moving(head, count, cell, work, moving.own)
            _softmax(heads, count, work.weight)
            _mean_codes(count, query, cell, work, now, attended.code)
            _mean_values(heads * count, cell, work, moving.hidden, cell, attended.sums)
            cell += min(CELLS_AT_ONCE, end - query)


@kernel
def _gather(segment: int, segments: Segments, tables: StateTables, work: Work) -> None:
    """Copy what the segment needs of its neighbors, and compute its keys."""
    count, width = segments.num_neighbors[segment], tables.state.shape[1]
    query = tables.query[segments.own[segment]]
    for place in range(count):
        neighbor = segments.neighbor[segment, place]
        _copy_row(tables.turns, segments.event[segment, place], 0, work.turns, place)
        for head in range(len(query)):
            key = head * count + place
            _copy_row(tables.value[neighbor], head, 0, work.value, key)
            work.fixed[0, key] = _dot_rows(query, head, tables.state, neighbor)
            _multiply_row(query, head, width, work.turns, place, work.key, key)


@kernel
def _gather_moving(
    heads: int, segment: int, segments: Segments, table: NeighborTable, work: Work
) -> None:
    """Copy what the segment needs of its neighbors."""
    count, value_width, width = (
        segments.num_neighbors[segment],
        work.value.shape[1],
        work.key.shape[1],
    )
    for place in range(count):
        _copy_row(table.turns, segments.event[segment, place], 0, work.turns, place)
        row = table.start[segment] + place
        for head in range(heads):
            key, key_column = head * count + place, heads * value_width + head * width
            _copy_row(table.columns, row, head * value_width, work.value, key)
            _copy_row(table.columns, row, key_column, work.key, key)
            work.fixed[0, key] = table.columns[row, heads * (value_width + width) + head]


@kernel
def _copy_row(
    source: RealArray, row: int, first_column: int, result: RealArray, result_row: int
) -> None:
    """Copy a part of a row that is as wide as the result."""
    width = result.shape[1]
    block_end = width - width % CELLS_AT_ONCE
    for column in range(0, block_end, CELLS_AT_ONCE):
        numbers = load(source, row, first_column + column, CELLS_AT_ONCE)
        store(result, result_row, column, numbers)
    for column in range(block_end, width):
        result[result_row, column] = source[row, first_column + column]


@kernel(**REORDERED_SUMS)
def _dot_rows(first: RealArray, row: int, second: RealArray, second_row: int) -> Any:
    """Return the product of the first numbers of a row and another row."""
    width = second.shape[1]
    block_end = width - width % CELLS_AT_ONCE
    sums = fill(second.dtype.type(0.0), CELLS_AT_ONCE)
    for column in range(0, block_end, CELLS_AT_ONCE):
        right = load(second, second_row, column, CELLS_AT_ONCE)
        sums = sums + load(first, row, column, CELLS_AT_ONCE) * right
    product = total(sums)
    for column in range(block_end, width):
        product += first[row, column] * second[second_row, column]
    return product


@kernel
def _multiply_row(
    query: RealArray,
    head: int,
    width: int,
    turns: RealArray,
    place: int,
    result: RealArray,
    key: int,
) -> None:
    """Write the products of the turns of an event and the last columns of a query, twice."""
    size = turns.shape[1] // 2
    block_end = size - size % CELLS_AT_ONCE
    for column in range(0, block_end, CELLS_AT_ONCE):
        factor = load(query, head, width + column, CELLS_AT_ONCE)
        store(result, key, column, factor * load(turns, place, column, CELLS_AT_ONCE))
        sines = load(turns, place, size + column, CELLS_AT_ONCE)
        store(result, key, size + column, factor * sines)
    for column in range(block_end, size):
        result[key, column] = query[head, width + column] * turns[place, column]
        result[key, size + column] = query[head, width + column] * turns[place, size + column]


@kernel
def _multiply_query(
    head: int, query: int, cell: int, time_query: RealArray, now: RealArray, result: RealArray
) -> None:
    """Write the products of a head's time queries and the turns of the next queries."""
    width = len(now) // 2
    for row in range(width):
        number = load(time_query, head * width + row, cell, CELLS_AT_ONCE)
        store(result, row, 0, number * load(now, row, query, CELLS_AT_ONCE))
        store(result, width + row, 0, number * load(now, width + row, query, CELLS_AT_ONCE))


@kernel
def _match_moving(head: int, count: int, cell: int, work: Work, own: RealArray) -> None:
    """Write the matches of the keys of a head with the next queries."""
    turns, key, fixed, weight, query = work.turns, work.key, work.fixed, work.weight, work.query
    for place in range(0, count, KEYS_AT_ONCE):
        row = head * count + place
        sums = repeat(load(fixed, 0, row, KEYS_AT_ONCE), CELLS_AT_ONCE)
        for column in range(len(own)):
            keys = load_column(key, row, column, KEYS_AT_ONCE)
            sums = sums + outer(keys, load(own, column, cell, CELLS_AT_ONCE))
        for column in range(len(query)):
            keys = load_column(turns, place, column, KEYS_AT_ONCE)
            sums = sums + outer(keys, load(query, column, 0, CELLS_AT_ONCE))
        # This may write to the first keys of the next head, which are written later.
        store_rows(weight, row, 0, KEYS_AT_ONCE, sums)


@kernel
def _match(num_keys: int, query: int, work: Work, now: RealArray) -> None:
    """Write the matches of all keys with the next queries."""
    key, fixed, weight = work.key, work.fixed, work.weight
    for row in range(0, num_keys, KEYS_AT_ONCE):
        sums = repeat(load(fixed, 0, row, KEYS_AT_ONCE), CELLS_AT_ONCE)
        for column in range(len(now)):
            keys = load_column(key, row, column, KEYS_AT_ONCE)
            sums = sums + outer(keys, load(now, column, query, CELLS_AT_ONCE))
        store_rows(weight, row, 0, KEYS_AT_ONCE, sums)


@kernel(error_model="numpy")
def _softmax(heads: int, count: int, weight: RealArray) -> None:
    """Turn matches into weights that sum to 1 over the neighbors."""
    number = weight.dtype.type
    for head in range(heads):
        first = head * count
        highest = fill(number(-np.inf), CELLS_AT_ONCE)
        for key in range(first, first + count):
            highest = maximum(highest, load(weight, key, 0, CELLS_AT_ONCE))
        sums = fill(number(0.0), CELLS_AT_ONCE)
        for key in range(first, first + count):
            share = exp(load(weight, key, 0, CELLS_AT_ONCE) - highest)
            store(weight, key, 0, share)
            sums = sums + share
        inverse = number(1.0) / sums
        for key in range(first, first + count):
            store(weight, key, 0, load(weight, key, 0, CELLS_AT_ONCE) * inverse)


@kernel
def _mean_codes(
    count: int, query: int, cell: int, work: Work, now: RealArray, code: RealArray
) -> None:
    """Write the mean time codes of the heads."""
    turns, weight, width = work.turns, work.weight, len(now) // 2
    block_end = width - width % ROWS_AT_ONCE
    for head in range(len(code) // width):
        first = head * count
        for row in range(0, block_end, ROWS_AT_ONCE):
            mean = _mean_code(first, count, row, query, turns, weight, now, ROWS_AT_ONCE)
            store_rows(code, head * width + row, cell, ROWS_AT_ONCE, mean)
        for row in range(block_end, width):
            mean = _mean_code(first, count, row, query, turns, weight, now, 1)
            store(code, head * width + row, cell, mean)


@kernel(inline="always")
def _mean_code(
    first: int,
    count: int,
    row: int,
    query: int,
    turns: RealArray,
    weight: RealArray,
    now: RealArray,
    rows: int,
) -> Any:
    """Return `rows` rows of the mean time codes of the head whose keys begin at `first`."""
    width = turns.shape[1] // 2
    now_cosine = load_rows(now, row, query, rows, CELLS_AT_ONCE)
    now_sine = load_rows(now, width + row, query, rows, CELLS_AT_ONCE)
    cosines = sines = now_cosine - now_cosine
    for place in range(count):
        share = load(weight, first + place, 0, CELLS_AT_ONCE)
        cosines = cosines + outer(load(turns, place, row, rows), share)
        sines = sines + outer(load(turns, place, width + row, rows), share)
    return cosines * now_cosine + sines * now_sine


@kernel
def _mean_values(
    num_keys: int, cell: int, work: Work, start: RealArray, start_cell: int, output: RealArray
) -> None:
    """Write the sums of the hidden vectors from `start_cell` on and the mean values."""
    value, weight, width = work.value, work.weight, len(output)
    block_end = width - width % ROWS_AT_ONCE
    for row in range(0, block_end, ROWS_AT_ONCE):
        sums = load_rows(start, row, start_cell, ROWS_AT_ONCE, CELLS_AT_ONCE)
        sums = sums_of(sums, num_keys, value, row, weight, 0, ROWS_AT_ONCE)
        store_rows(output, row, cell, ROWS_AT_ONCE, sums)
    for row in range(block_end, width):
        sums = load(start, row, start_cell, CELLS_AT_ONCE)
        store(output, row, cell, sums_of(sums, num_keys, value, row, weight, 0, 1))


@kernel
def score_segments(
    first: int,
    last: int,
    segments: Segments,
    target: RealArray,
    source: RealArray,
    output: RealArray,
    scores: RealArray,
) -> None:
    """Write output · ReLU(source + target) of the segments' cells to the scores, [B, columns].

    `target` has the cells as columns, and `source` the queries.
    """
    work = np.empty((1, CELLS_AT_ONCE), source.dtype)
    cell, zero = 0, fill(source.dtype.type(0.0), CELLS_AT_ONCE)
    for segment in range(first, last):
        end = segments.end[segment]
        for query in range(segments.begin[segment], end, CELLS_AT_ONCE):
            score = zero
            for row in range(len(output)):
                left = load(source, row, query, CELLS_AT_ONCE)
                right = load(target, row, cell, CELLS_AT_ONCE)
                score = score + maximum(left + right, zero) * output[row]
            store(work, 0, 0, score)
            # The next cells may belong to another segment.
            size = min(CELLS_AT_ONCE, end - query)
            for number in range(size):
                scores[query + number, segments.column[segment]] = work[0, number]
            cell += size
