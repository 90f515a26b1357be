"""The ranker's gate and score heads.

The next target is either one the source has interacted with (a repeat) or a new one. These are
different problems, so each has its own distribution, and a gate gives the probability of each:

    log p(v) = log g       + log softmax over repeat targets of  repeat head(v)
    log p(v) = log (1 - g) + log softmax over new targets of     explore head(v) + match(v)

The match score of the encoder acts on new targets only, where features are least informative. With
the gate it gets gradients from new pairs only, so it cannot disturb the repeat head.

In training, candidates and repeat targets may be samples. Each then represents several targets, and
the logarithm of their number is added to its score.

Shapes: B queries, R of them with candidate features, K candidates (columns), P pairs of a query's
source and a target it has interacted with, F features, H hidden.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from tclgraph.arrays import BoolArray, IntArray, ScoreArray
from tclgraph.features.block import CandidateFeatures, HistoryFeatures
from tclgraph.features.columns import (
    NUM_ACTIVITY_FEATURES,
    NUM_CANDIDATE_FEATURES,
    NUM_PAIR_FEATURES,
    NUM_SOURCE_FEATURES,
    NUM_SPARSE_FEATURES,
)
from tclgraph.layers.lists import log_sum_exp
from tclgraph.models.ranker.conditioned_scores import ConditionedScores
from tclgraph.models.ranker.config import RankerConfig
from tclgraph.models.ranker.pair_scores import PairWeights, pair_scores
from tclgraph.models.ranker.scaling import FeatureScaling, Moments
from tclgraph.models.ranker.score_table import fill_neighbors, normalize
from tclgraph.models.ranker.unknown import SeparateScores, UnknownTargets
from tclgraph.models.ranker.windows import CandidateColumns

_EXPLORE_HIDDEN = 16
_REPEAT_HIDDEN = 48
_GATE_HIDDEN = 32
# In place of minus infinity, which would give NaN in a softmax without candidates.
_LOG_ZERO = -1e9

_ACTIVITY = slice(0, NUM_ACTIVITY_FEATURES)
_NEARBY = slice(NUM_ACTIVITY_FEATURES, None)
_SPARSE = slice(NUM_ACTIVITY_FEATURES, NUM_ACTIVITY_FEATURES + NUM_SPARSE_FEATURES)
_ALL = slice(None)


class ExploreHead(nn.Module):
    """Scores candidates from candidate features, with weights that depend on source features."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = ConditionedScores(NUM_CANDIDATE_FEATURES, _EXPLORE_HIDDEN)
        self.shared_weight = nn.Parameter(torch.randn(_EXPLORE_HIDDEN) / _EXPLORE_HIDDEN**0.5)
        self.source_weight = nn.Linear(NUM_SOURCE_FEATURES, _EXPLORE_HIDDEN)
        nn.init.zeros_(self.source_weight.weight)
        nn.init.zeros_(self.source_weight.bias)

    def forward(
        self, features: CandidateFeatures, scaling: FeatureScaling, source_BF: Tensor
    ) -> Tensor:
        """Return one score per query and candidate, [B, K]."""
        weight_BH = self.shared_weight + self.source_weight(source_BF)
        score_BK: Tensor = self.hidden(features, scaling.mean, scaling.inverse_deviation, weight_BH)
        return score_BK


class Scores(NamedTuple):
    """Scores of the two heads, and what to add to turn them into log-probabilities."""

    new_RK: Tensor
    """Scores of the explore head, about minus infinity for repeat targets."""
    log_new_B: Tensor
    repeat_P: Tensor
    log_repeat_B: Tensor
    log_total_B: Tensor
    """Logarithm of the total by which the explore head's distribution is divided."""


