"""`LogSpec`: which log to read, how to read it, and how to split it.

The command line, run folders and jobs all describe a log with this class. Its methods import the
readers when they run, so that `tclgraph --help` can list the fields without loading polars.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tclgraph.events.download import Progress
    from tclgraph.events.split import Split
    from tclgraph.events.stream import EventStream

_DEFAULT_SHARES = "70/15/15"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSpec:
    """A log and how it is read and split; None means as in the catalog or in the file."""

    log: str
    """Catalog name, path of a file, or git:PATH for a repository."""
    kind: str | None = None
    """Graph kind: bipartite or one-mode."""
    source: str | None = None
    """Name of the source column."""
    target: str | None = None
    """Name of the target column."""
    time: str | None = None
    """Name of the time column."""
    time_unit: str = "s"
    """Unit of numeric times: s, ms, us or ns."""
    header: bool | None = None
    """Whether a text file has a header line."""
    split: str | None = None
    """Percentages of train, valid and test, like 70/15/15."""
    split_by: str = "rows"
    """Whether the percentages are shares of the rows, shares of the time span, or quantiles of the
    event times: rows, time or quantiles."""
    seen_only: bool = False
    """Whether valid and test events with a node that train lacks are dropped."""
    ahead: bool = False
    """Whether test is left out and validation is further ahead of training: train is the first
    80 % of the train part, valid is the rest of it, and test is the valid part."""
    num_events: int | None = None
    """Number of events that are read, the first ones in order of time. None: all. A run stores it,
    so that its split stays the same when the log grows."""

    def __post_init__(self) -> None:
        from tclgraph.events.split import check_split_by, parse_shares
        from tclgraph.events.stream import check_kind
        from tclgraph.events.times import check_time_unit

        if self.kind is not None:
            check_kind(self.kind)
        if self.split is not None:
            parse_shares(self.split)
        check_split_by(self.split_by)
        check_time_unit(self.time_unit)

    @property
    def name(self) -> str:
        """Name of the log without its folder and its endings; git-FOLDER for a repository."""
        from tclgraph.events.git_history import repository_of

        repository = repository_of(self.log)
        if repository is not None:
            return "git-" + repository.resolve().name.removeprefix(".").split(".")[0]
        return Path(self.log).name.split(".")[0]

    @property
    def file(self) -> str:
        """Name of the file that is read, without its folder; empty if it is not on this machine.

        A repository has the name git:FOLDER.
        """
        from tclgraph.events.catalog import CATALOG, find
        from tclgraph.events.git_history import PREFIX, repository_of

        repository = repository_of(self.log)
        if repository is not None:
            return PREFIX + repository.resolve().name
        path = find(CATALOG[self.log]) if self.log in CATALOG else Path(self.log)
        return "" if path is None else path.name

    def resolved(self) -> LogSpec:
        """Return a spec that names the same log from any working folder."""
        from tclgraph.events.git_history import PREFIX, repository_of

        repository = repository_of(self.log)
        if repository is not None:
            return replace(self, log=f"{PREFIX}{repository.resolve()}")
        path = Path(self.log)
        return replace(self, log=str(path.resolve())) if path.exists() else self

    def open(self) -> Split:
        """Read and split the log."""
        return self.divide(self.read())

    def read(self, progress: Progress | None = None, *, segment: str | None = None) -> EventStream:
        """Return the events of the log.

        `progress` follows a download. `segment` is the name of a column that divides the events
        into segments, for which reports have separate metrics.
        """
        from tclgraph.events.catalog import load
        from tclgraph.events.columns import Columns
        from tclgraph.events.stream import check_kind
        from tclgraph.events.times import check_time_unit

        columns = Columns(
            source=self.source, target=self.target, time=self.time, segment=segment, features=()
        )
        stream = load(
            self.log,
            kind=None if self.kind is None else check_kind(self.kind),
            columns=columns,
            time_unit=check_time_unit(self.time_unit),
            header=self.header,
            progress=progress,
        )
        return stream[: self.num_events]

    def divide(self, stream: EventStream) -> Split:
        """Split the events of the log."""
        from tclgraph.events.catalog import CATALOG
        from tclgraph.events.split import check_split_by, parse_shares

        shares = self.split or (CATALOG[self.log].split if self.log in CATALOG else _DEFAULT_SHARES)
        split = stream.split(
            *parse_shares(shares), by=check_split_by(self.split_by), seen_only=self.seen_only
        )
        return _further_ahead(split) if self.ahead else split

    def flags(self) -> list[str]:
        """Return the command line flags that describe how the log is read and split.

        >>> LogSpec(log="log.csv", split="60/20/20", header=False, seen_only=True).flags()
        ['--no-header', '--split', '60/20/20', '--seen-only']
        """
        flags = []
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in ("log", "ahead", "num_events") or value == field.default:
                continue
            flag = "--" + field.name.replace("_", "-")
            if isinstance(value, bool):
                flags.append(flag if value else flag.replace("--", "--no-"))
            else:
                flags += [flag, value]
        return flags

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> LogSpec:
        return cls(**values)


def _further_ahead(split: Split) -> Split:
    return replace(
        split,
        events=split.events[: split.valid_end],
        train_end=int(0.8 * split.train_end),
        valid_end=split.train_end,
        remark="train cut to its first 80 %, test left out",
    )
