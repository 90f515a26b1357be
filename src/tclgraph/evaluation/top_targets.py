"""What a model recommends: how many of the candidates, and how common they were in training.

A recommendation is one of the 10 candidates with the highest scores for an event; among equal
scores, the smaller id comes first. It does not depend on the true target of the event.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from pydantic import ConfigDict

from tclgraph.arrays import IntArray, ScoreArray
from tclgraph.evaluation.candidates import Candidates
from tclgraph.evaluation.ranking import row_cuts
from tclgraph.evaluation.ranking_kernels import count_top
from tclgraph.threads import run_in_parts

DEPTH = 10
"""Number of recommendations for an event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopReport:
    """Coverage and novelty of the top targets of all ranked events."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    depth: int
    """Number of recommendations for an event."""
    coverage: float
    """Percentage of the candidates that are recommended at least once."""
    novelty: float | None
    """Mean self-information of the recommendations in bits, −log2 of the share of the training
    events with the target; None if nothing is recommended."""

    def cells(self) -> list[str]:
        """Return coverage and novelty as they are printed."""
        novelty = "-" if self.novelty is None else f"{self.novelty:.2f}"
        return [f"{self.coverage:.2f}", novelty]


class TopTargets:
    """Counts how often each target is recommended."""

    def __init__(self, num_targets: int) -> None:
        self.times = np.zeros(num_targets, dtype=np.int64)
        """Number of events for which each target is recommended."""

    def add(self, scores: ScoreArray, candidates: Candidates) -> None:
        """Count the recommendations for some events."""
        scores, cuts = np.ascontiguousarray(scores), row_cuts(scores)
        times = np.zeros((len(cuts) - 1, len(self.times)), np.int64)

        def count(part: int, first: int, last: int) -> None:
            revealed = candidates.revealed[first:last]
            count_top(scores[first:last], candidates.needed, revealed, DEPTH, times[part])

        run_in_parts(cuts, count)
        self.times += times.sum(axis=0)

    def report(self, train_target: IntArray, num_candidates: int) -> TopReport:
        """Return coverage and novelty, given the target of every training event.

        A target that is unseen counts as one that occurs once.
        """
        occurrences = np.bincount(train_target, minlength=len(self.times)).clip(min=1)
        information = np.log2(len(train_target) / occurrences)
        total = self.times.sum()
        return TopReport(
            depth=DEPTH,
            coverage=100.0 * int(np.count_nonzero(self.times)) / max(1, num_candidates),
            novelty=float(self.times @ information / total) if total else None,
        )
