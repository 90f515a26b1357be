"""Read an `EventStream` from a text or Parquet file, a data frame or arrays."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tclgraph.errors import InputError
from tclgraph.events.columns import ChosenColumns, Columns, choose
from tclgraph.events.delimited import read_delimited
from tclgraph.events.identifiers import check_keys, clean_keys
from tclgraph.events.stream import EventStream, GraphKind, Notify, check_kind
from tclgraph.events.table import Table
from tclgraph.events.times import TimeUnit, to_seconds
from tclgraph.events.writers import KIND_METADATA

_PARQUET_MAGIC = b"PAR1"


def print_notice(message: str) -> None:
    """Print a notice as a line on stderr; the default of every `notify`."""
    print(f"note: {message}", file=sys.stderr)


def read_file(
    path: str | Path,
    *,
    kind: GraphKind | None = None,
    columns: Columns | Mapping[str, Any] | None = None,
    time_unit: TimeUnit = "s",
    header: bool | None = None,
    notify: Notify = print_notice,
) -> EventStream:
    """Read a CSV, TSV, SNAP text or Parquet file; text may be gzipped.

    The content decides the format, not the name. `columns` names columns, for example
    `{"source": "buyer", "target": "product", "time": "bought_at"}`; others are guessed, and
    `notify` receives the guesses. With `kind=None`, the graph kind is the one in the metadata of a
    Parquet file from `write_file`, otherwise bipartite.
    """
    path = Path(path)
    columns = Columns.of(columns)
    try:
        with path.open("rb") as file:
            start = file.read(len(_PARQUET_MAGIC))
            # Open the file only once, so that text can come through a pipe.
            text = None if start == _PARQUET_MAGIC else start + file.read()
        if text is not None:
            table, chosen = read_delimited(text, path, columns, header=header, notify=notify)
            return _to_stream(table, chosen, kind, time_unit, notify)
        table, chosen, written_kind = _read_parquet(path, columns, notify)
        return _to_stream(table, chosen, kind or written_kind, time_unit, notify)
    except OSError as error:
        raise InputError(
            f"cannot read {path}: {error.strerror or error}; give a file that can be read"
        ) from None


def _read_parquet(
    path: Path, columns: Columns, notify: Notify
) -> tuple[Table, ChosenColumns, GraphKind | None]:
    def read(names: Sequence[str]) -> list[pl.Series]:
        return pl.read_parquet(path, columns=list(names)).get_columns()

    try:
        names = list(pl.read_parquet_schema(path))
        metadata = pl.read_parquet_metadata(path)
        chosen = choose(columns, names, has_header=True, origin=path.name, notify=notify, read=read)
        frame = pl.read_parquet(path, columns=chosen.all())
    except pl.exceptions.PolarsError as error:
        reason = str(error).strip().splitlines()[0]
        raise InputError(
            f"{path.name}: the Parquet file is damaged ({reason}); get it again"
        ) from None
    kind = metadata.get(KIND_METADATA)
    written_kind = None if kind is None else check_kind(kind)
    return Table(frame=frame, origin=path.name), chosen, written_kind


def read_frame(
    frame: Any,
    *,
    kind: GraphKind | None = None,
    columns: Columns | Mapping[str, Any] | None = None,
    time_unit: TimeUnit = "s",
    notify: Notify = print_notice,
) -> EventStream:
    """Read a polars, pandas or Arrow table, or a mapping of column names to arrays.

    The arguments are those of `read_file`.
    """
    labels = {str(label): label for label in _column_labels(frame)}

    def read(names: Sequence[str]) -> list[pl.Series]:
        readable = []
        for name in names:
            # A column that polars cannot hold has no role, so it must not stop the guess.
            with suppress(TypeError, ValueError, pl.exceptions.PolarsError):
                readable.append(_column(frame[labels[name]], name))
        return readable

    origin = "data frame"
    chosen = choose(
        Columns.of(columns), list(labels), has_header=True, origin=origin, notify=notify, read=read
    )
    series = [_column(frame[labels[name]], name) for name in chosen.all()]
    table = Table(frame=pl.DataFrame(series), origin=origin)
    return _to_stream(table, chosen, kind, time_unit, notify)


def _column_labels(frame: Any) -> list[Any]:
    if isinstance(frame, Mapping):
        return list(frame)
    names = getattr(frame, "column_names", None) or getattr(frame, "columns", None)
    if names is None:
        raise InputError(
            f"cannot read a {type(frame).__name__} as a log; give a file, a catalog name, "
            "a polars, pandas or Arrow table, or a mapping of column names to arrays"
        )
    return list(names)


def _column(column: Any, name: str) -> pl.Series:
    if isinstance(column, pl.Series):
        return column.alias(name)
    if hasattr(column, "__arrow_c_stream__") and not hasattr(column, "iloc"):
        return pl.Series(name, column)
    if str(getattr(column, "dtype", "")).startswith("datetime64[") and hasattr(column, "dt"):
        # polars would need pyarrow to read a pandas column. NumPy converts zoned times to UTC.
        has_zone = column.dt.tz is not None
        datetimes = np.asarray(column, dtype="datetime64[ns]")
        return pl.Series(name, datetimes).dt.replace_time_zone("UTC" if has_zone else None)
    values = np.asarray(column)
    if values.dtype.kind not in "OUST":
        return pl.Series(name, values)
    # Convert text and Python objects through a list, with None for the missing values of pandas.
    is_missing = np.asarray(column.isna()) if hasattr(column, "isna") else np.zeros(len(values))
    known_values = [
        None if missing else value
        for value, missing in zip(values.tolist(), is_missing, strict=True)
    ]
    try:
        return pl.Series(name, known_values)
    except TypeError:
        raise InputError(
            f"data frame: column {name!r} mixes types; make all its values text or all numbers"
        ) from None


def _to_stream(
    table: Table,
    chosen: ChosenColumns,
    kind: GraphKind | None,
    time_unit: TimeUnit,
    notify: Notify,
) -> EventStream:
    if not len(table.frame):
        raise InputError(f"{table.origin}: the table has no rows; use a log with events")
    source, target = (_keys(table, name) for name in (chosen.source, chosen.target))
    time = to_seconds(
        table.frame[chosen.time], time_unit, lambda row: table.place(row, chosen.time), notify
    )
    if (np.diff(time) < 0).any():
        row = int(np.argmax(np.diff(time) < 0)) + 1
        notify(
            f"{table.place(row, chosen.time)}: the time is earlier than in the row before; "
            "the events were sorted"
        )
    if kind is None:
        kind = "bipartite"
        _notify_of_shared_keys(source, target, table.origin, notify)
    return EventStream.from_columns(
        source,
        target,
        time,
        kind=kind,
        label=_numbers(table, chosen.label),
        weight=_numbers(table, chosen.weight),
        features=table.frame.select(chosen.features).to_numpy() if chosen.features else None,
        segment=_segments(table, chosen.segment),
    )


def _keys(table: Table, name: str) -> pl.Series:
    keys = clean_keys(table.frame[name], f"{table.origin}: column {name!r}")
    check_keys(keys, lambda row: table.place(row, name))
    return keys


def _numbers(table: Table, name: str | None) -> Any:
    if name is None:
        return None
    column = table.frame[name]
    if column.dtype == pl.String:
        column = column.str.strip_chars()
    numbers = column.cast(pl.Float64, strict=False)
    if numbers.null_count():
        row = int(numbers.is_null().arg_max() or 0)
        raise InputError(f"{table.place(row, name)}: {column[row]!r} is not a number; correct it")
    return numbers.to_numpy()


def _segments(table: Table, name: str | None) -> pl.Series | None:
    if name is None:
        return None
    column = table.frame[name]
    try:
        return column.cast(pl.String)
    except pl.exceptions.PolarsError:
        raise InputError(
            f"{table.origin}: column {name!r} has type {column.dtype}, but a segment must be text, "
            "a number or a date; name another column"
        ) from None


def _notify_of_shared_keys(
    source: pl.Series, target: pl.Series, origin: str, notify: Notify
) -> None:
    sources, targets = set(source.unique().to_list()), set(target.unique().to_list())
    shared = len(sources & targets)
    if 2 * shared > min(len(sources), len(targets)):
        notify(
            f"{origin}: {shared} keys are both source and target and are read as different nodes; "
            "pass --kind one-mode if they are the same nodes"
        )
