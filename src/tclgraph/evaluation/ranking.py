"""The rank of the true target among all targets.

Tie rule: targets with equal scores share the mean of their ranks. A model that gives every target
the same score therefore gets the middle rank, not rank 1. A row with a NaN score gets the last
rank.
"""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from tclgraph.arrays import BoolArray, FloatArray, IntArray, ScoreArray
from tclgraph.evaluation.candidates import Candidates
from tclgraph.evaluation.ranking_kernels import count_better
from tclgraph.threads import even_cuts, num_parts, run_in_parts

# Fewer scores are not worth a second thread.
_MIN_SCORES_PER_THREAD = 1 << 16


@dataclass(frozen=True, slots=True)
class Ranks:
    """Ranks of the true targets; rank 1 is the best."""

    middle: FloatArray
    """Mean of the optimistic and the pessimistic rank. All metrics use this rank."""
    optimistic: FloatArray
    """Rank if the true target came first among the targets with its score."""
    pessimistic: FloatArray
    """Rank if the true target came last among the targets with its score."""
    is_nan: BoolArray
    """Whether the scores of the event contain a NaN."""

    def __len__(self) -> int:
        return len(self.middle)

    @classmethod
    def concatenate(cls, blocks: "list[Ranks]") -> "Ranks":
        return cls(
            np.concatenate([block.middle for block in blocks]),
            np.concatenate([block.optimistic for block in blocks]),
            np.concatenate([block.pessimistic for block in blocks]),
            np.concatenate([block.is_nan for block in blocks]),
        )

    def with_rows(self, rows: IntArray, replacement: "Ranks") -> "Ranks":
        """Return a copy with other ranks for some of the events."""
        columns: dict[str, Any] = {}
        for field in fields(Ranks):
            column = getattr(self, field.name).copy()
            column[rows] = getattr(replacement, field.name)
            columns[field.name] = column
        return Ranks(**columns)


def row_cuts(scores: ScoreArray) -> list[int]:
    """Return where the rows of scores are divided among threads."""
    return even_cuts(len(scores), num_parts(scores.size, _MIN_SCORES_PER_THREAD))


def rank(scores: ScoreArray, true: IntArray, candidates: Candidates | None = None) -> Ranks:
    """Return the rank of column `true[row]` for every row, among its candidates or all columns.

    >>> rank(np.array([[3.0, 1.0, 1.0, 0.0]]), np.array([1])).middle
    array([2.5])
    """
    if candidates is None:
        num_rows, num_targets = scores.shape
        candidates = Candidates.all(
            np.arange(num_targets), num_targets, np.zeros(num_rows, np.int64)
        )
    # Copies where needed, because numba compiles a kernel again for other kinds of arrays.
    scores, true = np.ascontiguousarray(scores), np.array(true)
    counts = np.empty((3, len(scores)), np.int64)

    def count(_: int, first: int, last: int) -> None:
        rows = slice(first, last)
        counts[:, rows] = count_better(
            scores[rows], true[rows], candidates.needed, candidates.revealed[rows]
        )

    run_in_parts(row_cuts(scores), count)
    better, equal, nan = counts
    is_nan = nan > 0
    last = candidates.counts() if is_nan.any() else 0
    optimistic = np.where(is_nan, last, better + 1).astype(np.float64)
    pessimistic = np.where(is_nan, last, better + equal).astype(np.float64)
    middle = (optimistic + pessimistic) / 2
    return Ranks(middle, optimistic, pessimistic, is_nan)


def rank_first_occurrences(
    ranks: Ranks, true: IntArray, candidates: Candidates, is_masked: BoolArray | None = None
) -> Ranks:
    """Return ranks in which a true target that is no candidate comes after all candidates.

    `is_masked` says which targets (columns) are left out of the ranking of each event (row).
    """
    rows = np.flatnonzero(~candidates.include(true))
    if not len(rows):
        return ranks
    is_ranked = Candidates(candidates.needed, candidates.revealed[rows]).table()
    if is_masked is not None:
        is_ranked &= ~is_masked[rows]
    last = is_ranked.sum(axis=1) + 1.0
    return ranks.with_rows(rows, Ranks(last, last, last, ranks.is_nan[rows]))
