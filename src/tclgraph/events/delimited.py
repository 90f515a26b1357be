"""Read text logs (CSV, TSV, SNAP's `source target time`), plain or gzipped, into a table of text.

Header and delimiter are detected from the first line. Only features are converted to numbers here.
Keys and times stay text, so that the code that parses them can name the row of an error.
"""

import csv
import gzip
import io
import re
import zlib
from collections import deque
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from tclgraph.errors import InputError
from tclgraph.events.columns import ChosenColumns, Columns, choose
from tclgraph.events.stream import Notify
from tclgraph.events.table import Table

_GZIP_MAGIC = b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# The header of the JODIE data sets names four columns; a fifth name stands for all features.
_JODIE_HEADER = ["user_id", "item_id", "timestamp", "state_label"]
# The header of tgbl-flight, which tgbl-coin has too although its rows have four fields.
_TGB_FLIGHT_HEADER = ["day", "src", "dst", "callsign", "typecode"]
_TGB_COIN_NAMES = ["day", "src", "dst", "weight"]
_NUMBER_OR_DATE = re.compile(r"^\s*([+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|\d{4}-\d{2}-\d{2}.*)\s*$")


@dataclass(frozen=True, slots=True)
class _Layout:
    names: list[str]
    delimiter: str
    has_header: bool
    skipped_lines: int
    """Number of lines before the first row: comments and the header."""


def read_delimited(
    raw: bytes, path: Path, columns: Columns, *, header: bool | None, notify: Notify
) -> tuple[Table, ChosenColumns]:
    """Return the chosen columns of the content of a text file.

    With `header=None`, the first line decides whether there is a header.
    """
    content = _plain(raw, path)
    layout = _detect_layout(content, path, header)
    if layout.delimiter == " ":
        content = _with_single_spaces(content)

    def read(names: Sequence[str]) -> list[pl.Series]:
        table = _read_table(content, layout, names, set(), path)
        return table.frame.select(names).get_columns()

    chosen = choose(
        columns,
        layout.names,
        has_header=layout.has_header,
        origin=path.name,
        notify=notify,
        read=read,
    )
    table = _read_table(content, layout, chosen.all(), set(chosen.features), path)
    _refuse_bad_features(table, chosen)
    return table, chosen


def _read_table(
    content: bytes, layout: _Layout, names: Sequence[str], features: Set[str], path: Path
) -> Table:
    """Return the columns with these names, the last column of the file, and no blank lines.

    Features are converted to numbers.
    """
    frame = _parse(content, layout, names, features, path)
    table = Table(frame=frame, origin=path.name, skipped_lines=layout.skipped_lines)
    if frame.to_series(-1).null_count():
        _check_rows(content, layout, path)
        table = _without_blank_lines(table)
    if not len(table.frame):
        raise InputError(f"{path.name}: the file has a header but no rows; use a log with events")
    return table


def _plain(content: bytes, path: Path) -> bytes:
    if content.startswith(_GZIP_MAGIC):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(
                f"{path.name}: the gzip file is damaged ({error}); get it again"
            ) from None
    content = content.removeprefix(_BYTE_ORDER_MARK)
    if b"\n" not in content:
        content = content.replace(b"\r", b"\n")  # line ends of old Macintosh files
    if not content or content.isspace():
        raise InputError(f"{path.name}: the file is empty; use a log with events")
    if b"\x00" in content:
        raise InputError(
            f"{path.name}: the file is binary and not Parquet; use a CSV, TSV, text or Parquet log"
        )
    return content


def _detect_layout(content: bytes, path: Path, header: bool | None) -> _Layout:
    """Detect the delimiter, the header and the number of columns from the first lines."""
    lines = io.BytesIO(content)
    comments = 0
    first = _text(lines.readline(), path, comments)
    # SNAP files begin with comment lines. In a comma-separated log, "#tag" is a normal key.
    while first.startswith("#") and _delimiter(first) in "\t ":
        comments += 1
        first = _text(lines.readline(), path, comments)
    delimiter = _delimiter(first)
    fields = _fields(first, delimiter, path, comments)
    has_header = header
    if has_header is None:
        has_header = not any(_NUMBER_OR_DATE.match(field) for field in fields)
    names = [str(position + 1) for position in range(len(fields))]
    if has_header:
        names = _distinct([field.strip() for field in fields])
    if names[: len(_JODIE_HEADER)] == _JODIE_HEADER or names == _TGB_FLIGHT_HEADER:
        second = _text(lines.readline(), path, comments + 1)
        names = _names_for_rows(names, len(_fields(second, delimiter, path, comments + 1)))
    return _Layout(names, delimiter, has_header, comments + has_header)


def _names_for_rows(names: list[str], width: int) -> list[str]:
    """Return the column names of a published file whose header does not fit its rows."""
    if names == _TGB_FLIGHT_HEADER:
        return _TGB_COIN_NAMES if width == len(_TGB_COIN_NAMES) else names
    num_features = max(0, width - len(_JODIE_HEADER))
    return _JODIE_HEADER + [f"feature_{number}" for number in range(num_features)]


def _text(line: bytes, path: Path, lines_before: int) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(
            f"{path.name}, line {lines_before + 1}: the text is not UTF-8; save the file as UTF-8"
        ) from None


def _delimiter(line: str) -> str:
    return next((mark for mark in "\t,;" if mark in line), " ")


