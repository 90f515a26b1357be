"""An `EventStream` to a Parquet or CSV file that reads back unchanged."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import polars as pl

from tclgraph.errors import InputError
from tclgraph.events.stream import EventStream

GRAPH_METADATA = "tclgraph.graph"
"""Key in a Parquet file's metadata under which the kind of graph is kept. CSV cannot keep it."""


def write_file(stream: EventStream, path: str | Path) -> None:
    """Write a stream; the ending (.parquet or .csv) says the format. Whole or not at all."""
    path = Path(path)
    if path.suffix not in (".parquet", ".csv"):
        raise InputError(f"cannot write {path.name}: the name must end in .parquet or .csv")
    if path.suffix == ".parquet":
        write_parquet(_frame(stream), path, metadata={GRAPH_METADATA: stream.kind})
        return
    with replacing(path) as temporary:
        _frame(stream).write_csv(temporary)


def write_parquet(
    frame: pl.DataFrame, path: Path, *, metadata: dict[str, str] | None = None
) -> None:
    """Write a table, whole or not at all."""
    with replacing(path) as temporary:
        try:
            frame.write_parquet(temporary, metadata=metadata)
        except pl.exceptions.ComputeError as error:  # a full disk
            raise OSError(str(error)) from None


def _frame(stream: EventStream) -> pl.DataFrame:
    columns = [
        stream.sources.keys.gather(stream.source).alias("source"),
        stream.targets.keys.gather(stream.target).alias("target"),
        pl.Series("time", stream.time),
    ]
    if stream.label is not None:
        columns.append(pl.Series("label", stream.label))
    if stream.weight is not None:
        columns.append(pl.Series("weight", stream.weight))
    if stream.features is not None:
        columns += [pl.Series(f"feature_{n}", one) for n, one in enumerate(stream.features.T)]
    return pl.DataFrame(columns)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file beside `path` that takes its place when the block ends well.

    An error or a crash leaves the old file, or none, but never half of one.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        with suppress(OSError):
            temporary.unlink()
