"""The features of a block of queries."""

from dataclasses import dataclass

import numpy as np

from tclgraph.arrays import IntArray, ScoreArray


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryFeatures:
    """History features of B queries about K candidates; `columns` says what each feature means.

    P is the number of pairs: for every query, its source and each neighbor of the source, the
    latest neighbor first. Candidate features are those of activity, then those of what is nearby.
    """

    source: ScoreArray
    """[B, source features]"""
    candidate: ScoreArray
    """[B, candidate features, K]"""
    pair_start: IntArray
    """[B + 1] Position of the first pair of each query; the last entry is P."""
    pair_target: IntArray
    """[P] Target of each pair."""
    pair: ScoreArray
    """[P, pair features]"""
    pair_candidate: ScoreArray
    """[P, candidate features] Candidate features of each pair's target."""

    @property
    def pair_query(self) -> IntArray:
        """[P] Query of each pair."""
        return np.repeat(np.arange(len(self.source)), np.diff(self.pair_start))