def _fields(line: str, delimiter: str, path: Path, lines_before: int) -> list[str]:
    if delimiter == " ":
        return line.split()
    return next(_csv_rows(iter([line]), delimiter, path, lines_before), [])


def _csv_rows(
    lines: Iterator[str], delimiter: str, path: Path, lines_before: int
) -> Iterator[list[str]]:
    """Yield rows with Python's slow reader, which refuses ambiguous quoting."""
    rows = csv.reader(lines, delimiter=delimiter, strict=True, skipinitialspace=True)
    try:
        yield from rows
    except csv.Error as error:
        raise InputError(
            f"{path.name}, line {lines_before + rows.line_num}: a quote or a line break is "
            f"misplaced ({error}); put quotes around the complete field and double the quotes in it"
        ) from None


def _with_single_spaces(content: bytes) -> bytes:
    return re.sub(rb"[ \t]+", b" ", re.sub(rb"(?m)^[ \t]+|[ \t]+(?=\r?$)", b"", content))


def _distinct(names: list[str]) -> list[str]:
    """Make column names unique: append the position to an empty or a repeated name."""
    seen: set[str] = set()
    result = []
    for position, name in enumerate(names):
        unique = name if name and name not in seen else f"{name}#{position + 1}"
        seen.add(unique)
        result.append(unique)
    return result


def _parse(
    content: bytes, layout: _Layout, names: Sequence[str], features: Set[str], path: Path
) -> pl.DataFrame:
    schema = {name: pl.Float32 if name in features else pl.String for name in layout.names}
    # Read the last column too: a row that is too short has no value there.
    wanted = list(dict.fromkeys([*names, layout.names[-1]]))
    wanted.sort(key=layout.names.index)
    has_quotes = b'"' in content
    if has_quotes and not _is_regularly_quoted(content, layout.delimiter):
        return _parse_slowly(content, layout, wanted, path).cast(
            {name: schema[name] for name in wanted}, strict=False
        )
    try:
        return (
            pl.scan_csv(
                content,
                has_header=False,
                separator=layout.delimiter,
                quote_char='"' if has_quotes else None,
                schema=schema,
                skip_lines=layout.skipped_lines,
                ignore_errors=bool(features),
                missing_columns="insert",
            )
            .select(wanted)
            .collect()
        )
    except pl.exceptions.NoDataError:
        return pl.DataFrame(schema={name: schema[name] for name in wanted})
    except pl.exceptions.PolarsError as error:
        _check_rows(content, layout, path)  # names the row in most cases
        reason = str(error).strip().splitlines()[0]
        raise InputError(
            f"{path.name}: the file cannot be read as text columns ({reason}); correct it"
        ) from None


def _is_regularly_quoted(content: bytes, delimiter: str) -> bool:
    """Return whether quotes appear only around complete fields, and doubled inside them.

    With other quotes (a product called 12" single), the fast reader may join rows without an error.
    """
    mark = re.escape(delimiter.encode())
    field = rb'(?:^|(?<=[\n%b]))"[^"]*+(?:""[^"]*+)*+"(?=\r?\n|%b|\r?$)' % (mark, mark)
    # All quantifiers are possessive, so the match takes a single pass without backtracking.
    return re.fullmatch(rb'(?:[^"]*+%b)*+[^"]*+' % field, content) is not None


def _parse_slowly(content: bytes, layout: _Layout, wanted: list[str], path: Path) -> pl.DataFrame:
    places = [layout.names.index(name) for name in wanted]
    columns: list[list[str | None]] = [[] for _ in wanted]
    for fields in _checked_rows(content, layout, path):
        for column, place in zip(columns, places, strict=True):
            column.append(fields[place] if fields else None)
    return pl.DataFrame(
        dict(zip(wanted, columns, strict=True)), schema=dict.fromkeys(wanted, pl.String)
    )


def _check_rows(content: bytes, layout: _Layout, path: Path) -> None:
    """Raise an `InputError` for the first row with a quoting error or a wrong number of fields."""
    deque(_checked_rows(content, layout, path), maxlen=0)


def _checked_rows(content: bytes, layout: _Layout, path: Path) -> Iterator[list[str]]:
    """Yield the fields of every row, none for a blank line; refuse a row of another width."""
    lines = (_text(line, path, number) for number, line in enumerate(io.BytesIO(content)))
    for _ in range(layout.skipped_lines):
        next(lines, "")
    width = len(layout.names)
    rows = _csv_rows(lines, layout.delimiter, path, layout.skipped_lines)
    for row, fields in enumerate(rows):
        if fields and len(fields) != width:
            raise InputError(
                f"{path.name}, row {row + 1} (line {row + 1 + layout.skipped_lines}): "
                f"{len(fields)} fields instead of {width}; "
                "correct the row, or quote fields that contain the delimiter"
            )
        yield fields


def _without_blank_lines(table: Table) -> Table:
    is_row = table.frame.select(~pl.all_horizontal(pl.all().is_null())).to_series()
    return Table(
        frame=table.frame.filter(is_row),
        origin=table.origin,
        skipped_lines=table.skipped_lines,
        row_of=np.flatnonzero(is_row.to_numpy()),
    )


def _refuse_bad_features(table: Table, chosen: ChosenColumns) -> None:
    for name in chosen.features:
        column = table.frame[name]
        if column.null_count():
            row = int(column.is_null().arg_max() or 0)
            raise InputError(f"{table.place(row, name)}: a feature must be a number; correct it")
