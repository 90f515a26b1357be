"""Ranks blocks of consecutive events by the rules on candidates, and counts recommendations."""

import numpy as np

from tclgraph.arrays import ScoreArray
from tclgraph.evaluation.candidates import Candidates
from tclgraph.evaluation.ranking import Ranks, rank, rank_first_occurrences
from tclgraph.evaluation.seen_targets import SeenTargets
from tclgraph.evaluation.tgb import TrueTargets
from tclgraph.evaluation.top_targets import TopTargets
from tclgraph.events.stream import EventStream


class BlockRanking:
    """Ranks the events of a part, given block by block."""

    def __init__(
        self,
        candidates: Candidates,
        *,
        seen: SeenTargets | None = None,
        true_targets: TrueTargets | None = None,
    ) -> None:
        """Start with the first event of the part, to which the first of the candidates belong.

        `seen` masks the targets that a source has interacted with, and `true_targets` leaves out
        those that TGB does not rank.
        """
        self.candidates = candidates
        self.top = TopTargets(len(candidates.needed))
        self._seen = seen
        self._true_targets = true_targets
        self._next = 0

    def skip(self, num_events: int) -> None:
        """Pass over the next events without ranking them."""
        self._next += num_events

    def rank(self, block: EventStream, scores: ScoreArray) -> Ranks:
        """Return the ranks of the next events."""
        candidates = self.candidates[self._next : self._next + len(block)]
        self._next += len(block)
        true = block.target
        is_seen = None if self._seen is None else self._seen.of_next(block)
        masked = scores if is_seen is None else np.where(is_seen, -np.inf, scores)
        # Recommendations do not depend on the true target, which only the ranking must have.
        self.top.add(masked, candidates)
        if is_seen is not None:
            rows = np.arange(len(block))
            masked[rows, true] = scores[rows, true]
        ranks = rank(masked, true, candidates)
        if self._true_targets is not None:
            ranks = self._true_targets.leave_out(ranks, masked, block, candidates)
        return rank_first_occurrences(ranks, true, candidates, is_seen)
