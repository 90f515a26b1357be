"""The features of a block of queries."""

from dataclasses import dataclass

import numpy as np

from tclgraph.arrays import IntArray, ScoreArray
from tclgraph.features.columns import (
    NUM_ACTIVITY_FEATURES,
    NUM_CANDIDATE_FEATURES,
    NUM_PAIR_FEATURES,
    ActivityColumn,
    NearbyColumn,
    PairColumn,
)

MOVING_FEATURES = (
    int(ActivityColumn.AS_TARGET_AGE),
    int(ActivityColumn.AS_SOURCE_AGE),
    int(ActivityColumn.AS_TARGET_RANK),
    int(ActivityColumn.EVENT_RANK),
    *(NUM_ACTIVITY_FEATURES + column for column in NearbyColumn),
)
"""Candidate features that are different for every query."""
STEADY_FEATURES = tuple(
    column for column in range(NUM_CANDIDATE_FEATURES) if column not in MOVING_FEATURES
)
"""Candidate features that change for few candidates from query to query."""
NUM_MOVING, NUM_STEADY = len(MOVING_FEATURES), len(STEADY_FEATURES)

_FLAGS = (ActivityColumn.WAS_TARGET, ActivityColumn.WAS_SOURCE)
_PAIR_FLAGS = (
    PairColumn.HAS_FORWARD,
    PairColumn.HAS_BACKWARD,
    PairColumn.LAST_IS_BACKWARD,
    PairColumn.HAS_GAP,
)
STEADY_IS_LOGARITHM = np.array([column not in _FLAGS for column in STEADY_FEATURES])
"""[NUM_STEADY] Whether each steady feature is a logarithm, not a flag."""
PAIR_IS_LOGARITHM = np.array(
    [column not in _PAIR_FLAGS for column in range(NUM_PAIR_FEATURES)]
    + [column not in _FLAGS for column in range(NUM_CANDIDATE_FEATURES)]
)
"""[pair features + candidate features] The same for the inputs of pairs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateFeatures:
    """Features of K candidates for R queries, without repeating what stays the same.

    Together they are a table of R · K rows of candidate features (`to_dense`), of which most equal
    those of the query before.
    """

    steady: ScoreArray
    """[K, NUM_STEADY] Steady features before the first query."""
    change_start: IntArray
    """[R + 1] Position of the first change since the query before; the last entry is C."""
    change_column: IntArray
    """[C] Candidate that changes, a row of `steady`."""
    change: ScoreArray
    """[C, NUM_STEADY] Its new steady features."""
    moving: ScoreArray
    """[R, NUM_MOVING, K]"""

    def to_dense(self) -> ScoreArray:
        """Return all features as a table, [R, candidate features, K]."""
        num_queries, _, num_columns = self.moving.shape
        dense = np.zeros((num_queries, NUM_CANDIDATE_FEATURES, num_columns), np.float32)
        dense[:, MOVING_FEATURES] = self.moving
        steady = self.steady.copy()
        for query in range(num_queries):
            changes = slice(self.change_start[query], self.change_start[query + 1])
            steady[self.change_column[changes]] = self.change[changes]
            dense[query, STEADY_FEATURES] = steady.T
        return dense


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryFeatures:
    """History features of B queries about K candidates; `columns` says what each feature means.

    Every query has neighbors: the latest neighbors of its source, M in total. It has a pair for
    each of them, the latest first, or, in training, for a sample of them: P in total. The candidate
    features are the activity features, then the nearby features. All queries have them, unless the
    features are split by repeat.
    """

    source: ScoreArray
    """[B, source features]"""
    candidate: CandidateFeatures
    candidate_query: IntArray
    """[R] Queries that have candidate features, in order."""
    neighbor_start: IntArray
    """[B + 1] Position of the first neighbor of each query; the last entry is M."""
    neighbor_target: IntArray
    """[M] Neighbors of each query, as targets."""
    pair_start: IntArray
    """[B + 1] Position of the first pair of each query; the last entry is P."""
    pair_target: IntArray
    """[P] Target of each pair."""
    pair_log_weight: ScoreArray
    """[P] Logarithm of the number of neighbors each pair stands for; empty without a sample."""
    pair_inputs: ScoreArray
    """[P, pair features + candidate features] The latter are those of the pair's target."""

    @property
    def pair(self) -> ScoreArray:
        """[P, pair features]"""
        return self.pair_inputs[:, :NUM_PAIR_FEATURES]

    @property
    def pair_candidate(self) -> ScoreArray:
        """[P, candidate features]"""
        return self.pair_inputs[:, NUM_PAIR_FEATURES:]

    @property
    def pair_query(self) -> IntArray:
        """[P] Query of each pair."""
        return np.repeat(np.arange(len(self.source)), np.diff(self.pair_start))

    @property
    def neighbor_query(self) -> IntArray:
        """[M] Query of each neighbor."""
        return np.repeat(np.arange(len(self.source)), np.diff(self.neighbor_start))
