"""Every kind of log to an `EventStream`: text and Parquet files, data frames, arrays."""

import sys
from collections.abc import Mapping
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
from tclgraph.events.writers import GRAPH_METADATA

_PARQUET_MAGIC = b"PAR1"


def print_notice(message: str) -> None:
    """The default for notices: one line on stderr."""
    print(f"note: {message}", file=sys.stderr)


def read_file(
    path: str | Path,
    *,
    kind: GraphKind | None = None,
    columns: Columns | None = None,
    time_unit: TimeUnit = "s",
    header: bool | None = None,
    notify: Notify = print_notice,
) -> EventStream:
    """Read a CSV, TSV, SNAP text (each also gzipped) or Parquet file, told apart by content.

    `kind=None` takes what a Parquet file that we wrote says, else bipartite.
    """
    path = Path(path)
    columns = columns or Columns()
    try:
        with path.open("rb") as file:
            start = file.read(len(_PARQUET_MAGIC))
            # Text is read from the one opening, so that it may come through a pipe.
            text = None if start == _PARQUET_MAGIC else start + file.read()
        if text is not None:
            table, chosen = read_delimited(text, path, columns, header=header, notify=notify)
            return _to_stream(table, chosen, kind, time_unit, notify)
        table, chosen, written_graph = _read_parquet(path, columns, notify)
        return _to_stream(table, chosen, kind or written_graph, time_unit, notify)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None


def _read_parquet(
    path: Path, columns: Columns, notify: Notify
) -> tuple[Table, ChosenColumns, GraphKind | None]:
    try:
        names = list(pl.read_parquet_schema(path))
        metadata = pl.read_parquet_metadata(path)
        chosen = choose(columns, names, has_header=True, origin=path.name, notify=notify)
        frame = pl.read_parquet(path, columns=chosen.all())
    except pl.exceptions.PolarsError as error:
        reason = str(error).strip().splitlines()[0]
        raise InputError(f"{path.name}: damaged Parquet file ({reason})") from None
    written = metadata.get(GRAPH_METADATA)
    graph = None if written is None else check_kind(written)
    return Table(frame=frame, origin=path.name), chosen, graph


def read_frame(
    frame: Any,
    *,
    kind: GraphKind | None = None,
    columns: Columns | None = None,
    time_unit: TimeUnit = "s",
    notify: Notify = print_notice,
) -> EventStream:
    """Take over a polars, pandas or Arrow table, or a mapping of names to columns."""
    names = [str(name) for name in _column_names(frame)]
    origin = "data frame"
    chosen = choose(columns or Columns(), names, has_header=True, origin=origin, notify=notify)
    series = [_column(frame, name) for name in chosen.all()]
    table = Table(frame=pl.DataFrame(series), origin=origin)
    return _to_stream(table, chosen, kind, time_unit, notify)


def _column_names(frame: Any) -> list[Any]:
    if isinstance(frame, Mapping):
        return list(frame)
    names = getattr(frame, "column_names", None) or getattr(frame, "columns", None)
    if names is None:
        raise InputError(
            f"cannot read a {type(frame).__name__} as a log; give a file, a catalogue name, "
            "a polars, pandas or Arrow table, or a mapping of column names to arrays"
        )
    return list(names)


def _column(frame: Any, name: str) -> pl.Series:
    column = frame[name]
    if isinstance(column, pl.Series):
        return column.alias(name)
    if hasattr(column, "__arrow_c_stream__") and not hasattr(column, "iloc"):
        return pl.Series(name, column)
    if str(getattr(column, "dtype", "")).startswith("datetime64[") and hasattr(column, "dt"):
        # pandas: a zone becomes UTC here; polars would need pyarrow for the rest.
        has_zone = column.dt.tz is not None
        moments = np.asarray(column, dtype="datetime64[ns]")
        return pl.Series(name, moments).dt.replace_time_zone("UTC" if has_zone else None)
    values = np.asarray(column)
    if values.dtype.kind not in "OUST":
        return pl.Series(name, values)
    # Text and Python objects go through a list, with None where pandas has its own "missing".
    is_missing = np.asarray(column.isna()) if hasattr(column, "isna") else np.zeros(len(values))
    known = [None if gone else one for one, gone in zip(values.tolist(), is_missing, strict=True)]
    try:
        return pl.Series(name, known)
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
        raise InputError(f"{table.origin}: no rows; the log is empty")
    source, target = (_keys(table, name) for name in (chosen.source, chosen.target))
    time = to_seconds(
        table.frame[chosen.time], time_unit, lambda row: table.place(row, chosen.time), notify
    )
    if (np.diff(time) < 0).any():
        row = int(np.argmax(np.diff(time) < 0)) + 1
        notify(f"{table.place(row, chosen.time)}: time runs backwards; the events were sorted")
    if kind is None:
        kind = "bipartite"
        _remark_on_shared_keys(source, target, table.origin, notify)
    return EventStream.from_columns(
        source,
        target,
        time,
        kind=kind,
        label=_numbers(table, chosen.label),
        weight=_numbers(table, chosen.weight),
        features=table.frame.select(chosen.features).to_numpy() if chosen.features else None,
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


def _remark_on_shared_keys(
    source: pl.Series, target: pl.Series, origin: str, notify: Notify
) -> None:
    sources, targets = set(source.unique().to_list()), set(target.unique().to_list())
    shared = len(sources & targets)
    if 2 * shared > min(len(sources), len(targets)):
        notify(
            f"{origin}: {shared} keys are both source and target, read as different things; "
            "pass --kind one-mode if they are the same"
        )
