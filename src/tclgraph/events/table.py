"""A table of raw columns that can name a place in its file."""

from dataclasses import dataclass

import polars as pl

from tclgraph.arrays import IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Raw columns, and what an error message needs to name a row."""

    frame: pl.DataFrame
    origin: str
    """Name of the file, or of another origin of the rows."""
    skipped_lines: int | None = None
    """Number of lines before row 1 of a text file; None if rows are not lines."""
    row_of: IntArray | None = None
    """Position of every row in the file; None if no blank lines were removed."""

    def place(self, row: int, column: str) -> str:
        """Return a description of a cell. It counts rows from 1 and leaves the header out.

        >>> Table(frame=pl.DataFrame(), origin="log.csv", skipped_lines=1).place(2, "time")
        "log.csv, row 3 (line 4), column 'time'"
        """
        position = row if self.row_of is None else int(self.row_of[row])
        line = "" if self.skipped_lines is None else f" (line {position + 1 + self.skipped_lines})"
        return f"{self.origin}, row {position + 1}{line}, column {column!r}"
