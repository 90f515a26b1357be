"""A log and how it is split, as plain words that another process, and a file, can be told."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from tclgraph.events.catalog import CATALOG, find, load
from tclgraph.events.split import Split, parse_shares
from tclgraph.events.stream import check_kind

_SHARES = "70/15/15"


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """None: as the catalogue has it, or as the file looks."""

    log: str
    """A catalogue name or a file."""
    kind: str | None = None
    split: str | None = None
    split_by: Literal["rows", "time"] = "rows"
    seen_only: bool = False
    source: str | None = None
    target: str | None = None
    time: str | None = None
    time_unit: str = "s"
    header: bool | None = None
    ahead: bool = False
    """Cut further back, and leave test alone: train is the first 80 % of train, valid the rest of
    it, and what is called test is the valid part. So validation is further ahead of training."""

    @property
    def name(self) -> str:
        return Path(self.log).name.split(".")[0]

    @property
    def file(self) -> str:
        """What was read, without its folder."""
        if self.log not in CATALOG:
            return Path(self.log).name
        path = find(CATALOG[self.log])
        return path.name if path else ""

    def open(self) -> Split:
        """Read and cut it."""
        stream = load(
            self.log,
            kind=None if self.kind is None else check_kind(self.kind),
            source=self.source,
            target=self.target,
            time=self.time,
            features=(),
            time_unit=self.time_unit,  # type: ignore[arg-type]  # checked where times are read
            header=self.header,
        )
        shares = self.split or (CATALOG[self.log].split if self.log in CATALOG else _SHARES)
        found = stream.split(*parse_shares(shares), by=self.split_by, seen_only=self.seen_only)
        if not self.ahead:
            return found
        return replace(
            found,
            events=found.events[: found.valid_end],
            train_end=int(0.8 * found.train_end),
            valid_end=found.train_end,
            shares=f"{found.shares}, train cut to its first 80 %, test left out",
        )
