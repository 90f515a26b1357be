"""The ranker's gate and score heads.

The next target is either one the source has interacted with (a repeat) or a new one. These are
different problems, so each has its own distribution, and a gate gives the probability of each:

    log p(v) = log g       + log softmax over repeat targets of  repeat head(v)
    log p(v) = log (1 - g) + log softmax over new targets of     explore head(v) + match(v)

The match score of the encoder acts on new targets only, where features are least informative. With
the gate it gets gradients from new pairs only, so it cannot disturb the repeat head.

Shapes: B queries, K candidates (columns), P pairs of a query's source and a target it has
interacted with, F features, H hidden.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from tclgraph.arrays import IntArray, ScoreArray
from tclgraph.features.block import HistoryFeatures
from tclgraph.features.columns import (
    NUM_ACTIVITY_FEATURES,
    NUM_CANDIDATE_FEATURES,
    NUM_PAIR_FEATURES,
    NUM_SOURCE_FEATURES,
    NUM_SPARSE_FEATURES,
)
from tclgraph.layers.conditioned_scores import ConditionedScores
from tclgraph.layers.lists import log_sum_exp
from tclgraph.models.ranker.config import RankerConfig
from tclgraph.models.ranker.scaling import FeatureScaling

_EXPLORE_HIDDEN = 16
_REPEAT_HIDDEN = 48
_GATE_HIDDEN = 32
# In place of minus infinity, which would give NaN in a softmax without candidates.
_LOG_ZERO = -1e9

_ACTIVITY = slice(0, NUM_ACTIVITY_FEATURES)
_NEARBY = slice(NUM_ACTIVITY_FEATURES, None)
_SPARSE = slice(NUM_ACTIVITY_FEATURES, NUM_ACTIVITY_FEATURES + NUM_SPARSE_FEATURES)
_ALL = slice(None)


class CandidateColumns(NamedTuple):
    """The candidates that the columns of a block stand for."""

    column_of: IntArray
    """Column of every target, -1 if it has none."""
    log_weight: Tensor | None = None
    """If columns are a sample: logarithm of the number of targets each stands for, [B, K]."""


class ExploreHead(nn.Module):
    """Scores candidates from candidate features, with weights that depend on source features."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = ConditionedScores(NUM_CANDIDATE_FEATURES, _EXPLORE_HIDDEN)
        self.shared_weight = nn.Parameter(torch.randn(_EXPLORE_HIDDEN) / _EXPLORE_HIDDEN**0.5)
        self.source_weight = nn.Linear(NUM_SOURCE_FEATURES, _EXPLORE_HIDDEN)
        nn.init.zeros_(self.source_weight.weight)
        nn.init.zeros_(self.source_weight.bias)

    def forward(self, candidate_BFK: Tensor, scaling: FeatureScaling, source_BF: Tensor) -> Tensor:
        """Return one score per query and candidate, [B, K]."""
        weight_BH = self.shared_weight + self.source_weight(source_BF)
        score_BK: Tensor = self.hidden(
            candidate_BFK, scaling.mean, scaling.inverse_deviation, weight_BH
        )
        return score_BK


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

    def measure(self, sample: list[HistoryFeatures]) -> None:
        """Measure the scaling of features on blocks of the training stream."""
        self.source_scaling.measure(np.concatenate([block.source for block in sample]))
        self.pair_scaling.measure(np.concatenate([block.pair for block in sample]))
        by_candidate = [block.candidate.transpose(0, 2, 1) for block in sample]
        self.candidate_scaling.measure(
            np.concatenate([rows.reshape(-1, NUM_CANDIDATE_FEATURES) for rows in by_candidate])
        )
        # These are 0 nearly everywhere, so their deviation says little.
        self.candidate_scaling.keep_unscaled(_SPARSE)
        if not self.config.source_features:
            self.source_scaling.drop(_ALL)
        if not self.config.activity_features:
            self.candidate_scaling.drop(_ACTIVITY)
        if not self.config.nearby_features:
            self.candidate_scaling.drop(_NEARBY)

    def forward(
        self,
        features: HistoryFeatures,
        match_BK: Tensor | None,
        columns: CandidateColumns,
        repeat_bias: float = 0.0,
    ) -> Tensor:
        """Return the log-probability of every candidate, [B, K]."""
        source_BF = self.source_scaling(self._tensor(features.source))
        candidate_BFK = self._tensor(features.candidate)
        score_BK: Tensor = self.explore(candidate_BFK, self.candidate_scaling, source_BF)
        if match_BK is not None:
            score_BK = score_BK + match_BK
        if columns.log_weight is not None:
            score_BK = score_BK + columns.log_weight
        if not self.config.repeat_head:
            return score_BK.log_softmax(dim=1)

        query_P = self._index(features.pair_query)
        repeat_P = self._repeat_scores(features, source_BF[query_P])
        column_P = columns.column_of[features.pair_target]
        has_column = column_P >= 0
        cell = self._index((features.pair_query * score_BK.shape[1] + column_P)[has_column])
        is_repeat_BK = torch.zeros_like(score_BK, dtype=torch.bool)
        is_repeat_BK.view(-1)[cell] = True
        new_BK = score_BK.masked_fill(is_repeat_BK, _LOG_ZERO)

        num_repeats = np.diff(features.pair_start)
        log_new_B, log_repeat_B = self._normalizers(
            source_BF,
            new_BK.logsumexp(dim=1),
            log_sum_exp(repeat_P, query_P, len(num_repeats)),
            no_repeat=self._index(num_repeats == 0),
            all_repeat=self._index(num_repeats == len(columns.column_of)),
            repeat_bias=repeat_bias,
        )
        log_probability_BK = new_BK + log_new_B[:, None]
        repeat_P = repeat_P + log_repeat_B[query_P]
        in_columns = self._index(np.flatnonzero(has_column))
        flat = log_probability_BK.flatten().index_put((cell,), repeat_P[in_columns])
        return flat.view_as(log_probability_BK)

    def _repeat_scores(self, features: HistoryFeatures, source_PF: Tensor) -> Tensor:
        inputs_PF = torch.cat(
            [
                self.pair_scaling(self._tensor(features.pair)),
                self.candidate_scaling(self._tensor(features.pair_candidate)),
                source_PF,
            ],
            dim=1,
        )
        score_P: Tensor = self.repeat(inputs_PF)[:, 0]
        return score_P

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

    def _index(self, array: IntArray) -> Tensor:
        return torch.from_numpy(array).to(self.explore.shared_weight.device)
