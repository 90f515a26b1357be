"""A table as it came from outside, and how to point at a place in it."""

from dataclasses import dataclass

import polars as pl

from tclgraph.arrays import IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Raw columns plus what an error message needs to name a row."""

    frame: pl.DataFrame
    origin: str
    """The file's name, or what else the rows came from."""
    skipped_lines: int | None = None
    """Lines before row 1 of a text file; None where rows are not lines."""
    row_of: IntArray | None = None
    """Position in the file of every row, where blank lines were left out."""

    def place(self, row: int, column: str) -> str:
        """A row (counted from 1, header apart) and a column, for people.

        >>> Table(frame=pl.DataFrame(), origin="log.csv", skipped_lines=1).place(2, "time")
        "log.csv, row 3 (line 4), column 'time'"
        """
        position = row if self.row_of is None else int(self.row_of[row])
        line = "" if self.skipped_lines is None else f" (line {position + 1 + self.skipped_lines})"
        return f"{self.origin}, row {position + 1}{line}, column {column!r}"