class ScoreHeads(nn.Module):
    """Log-probabilities of all candidates, from history features and optionally match scores."""

    def __init__(self, config: RankerConfig) -> None:
        super().__init__()
        self.config = config
        self.source_scaling = FeatureScaling(NUM_SOURCE_FEATURES)
        self.candidate_scaling = FeatureScaling(NUM_CANDIDATE_FEATURES)
        self.pair_scaling = FeatureScaling(NUM_PAIR_FEATURES)
        self.explore = ExploreHead()
        num_repeat_inputs = NUM_PAIR_FEATURES + NUM_CANDIDATE_FEATURES + NUM_SOURCE_FEATURES
        self.repeat = nn.Sequential(
            nn.Linear(num_repeat_inputs, _REPEAT_HIDDEN),
            nn.GELU(),
            nn.Linear(_REPEAT_HIDDEN, _REPEAT_HIDDEN),
            nn.GELU(),
            nn.Linear(_REPEAT_HIDDEN, 1),
        )
        self.gate = nn.Sequential(
            nn.Linear(NUM_SOURCE_FEATURES, _GATE_HIDDEN), nn.GELU(), nn.Linear(_GATE_HIDDEN, 1)
        )

    def measure(self, sample: Iterable[HistoryFeatures]) -> None:
        """Measure the scaling of features on blocks of the training stream."""
        source, pair, candidate = Moments(), Moments(), Moments()
        for block in sample:
            source.add(block.source)
            pair.add(block.pair)
            dense = block.candidate.to_dense().transpose(0, 2, 1)
            candidate.add(dense.reshape(-1, NUM_CANDIDATE_FEATURES))
        self.source_scaling.set(source)
        self.pair_scaling.set(pair)
        self.candidate_scaling.set(candidate)
        # These are 0 nearly everywhere, so their deviation says little.
        self.candidate_scaling.keep_unscaled(_SPARSE)
        if not self.config.source_features:
            self.source_scaling.drop(_ALL)
        if not self.config.activity_features:
            self.candidate_scaling.drop(_ACTIVITY)
        if not self.config.nearby_features:
            self.candidate_scaling.drop(_NEARBY)

    @torch.no_grad()
    def log_probabilities(
        self,
        features: HistoryFeatures,
        match_BT: Tensor | None,
        repeat_bias: float = 0.0,
        unknown: UnknownTargets | None = None,
    ) -> Tensor:
        """Return the log-probability of every target, [B, T].

        Unknown targets have no part in the probabilities of others.
        """
        source_BF = self.source_scaling(self._tensor(features.source))
        score_BT = self._explore_scores(features, source_BF, match_BT)
        separate, num_targets = None, np.full(len(score_BT), score_BT.shape[1])
        if unknown is not None and len(unknown.target):
            separate = SeparateScores(score_BT, unknown, _LOG_ZERO)
            num_targets -= unknown.is_unknown(len(score_BT)).sum(axis=1)
        if not self.config.repeat_head:
            if separate is None:
                return score_BT.log_softmax(dim=1)
            log_total_B = score_BT.logsumexp(dim=1)
            separate.put_back(score_BT, log_total_B)
            return score_BT - log_total_B[:, None]
        column_of = np.arange(score_BT.shape[1])
        scores = self._scores(features, column_of, source_BF, score_BT, num_targets, repeat_bias)
        if separate is not None:
            separate.put_back(score_BT, scores.log_total_B)
        normalize(score_BT, features, scores.repeat_P, scores.log_repeat_B, scores.log_new_B)
        return score_BT

    def loss(
        self,
        features: HistoryFeatures,
        candidates: CandidateColumns,
        true_target: IntArray,
        match_RK: Tensor | None = None,
    ) -> Tensor:
        """Return the mean of -log p of the true targets.

        The features may be split by repeat if the heads have a gate.
        """
        source_BF = self.source_scaling(self._tensor(features.source))
        score_RK = self._explore_scores(features, source_BF, match_RK)
        explored = features.candidate_query
        true_column = self._index(candidates.column_of[true_target[explored]])[:, None]
        if candidates.is_sampled is not None:
            score_RK = score_RK + self._log_weights(candidates, true_target[explored], true_column)
        if not self.config.repeat_head:
            return -score_RK.log_softmax(dim=1).gather(1, true_column).mean()
        column_of = candidates.column_of
        num_targets = np.full(len(true_target), len(column_of))
        scores = self._scores(features, column_of, source_BF, score_RK, num_targets)
        explored_R = self._index(explored)
        log_probability_R = (
            scores.new_RK.gather(1, true_column)[:, 0] + scores.log_new_B[explored_R]
        )
        query_P = features.pair_query
        is_true = features.pair_target == true_target[query_P]
        repeated = self._index(query_P[is_true])
        repeat_score = scores.repeat_P[self._index(np.flatnonzero(is_true))]
        log_probability_B = log_probability_R.new_zeros(len(true_target)).index_copy(
            0, explored_R, log_probability_R
        )
        return -log_probability_B.index_put(
            (repeated,), repeat_score + scores.log_repeat_B[repeated]
        ).mean()

    def _log_weights(
        self, candidates: CandidateColumns, true_target: IntArray, true_column: Tensor
    ) -> Tensor:
        """Return the logarithm of the number of targets that each column stands for, [R, K].

        The true target stands for itself, and the rest of the sample for all others. A column that
        is there only because it is the true target of another event stands for nothing.
        """
        column_of, is_sampled = candidates.column_of, candidates.is_sampled
        assert is_sampled is not None
        num_others = np.count_nonzero(is_sampled) - is_sampled[column_of[true_target]]
        weight = np.log((len(column_of) - 1) / np.maximum(num_others, 1))
        zero = self.explore.shared_weight.new_tensor(_LOG_ZERO)
        log_weight_RK = torch.where(self._index(is_sampled), self._tensor(weight)[:, None], zero)
        return log_weight_RK.scatter(1, true_column, 0.0)

    def _explore_scores(
        self, features: HistoryFeatures, source_BF: Tensor, match_RK: Tensor | None
    ) -> Tensor:
        source_RF = source_BF
        if len(features.candidate_query) < len(source_BF):
            source_RF = source_BF[self._index(features.candidate_query)]
        score_RK: Tensor = self.explore(features.candidate, self.candidate_scaling, source_RF)
        return score_RK if match_RK is None else score_RK + match_RK

    def _scores(
        self,
        features: HistoryFeatures,
        column_of: IntArray,
        source_BF: Tensor,
        score_RK: Tensor,
        num_targets: IntArray,
        repeat_bias: float = 0.0,
    ) -> Scores:
        """Return the scores of both heads, given those of the explore head.

        `score_RK` is changed in place. `num_targets` is the number of targets that each query
        chooses among.
        """
        # The softmax gives no gradient to scores near minus infinity. The loss reads such a score
        # only of a true target that is a repeat, and then replaces it.
        fill_neighbors(score_RK, features, column_of, _LOG_ZERO)
        repeat_P = self._repeat_scores(features, source_BF)
        weighted_P = repeat_P
        if len(features.pair_log_weight):
            weighted_P = repeat_P + self._tensor(features.pair_log_weight)
        num_repeats = np.diff(features.neighbor_start)
        row_start = score_RK.shape[1] * np.arange(len(score_RK) + 1)
        total_new_B = log_sum_exp(score_RK.flatten(), row_start)
        if len(score_RK) < len(source_BF):
            explored_R = self._index(features.candidate_query)
            zero_B = total_new_B.new_zeros(len(source_BF))
            total_new_B = zero_B.index_copy(0, explored_R, total_new_B)
        log_new_B, log_repeat_B = self._normalizers(
            source_BF,
            total_new_B,
            log_sum_exp(weighted_P, features.pair_start),
            no_repeat=self._index(num_repeats == 0),
            all_repeat=self._index(num_repeats == num_targets),
            repeat_bias=repeat_bias,
        )
        log_total_B = total_new_B if self.config.gate else -log_new_B
        return Scores(score_RK, log_new_B, repeat_P, log_repeat_B, log_total_B)

    def _repeat_scores(self, features: HistoryFeatures, source_BF: Tensor) -> Tensor:
        """Return the scores of all pairs.

        The first layer is split: what comes from the source is computed once per query, and the
        scaling of the other inputs is folded into the weights.
        """
        first, second, last = (layer for layer in self.repeat if isinstance(layer, nn.Linear))
        num_inputs = NUM_PAIR_FEATURES + NUM_CANDIDATE_FEATURES
        pair, candidate = self.pair_scaling, self.candidate_scaling
        inverse = torch.cat([pair.inverse_deviation, candidate.inverse_deviation])
        weight = first.weight[:, :num_inputs] * inverse
        bias = first.bias - weight @ torch.cat([pair.mean, candidate.mean])
        query_bias_BH = source_BF @ first.weight[:, num_inputs:].T + bias
        weights = PairWeights(weight, second.weight, second.bias, last.weight, last.bias)
        return pair_scores(
            self._tensor(features.pair_inputs), features.pair_start, query_bias_BH, weights
        )

    def _normalizers(
        self,
        source_BF: Tensor,
        total_new_B: Tensor,
        total_repeat_B: Tensor,
        *,
        no_repeat: Tensor,
        all_repeat: Tensor,
        repeat_bias: float,
    ) -> tuple[Tensor, Tensor]:
        """Return the log-normalizers to add to the scores of new and of repeat targets."""
        if not self.config.gate:
            both_B = -torch.logaddexp(total_new_B, total_repeat_B)
            return both_B, both_B
        gate_B = self.gate(source_BF)[:, 0] + repeat_bias
        # A source without interactions cannot repeat; after interacting with all targets it must.
        gate_B = gate_B.masked_fill(no_repeat, _LOG_ZERO)
        gate_B = gate_B.masked_fill(all_repeat, -_LOG_ZERO)
        return (
            functional.logsigmoid(-gate_B) - total_new_B,
            functional.logsigmoid(gate_B) - total_repeat_B,
        )

    def _tensor(self, array: ScoreArray) -> Tensor:
        return torch.from_numpy(array).to(self.explore.shared_weight)

    def _index(self, array: IntArray | BoolArray) -> Tensor:
        return torch.from_numpy(array).to(self.explore.shared_weight.device)
