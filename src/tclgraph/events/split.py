"""Chronological train, validation and test parts of one stream."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np

from tclgraph.errors import InputError
from tclgraph.events.stream import EventStream

SplitBy: TypeAlias = Literal["rows", "time"]
Part: TypeAlias = Literal["train", "valid", "test"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """`events` cut in two places: [0, train_end) | [train_end, valid_end) | [valid_end, end)."""

    events: EventStream
    train_end: int
    valid_end: int
    shares: str
    """As people write it: 60/20/20."""
    by: SplitBy
    seen_only: bool

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

    def __str__(self) -> str:
        return f"{self.shares} of {self.by}" + (", seen only" if self.seen_only else "")


def split(
    stream: EventStream,
    train: float,
    valid: float,
    *,
    by: SplitBy = "rows",
    seen_only: bool = False,
) -> Split:
    """Cut a stream by shares of its rows or of its time span.

    A cut by time puts an event that lies exactly on it into the later part. With `seen_only`,
    validation and test rows are dropped whose source never acts as a source in train or whose
    target never acts as a target there (how the paper's authors made their sets), and the nodes
    that are left are numbered anew.

    >>> stream = EventStream.from_columns(list("aabab"), list("xyxyx"), range(5))
    >>> parts = split(stream, 0.6, 0.2)
    >>> str(parts), parts.sizes
    ('60/20/20 of rows', {'train': 3, 'valid': 1, 'test': 1})
    """
    # Exact shares: 0.6 + 0.2 must be 8/10, or a row changes sides on some machines.
    train_share, valid_share = Fraction(str(train)), Fraction(str(valid))
    test_share = 1 - train_share - valid_share
    shares = "/".join(f"{float(100 * share):g}" for share in (train_share, valid_share, test_share))
    if min(train_share, valid_share, test_share) <= 0:
        raise InputError(f"the split {shares} leaves a part empty; give three positive shares")
    cuts = (train_share, train_share + valid_share)
    if by == "rows":
        train_end, valid_end = (int(len(stream) * cut) for cut in cuts)
    else:
        start = stream.time[0] if len(stream) else 0.0
        train_end, valid_end = (
            int(np.searchsorted(stream.time, start + float(cut) * stream.duration, side="left"))
            for cut in cuts
        )
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
    for part, size in result.sizes.items():
        if size == 0:
            raise InputError(
                f"the split {result} leaves {part} empty ({len(stream)} events in all); "
                "give that part a larger share or bring a longer log"
            )
    if len(np.unique(result.events.target)) == 1:
        only = result.events.targets.key(int(result.events.target[0]))
        raise InputError(f"the log has one target only ({only!r}); ranking needs at least two")
    return result


def _drop_unseen(stream: EventStream, train_end: int, valid_end: int) -> tuple[EventStream, int]:
    is_kept = np.isin(stream.source, stream.source[:train_end])
    is_kept &= np.isin(stream.target, stream.target[:train_end])
    is_kept[:train_end] = True
    return stream[is_kept], int(is_kept[:valid_end].sum())


def parse_shares(text: str) -> tuple[float, float]:
    """Train and validation shares from "60/20/20" (or "0.6/0.2/0.2").

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
