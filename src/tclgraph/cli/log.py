"""From the words on the command line to a split log."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tclgraph.cli.options import LogOptions
    from tclgraph.events.split import Split


def open_split(log: str, options: LogOptions) -> Split:
    """Load a log and cut it, taking what was not said from the catalogue."""
    from tclgraph.cli.terminal import progress
    from tclgraph.errors import InputError, did_you_mean
    from tclgraph.events.catalog import CATALOG, load
    from tclgraph.events.split import parse_shares
    from tclgraph.events.stream import check_kind

    by = options.split_by
    if by not in ("rows", "time"):
        raise InputError(f"cannot split by {by!r}; {did_you_mean(by, ('rows', 'time'))}")
    shares = options.split or (CATALOG[log].split if log in CATALOG else "70/15/15")
    train, valid = parse_shares(shares)
    with progress(f"fetching {log}") as show:
        stream = load(
            log,
            kind=None if options.kind is None else check_kind(options.kind),
            source=options.source,
            target=options.target,
            time=options.time,
            features=(),
            time_unit=options.time_unit,  # type: ignore[arg-type]  # checked where times are read
            header=options.header,
            progress=show,
        )
    return stream.split(
        train, valid, by="time" if by == "time" else "rows", seen_only=options.seen_only
    )


def file_name(log: str) -> str:
    """The file that a log was read from; a data set of one name may lie in several."""
    from pathlib import Path

    from tclgraph.events.catalog import CATALOG, find

    path = find(CATALOG[log]) if log in CATALOG else Path(log)
    return "" if path is None else path.name
