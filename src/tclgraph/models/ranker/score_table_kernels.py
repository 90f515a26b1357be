"""Compiled loops of `score_table`, which replace several passes over long index arrays."""

from tclgraph.arrays import IntArray, RealArray
from tclgraph.compilation import kernel


@kernel
def fill_cells(
    query: IntArray,
    start: IntArray,
    target: IntArray,
    column_of: IntArray,
    value: float,
    table: RealArray,
) -> None:
    """Set the cells of every row's targets; some have no column.

    The targets of row r are those from start[query[r]] to start[query[r] + 1].
    """
    for number in range(len(table)):
        row = table[number]
        for index in range(start[query[number]], start[query[number] + 1]):
            column = column_of[target[index]]
            if column >= 0:
                row[column] = value


@kernel
def normalize(
    start: IntArray,
    target: IntArray,
    repeat: RealArray,
    log_repeat: RealArray,
    log_new: RealArray,
    table: RealArray,
) -> None:
    """Turn the scores of new targets into log-probabilities, and write those of repeat targets."""
    for query in range(len(table)):
        row = table[query]
        row += log_new[query]
        for index in range(start[query], start[query + 1]):
            row[target[index]] = repeat[index] + log_repeat[query]
