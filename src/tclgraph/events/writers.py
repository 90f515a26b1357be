"""Write an `EventStream` to a Parquet or CSV file that reads back unchanged."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import polars as pl

from tclgraph.errors import InputError
from tclgraph.events.stream import EventStream

KIND_METADATA = "tclgraph.kind"
"""Key of the graph kind in the metadata of a Parquet file. A CSV file has no such metadata."""


def write_file(stream: EventStream, path: str | Path) -> None:
    """Write a stream to a file whose name ends in .parquet or .csv.

    The file is written completely or not at all.
    """
    path = Path(path)
    if path.suffix not in (".parquet", ".csv"):
        raise InputError(f"cannot write {path.name}: the name must end in .parquet or .csv")
    if path.suffix == ".parquet":
        write_parquet(_frame(stream), path, metadata={KIND_METADATA: stream.kind})
        return
    with replacing(path) as temporary:
        _frame(stream).write_csv(temporary)


def write_parquet(
    frame: pl.DataFrame, path: Path, *, metadata: dict[str, str] | None = None
) -> None:
    """Write a table to a Parquet file, completely or not at all."""
    with replacing(path) as temporary:
        try:
            frame.write_parquet(temporary, metadata=metadata)
        except pl.exceptions.ComputeError as error:  # polars wraps the error of a full disk
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
        columns += [
            pl.Series(f"feature_{position}", column)
            for position, column in enumerate(stream.features.T)
        ]
    if stream.segment is not None and stream.segments is not None:
        columns.append(stream.segments.keys.gather(stream.segment).alias("segment"))
    return pl.DataFrame(columns)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path that replaces `path` when the block ends without an error.

    After an error or a crash, `path` is unchanged: the old file or no file, never a partial one.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise InputError(
            f"cannot write {path}: {error.strerror or error}; check the folder and the disk space"
        ) from None
    finally:
        with suppress(OSError):
            temporary.unlink()
