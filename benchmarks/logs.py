"""The real logs on which speed and quality are measured.

Logs are read from the folder that TCLGRAPH_DATA names; those of the catalog also from wherever the
catalog finds them without a download.
"""

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path

from tclgraph.events.catalog import CATALOG, find, load
from tclgraph.events.split import Split
from tclgraph.events.stream import GraphKind

TRAIN, VALID = 0.6, 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """A log, and how it is read and split."""

    file: str
    """Name in the catalog, or name of the file without its ending."""
    kind: GraphKind
    seen_only: bool = True


LOGS = {
    "collegemsg": Log(file="collegemsg", kind="one-mode"),
    "wikipedia": Log(file="wikipedia", kind="bipartite"),
    "lastfm_head": Log(file="lastfm_head", kind="bipartite"),
    # Most sources and targets of the later parts of these two are new.
    "movielens_small": Log(file="movielens_small", kind="bipartite", seen_only=False),
    "mathoverflow": Log(file="mathoverflow", kind="one-mode", seen_only=False),
    # Two id spaces, as in the paper; the padded dense implementation is measured on it.
    "collegemsg_bipartite": Log(file="collegemsg", kind="bipartite"),
}


def locate(name: str) -> Path | None:
    """Return the file of a log, or None if this machine does not have it."""
    file = LOGS[name].file
    if file in CATALOG:
        return find(CATALOG[file])
    path = Path(os.environ.get("TCLGRAPH_DATA", "")) / f"{file}.parquet"
    return path if path.is_file() else None


def read(name: str) -> Split:
    """Return the split of a log; the log must be on this machine."""
    log = LOGS[name]
    source = log.file if log.file in CATALOG else locate(name)
    stream = load(source, kind=log.kind, notify=lambda _: None)
    return stream.split(TRAIN, VALID, seen_only=log.seen_only)


def with_tiny_validation(split: Split, num_train: int | None = None) -> Split:
    """Return a split with one validation event, so that `fit` spends its time on training.

    With `num_train` the training part is only that long. Ids stay those of the log.
    """
    train_end = min(num_train or split.train_end, split.train_end)
    return replace(split, train_end=train_end, valid_end=train_end + 1)


def with_short_test(split: Split, num_events: int) -> Split:
    """Return a split whose test part ends after so many events."""
    return replace(split, events=split.events[: split.valid_end + num_events])


if __name__ == "__main__":
    print(json.dumps({name: str(locate(name) or "") for name in LOGS}))
