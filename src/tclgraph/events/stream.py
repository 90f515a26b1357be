"""An immutable, validated log of who interacted with what and when.

Events stand in time order; simultaneous events keep the order in which they were given, and that
order counts: event 7 happened before event 8 even where their times are equal. Times are float64
seconds. In a *bipartite* graph sources and targets are different things with an id space each; in
a *one-mode* graph (a person sends and receives) they share one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

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
"""Where remarks about an input go (a guessed column, a file that had to be sorted)."""


def check_kind(kind: str) -> GraphKind:
    """The kind of graph, or an `InputError` that names the nearest one."""
    if kind == "bipartite":
        return "bipartite"
    if kind == "one-mode":
        return "one-mode"
    raise InputError(f"unknown kind of graph {kind!r}; {did_you_mean(kind, get_args(GraphKind))}")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EventStream:
    """Columns of equal length, read-only, in time order.

    >>> stream = EventStream.from_columns(["ann", "bob"], ["tea", "jam"], [0.0, 60.0])
    >>> stream.target.tolist(), stream.targets.key(1), stream.duration
    ([0, 1], 'jam', 60.0)
    """

    source: IntArray
    target: IntArray
    time: FloatArray
    """Seconds, never decreasing."""
    kind: GraphKind
    sources: Identifiers
    targets: Identifiers
    """The very object that `sources` is, in a one-mode graph."""
    label: FloatArray | None = None
    weight: FloatArray | None = None
    features: NDArray[np.float32] | None = None
    """One row per event."""

    def __post_init__(self) -> None:
        for name, column in self._columns().items():
            if len(column) != len(self.time):
                raise InputError(
                    f"column {name!r} has {len(column)} rows where time has {len(self.time)}"
                )
            column.flags.writeable = False
        if (bad := np.flatnonzero(~np.isfinite(self.time))).size:
            raise InputError(f"time of event {bad[0]} is {self.time[bad[0]]}; times must be finite")
        if (backwards := np.flatnonzero(np.diff(self.time) < 0)).size:
            raise InputError(f"time runs backwards at event {backwards[0] + 1}; sort the events")
        for name, ids, count in (
            ("source", self.source, self.num_sources),
            ("target", self.target, self.num_targets),
        ):
            if len(ids) and (ids.min() < 0 or ids.max() >= count):
                raise InputError(f"{name} ids must lie in 0..{count - 1}")
        if (self.kind == "one-mode") != (self.sources is self.targets):
            raise InputError("a one-mode graph, and no other, has one id space for both sides")

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
    ) -> EventStream:
        """Number the keys, sort by time (stable) and check everything once."""
        check_kind(kind)
        if not len(source) == len(target) == len(time):
            raise InputError(
                "source, target and time must be equally long, "
                f"not {len(source)}, {len(target)} and {len(time)}"
            )
        # Copies, always: the caller's arrays must stay theirs to write to.
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
        )

    def _columns(self) -> dict[str, NDArray[Any]]:
        optional = {"label": self.label, "weight": self.weight, "features": self.features}
        present = {name: column for name, column in optional.items() if column is not None}
        return {"source": self.source, "target": self.target, "time": self.time, **present}

    def __len__(self) -> int:
        return len(self.time)

    @property
    def num_sources(self) -> int:
        """Size of the source id space; a part of a stream keeps the ids of the whole."""
        return len(self.sources)

    @property
    def num_targets(self) -> int:
        return len(self.targets)

    @property
    def duration(self) -> float:
        """Seconds from the first event to the last."""
        return float(self.time[-1] - self.time[0]) if len(self) else 0.0

    def __getitem__(self, rows: slice | BoolArray) -> EventStream:
        """A part of the stream, under the ids of the whole."""
        parts: dict[str, Any] = {name: column[rows] for name, column in self._columns().items()}
        return replace(self, **parts)

    def before(self, time: float) -> EventStream:
        """The events strictly before a time."""
        return self[: int(np.searchsorted(self.time, time, side="left"))]

    def compact(self) -> EventStream:
        """The same events with only the nodes that occur, numbered anew by first appearance."""
        if self.kind == "one-mode":
            kept, ids = number(pl.Series(np.stack([self.source, self.target], axis=1).ravel()))
            both = Identifiers(self.sources.keys.gather(kept))
            return replace(
                self, source=ids[0::2].copy(), target=ids[1::2].copy(), sources=both, targets=both
            )
        kept_sources, source = number(pl.Series(self.source))
        kept_targets, target = number(pl.Series(self.target))
        return replace(
            self,
            source=source,
            target=target,
            sources=Identifiers(self.sources.keys.gather(kept_sources)),
            targets=Identifiers(self.targets.keys.gather(kept_targets)),
        )

    def pairs(self) -> IntArray:
        """One integer per event that is equal where the same two have met.

        In a one-mode graph a meeting has no direction: a→b and b→a are the same pair.
        """
        first, second = self.source, self.target
        if self.kind == "one-mode":
            first, second = np.minimum(first, second), np.maximum(first, second)
        return first * self.num_targets + second

    def split(
        self, train: float, valid: float, *, by: SplitBy = "rows", seen_only: bool = False
    ) -> Split:
        """Cut chronologically into train, valid and (the rest) test; see `Split`."""
        from tclgraph.events.split import split  # a split is made of streams, so it imports us

        return split(self, train, valid, by=by, seen_only=seen_only)

    def equals(self, other: EventStream) -> bool:
        """Whether every column, key and the kind of graph are the same, bit for bit."""
        ours, theirs = self._columns(), other._columns()
        return (
            self.kind == other.kind
            and self.sources == other.sources
            and self.targets == other.targets
            and ours.keys() == theirs.keys()
            and all(np.array_equal(ours[name], theirs[name], equal_nan=True) for name in ours)
        )


def _key_column(
    name: str, keys: pl.Series | Sequence[Key] | NDArray[Any], order: IntArray
) -> pl.Series:
    # Through a list: NumPy's text and object arrays are not all understood by polars.
    series = keys if isinstance(keys, pl.Series) else pl.Series(np.asarray(keys).tolist())
    clean = clean_keys(series, name)
    check_keys(clean, lambda row: f"{name} of event {row}")
    return clean.gather(order)


def _number_together(
    source: pl.Series, target: pl.Series
) -> tuple[IntArray, IntArray, Identifiers]:
    if source.dtype != target.dtype:
        source, target = source.cast(pl.String), target.cast(pl.String)
    # Interleaved, so that ids follow the order in which people enter the log.
    rows = np.arange(2 * len(source)).reshape(2, -1).T.ravel()
    distinct, ids = number(pl.concat([source, target]).gather(rows))
    return ids[0::2].copy(), ids[1::2].copy(), Identifiers(distinct)
