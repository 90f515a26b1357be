"""`EventStream`: an immutable, validated log of interactions between sources and targets.

Events are in time order. Simultaneous events keep their given order, and that order counts: event
7 happened before event 8 even if their times are equal. Times are float64 seconds. In a *bipartite*
graph, sources and targets are different nodes and have separate id spaces. In a *one-mode* graph
(a person sends and receives), they share an id space.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from tclgraph.arrays import BoolArray, FloatArray, IntArray
from tclgraph.errors import InputError, did_you_mean
from tclgraph.events.identifiers import Identifiers, Key, check_keys, clean_keys, number

if TYPE_CHECKING:
    from tclgraph.events.split import Split, SplitBy

GraphKind: TypeAlias = Literal["bipartite", "one-mode"]
Notify: TypeAlias = Callable[[str], None]
"""Receives notices about an input, such as a guessed column or a file that had to be sorted."""


def check_kind(kind: str) -> GraphKind:
    """Return `kind` if it is a valid graph kind; otherwise raise an `InputError`."""
    if kind not in get_args(GraphKind):
        raise InputError(f"unknown graph kind {kind!r}; {did_you_mean(kind, get_args(GraphKind))}")
    return cast("GraphKind", kind)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EventStream:
    """Read-only columns of equal length, in time order.

    >>> stream = EventStream.from_columns(["ann", "bob"], ["tea", "jam"], [0.0, 60.0])
    >>> stream.target.tolist(), stream.targets.key(1), stream.duration
    ([0, 1], 'jam', 60.0)
    """

    source: IntArray
    target: IntArray
    time: FloatArray
    """Times in seconds, in non-decreasing order."""
    kind: GraphKind
    sources: Identifiers
    targets: Identifiers
    """Keys of the targets; in a one-mode graph the same object as `sources`."""
    label: FloatArray | None = None
    weight: FloatArray | None = None
    features: NDArray[np.float32] | None = None
    """Event features, one row per event."""
    segment: IntArray | None = None
    """Segment of each event: a position in `segments`. Reports have the metrics of each segment."""
    segments: Identifiers | None = None
    """Names of the segments; the name of the series is that of the column."""

    def __post_init__(self) -> None:
        for name, column in self._columns().items():
            if len(column) != len(self.time):
                raise InputError(
                    f"column {name!r} has {len(column)} rows, but time has {len(self.time)}; "
                    "give columns of equal length"
                )
            column.flags.writeable = False
        if (bad := np.flatnonzero(~np.isfinite(self.time))).size:
            raise InputError(
                f"the time of event {bad[0]} is {self.time[bad[0]]}; give finite times"
            )
        if (backwards := np.flatnonzero(np.diff(self.time) < 0)).size:
            raise InputError(
                f"event {backwards[0] + 1} is earlier than the event before it; sort the events"
            )
        for name, ids, count in (
            ("source", self.source, self.num_sources),
            ("target", self.target, self.num_targets),
        ):
            if len(ids) and (ids.min() < 0 or ids.max() >= count):
                raise InputError(f"{name} ids must be between 0 and {count - 1}; renumber them")
        if (self.kind == "one-mode") != (self.sources is self.targets):
            raise InputError(
                "sources and targets must be the same object in a one-mode graph and different "
                "objects in a bipartite graph"
            )

    @classmethod
    def from_columns(
        cls,
        source: pl.Series | Sequence[Key] | NDArray[Any],
        target: pl.Series | Sequence[Key] | NDArray[Any],
        time: Sequence[float] | NDArray[Any],
        *,
        kind: GraphKind = "bipartite",
        label: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        features: ArrayLike | None = None,
        segment: pl.Series | Sequence[str] | None = None,
    ) -> EventStream:
        """Build a stream from columns: number the keys, sort by time (stable) and validate."""
        check_kind(kind)
        if not len(source) == len(target) == len(time):
            raise InputError(
                "source, target and time must have the same length, "
                f"not {len(source)}, {len(target)} and {len(time)}"
            )
        # Always copy: the stream makes its arrays read-only, and the caller's must stay writable.
        seconds = np.array(time, dtype=np.float64)
        order = np.argsort(seconds, kind="stable")
        source_keys = _key_column("source", source, order)
        target_keys = _key_column("target", target, order)
        if kind == "one-mode":
            source_ids, target_ids, sources = _number_together(source_keys, target_keys)
            targets = sources
        else:
            distinct, source_ids = number(source_keys)
            sources = Identifiers(distinct)
            distinct, target_ids = number(target_keys)
            targets = Identifiers(distinct)

        segments, segment_ids = None, None
        if segment is not None:
            distinct, segment_ids = number(_segment_names(segment))
            segments = Identifiers(distinct)

        def in_order(column: ArrayLike | None, dtype: type) -> Any:
            return None if column is None else np.array(column, dtype=dtype)[order]

        return cls(
            source=source_ids,
            target=target_ids,
            time=seconds[order],
            kind=kind,
            sources=sources,
            targets=targets,
            label=in_order(label, np.float64),
            weight=in_order(weight, np.float64),
            features=in_order(features, np.float32),
            segment=in_order(segment_ids, np.int64),
            segments=segments,
        )

    def _columns(self) -> dict[str, NDArray[Any]]:
        optional = {
            "label": self.label,
            "weight": self.weight,
            "features": self.features,
            "segment": self.segment,
        }
        present = {name: column for name, column in optional.items() if column is not None}
        return {"source": self.source, "target": self.target, "time": self.time, **present}

    def __len__(self) -> int:
        return len(self.time)

    @property
    def num_sources(self) -> int:
        """Size of the source id space; a slice of a stream keeps the ids of the stream."""
        return len(self.sources)

    @property
    def num_targets(self) -> int:
        return len(self.targets)

    @property
    def duration(self) -> float:
        """Seconds between the first and the last event."""
        return float(self.time[-1] - self.time[0]) if len(self) else 0.0

    def __getitem__(self, rows: slice | BoolArray) -> EventStream:
        """Return the selected events; ids stay the same."""
        selected: dict[str, Any] = {name: column[rows] for name, column in self._columns().items()}
        return replace(self, **selected)

    def before(self, time: float) -> EventStream:
        """Return the events strictly before a time."""
        return self[: int(np.searchsorted(self.time, time, side="left"))]

    def compact(self) -> EventStream:
        """Return the same events without unused ids; nodes are renumbered by first appearance."""
        if self.kind == "one-mode":
            used, ids = number(pl.Series(np.stack([self.source, self.target], axis=1).ravel()))
            nodes = Identifiers(self.sources.keys.gather(used))
            return replace(
                self, source=ids[0::2].copy(), target=ids[1::2].copy(), sources=nodes, targets=nodes
            )
        used_sources, source = number(pl.Series(self.source))
        used_targets, target = number(pl.Series(self.target))
        return replace(
            self,
            source=source,
            target=target,
            sources=Identifiers(self.sources.keys.gather(used_sources)),
            targets=Identifiers(self.targets.keys.gather(used_targets)),
        )

    def with_own_vocabulary(self) -> EventStream:
        """Return the same events without the keys after the last that occurs; ids stay the same.

        Ids count in order of first appearance, so the first events of a log are left with the nodes
        that were known at the last of them.
        """
        num_sources = int(self.source.max(initial=-1)) + 1
        num_targets = int(self.target.max(initial=-1)) + 1
        if self.kind == "one-mode":
            nodes = self.sources.first(max(num_sources, num_targets))
            return replace(self, sources=nodes, targets=nodes)
        sources, targets = self.sources.first(num_sources), self.targets.first(num_targets)
        return replace(self, sources=sources, targets=targets)

    def pairs(self) -> IntArray:
        """Return an integer per event that identifies its pair of nodes.

        In a one-mode graph a pair has no direction: a→b and b→a are the same pair.
        """
        first, second = self.source, self.target
        if self.kind == "one-mode":
            first, second = np.minimum(first, second), np.maximum(first, second)
        return first * self.num_targets + second

    def split(
        self, train: float, valid: float, *, by: SplitBy = "rows", seen_only: bool = False
    ) -> Split:
        """Split chronologically into train, valid and the rest, test; see `split.split`."""
        from tclgraph.events.split import split  # split.py imports this module

        return split(self, train, valid, by=by, seen_only=seen_only)

    def equals(self, other: EventStream) -> bool:
        """Return whether all columns, the keys and the graph kind are equal, bit for bit."""
        ours, theirs = self._columns(), other._columns()
        return (
            self.kind == other.kind
            and self.sources == other.sources
            and self.targets == other.targets
            and self.segments == other.segments
            and ours.keys() == theirs.keys()
            and all(np.array_equal(ours[name], theirs[name], equal_nan=True) for name in ours)
        )


def _key_column(
    name: str, keys: pl.Series | Sequence[Key] | NDArray[Any], order: IntArray
) -> pl.Series:
    # Convert through a list because polars does not accept all of NumPy's text and object arrays.
    series = keys if isinstance(keys, pl.Series) else pl.Series(np.asarray(keys).tolist())
    clean = clean_keys(series, name)
    check_keys(clean, lambda row: f"{name} of event {row}")
    return clean.gather(order)


def _segment_names(column: pl.Series | Sequence[str]) -> pl.Series:
    """Return segments as text without white space around them, with a name for an empty one."""
    names = column if isinstance(column, pl.Series) else pl.Series("segment", column)
    return names.cast(pl.String).str.strip_chars().fill_null("").replace("", "(empty)")


def _number_together(
    source: pl.Series, target: pl.Series
) -> tuple[IntArray, IntArray, Identifiers]:
    if source.dtype != target.dtype:
        source, target = source.cast(pl.String), target.cast(pl.String)
    # Interleave the sides, so that ids follow the order of first appearance in the log.
    rows = np.arange(2 * len(source)).reshape(2, -1).T.ravel()
    distinct, ids = number(pl.concat([source, target]).gather(rows))
    return ids[0::2].copy(), ids[1::2].copy(), Identifiers(distinct)
