"""From the words on the command line to a split log."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tclgraph.events.split import Split


def open_split(
    log: str,
    *,
    graph: str | None,
    source: str | None,
    target: str | None,
    time: str | None,
    time_unit: str,
    header: bool | None,
    split: str | None,
    split_by: str,
    seen_only: bool,
) -> Split:
    """Load a log and cut it, taking what was not said from the catalogue."""
    from tclgraph.cli.terminal import progress
    from tclgraph.errors import InputError, did_you_mean
    from tclgraph.events.catalog import CATALOG, load
    from tclgraph.events.split import parse_shares
    from tclgraph.events.stream import check_graph

    if split_by not in ("rows", "time"):
        raise InputError(
            f"cannot split by {split_by!r}; {did_you_mean(split_by, ('rows', 'time'))}"
        )
    if split is None:
        split = CATALOG[log].split if log in CATALOG else "70/15/15"
    train, valid = parse_shares(split)
    with progress(f"fetching {log}") as show:
        stream = load(
            log,
            graph=None if graph is None else check_graph(graph),
            source=source,
            target=target,
            time=time,
            features=(),
            time_unit=time_unit,  # type: ignore[arg-type]  # checked where times are read
            header=header,
            progress=show,
        )
    return stream.split(
        train, valid, by="time" if split_by == "time" else "rows", seen_only=seen_only
    )


def file_name(log: str) -> str:
    """The file that a log was read from; a data set of one name may lie in several."""
    from pathlib import Path

    from tclgraph.events.catalog import CATALOG, find

    path = find(CATALOG[log]) if log in CATALOG else Path(log)
    return "" if path is None else path.name
