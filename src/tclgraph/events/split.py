"""Chronological split of a stream into train, validation and test parts."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, TypeAlias, cast, get_args

import numpy as np

from tclgraph.arrays import BoolArray
from tclgraph.errors import InputError, did_you_mean
from tclgraph.events.stream import EventStream

SplitBy: TypeAlias = Literal["rows", "time", "quantiles"]
Part: TypeAlias = Literal["train", "valid", "test"]


def check_split_by(by: str) -> SplitBy:
    """Return `by` if it is a valid value; otherwise raise an `InputError`."""
    if by not in get_args(SplitBy):
        raise InputError(f"cannot split by {by!r}; {did_you_mean(by, get_args(SplitBy))}")
    return cast("SplitBy", by)


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Events and two cuts: [0, train_end) | [train_end, valid_end) | [valid_end, end)."""

    events: EventStream
    train_end: int
    valid_end: int
    shares: str
    """Percentages of train, valid and test, written as 60/20/20."""
    by: SplitBy
    seen_only: bool
    remark: str = ""
    """How the parts differ from those that the shares give."""

    @property
    def train(self) -> EventStream:
        return self.events[: self.train_end]

    @property
    def valid(self) -> EventStream:
        return self.events[self.train_end : self.valid_end]

    @property
    def test(self) -> EventStream:
        return self.events[self.valid_end :]

    @property
    def sizes(self) -> dict[Part, int]:
        return {
            "train": self.train_end,
            "valid": self.valid_end - self.train_end,
            "test": len(self.events) - self.valid_end,
        }

    def without_test(self) -> "Split":
        """Return the split as it is known at the end of valid: without test and its new nodes."""
        known = self.events[: self.valid_end].with_own_vocabulary()
        return replace(self, events=known)

    def train_only(self) -> "Split":
        """Return the split as it is known at the end of train: without later events and nodes."""
        train = self.train.with_own_vocabulary()
        return replace(self, events=train, valid_end=self.train_end)

    def unseen(self) -> tuple[BoolArray, BoolArray]:
        """Return for every event whether its source and whether its target is unseen.

        A node is unseen if it is absent from the training events. In a one-mode graph it is seen as
        soon as it has either role in training.
        """
        events, train = self.events, self.train
        is_seen_source = np.zeros(events.num_sources, dtype=bool)
        is_seen_source[train.source] = True
        is_seen_target = np.zeros(events.num_targets, dtype=bool)
        is_seen_target[train.target] = True
        if events.kind == "one-mode":
            is_seen_source = is_seen_target = is_seen_source | is_seen_target
        return ~is_seen_source[events.source], ~is_seen_target[events.target]

    def __str__(self) -> str:
        measure = "time quantiles" if self.by == "quantiles" else self.by
        filtered = "seen only" if self.seen_only else ""
        return ", ".join(filter(None, [f"{self.shares} of {measure}", filtered, self.remark]))


def split(
    stream: EventStream,
    train: float,
    valid: float,
    *,
    by: SplitBy = "rows",
    seen_only: bool = False,
) -> Split:
    """Split a stream by shares of its rows, of its time span, or at quantiles of its event times.

    - `rows`: the first shares of the events, rounded down.
    - `time`: shares of the time span. An event exactly at a cut belongs to the later part.
    - `quantiles`: the cuts are quantiles of the event times (interpolated, as in `numpy.quantile`).
      An event exactly at a cut belongs to the earlier part, so simultaneous events are never in
      two parts. TGB splits in this way.

    With `seen_only`, validation and test events are dropped if their source is never a source in
    train or their target is never a target in train, as in the data sets of the paper's authors.
    The remaining nodes are renumbered.

    >>> stream = EventStream.from_columns(list("aabab"), list("xyxyx"), range(5))
    >>> parts = split(stream, 0.6, 0.2)
    >>> str(parts), parts.sizes
    ('60/20/20 of rows', {'train': 3, 'valid': 1, 'test': 1})
    """
    check_split_by(by)
    # Fractions are exact. With floats, 0.1 + 0.2 exceeds 3/10 and could move a cut by a row.
    train_share, valid_share = Fraction(str(train)), Fraction(str(valid))
    test_share = 1 - train_share - valid_share
    shares = "/".join(f"{float(100 * share):g}" for share in (train_share, valid_share, test_share))
    if min(train_share, valid_share, test_share) <= 0:
        raise InputError(
            f"the split {shares} leaves a part empty; give three positive shares, like 70/15/15"
        )
    train_end, valid_end = (_cut(stream, share, by) for share in (train_share, 1 - test_share))
    events = stream
    if seen_only:
        events, valid_end = _drop_unseen(stream, train_end, valid_end)
    result = Split(
        events=events.compact(),
        train_end=train_end,
        valid_end=valid_end,
        shares=shares,
        by=by,
        seen_only=seen_only,
    )
    _check(result, num_events=len(stream))
    return result


def _cut(stream: EventStream, share: Fraction, by: SplitBy) -> int:
    """Return the number of events before the cut at a share."""
    if by == "rows" or not len(stream):
        return int(len(stream) * share)
    if by == "time":
        cut = stream.time[0] + float(share) * stream.duration
        return int(np.searchsorted(stream.time, cut, side="left"))
    cut = np.quantile(stream.time, float(share))
    return int(np.searchsorted(stream.time, cut, side="right"))


def _check(result: Split, *, num_events: int) -> None:
    """Refuse a split with an empty part or with a single target."""
    for part, size in result.sizes.items():
        if size == 0:
            raise InputError(
                f"the split {result} leaves {part} empty (the log has {num_events} events); "
                "give that part a larger share or use a longer log"
            )
    if len(np.unique(result.events.target)) == 1:
        target = result.events.targets.key(int(result.events.target[0]))
        raise InputError(
            f"the log has only one target ({target!r}), but ranking needs at least two; "
            "use another log or another target column"
        )


def _drop_unseen(stream: EventStream, train_end: int, valid_end: int) -> tuple[EventStream, int]:
    is_seen = np.isin(stream.source, stream.source[:train_end])
    is_seen &= np.isin(stream.target, stream.target[:train_end])
    return stream[is_seen], int(is_seen[:valid_end].sum())


def parse_shares(text: str) -> tuple[float, float]:
    """Return the train and validation shares of a text like "60/20/20" or "0.6/0.2/0.2".

    >>> parse_shares("70/15/15")
    (0.7, 0.15)
    """
    try:
        shares = [Fraction(share) for share in text.split("/")]
    except (ValueError, ZeroDivisionError):
        shares = []
    if len(shares) != 3 or sum(shares) not in (1, 100):
        raise InputError(
            f"cannot read the split {text!r}; give three percentages that add to 100, like 70/15/15"
        )
    return float(shares[0] / sum(shares)), float(shares[1] / sum(shares))
