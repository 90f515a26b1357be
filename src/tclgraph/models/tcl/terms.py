"""What TCL's vectors cannot know, as learned terms of the score: how long ago, how often, who.

A next target is either one that the source has met or one that it has not. These are different
problems, so each has a distribution of its own, and a gate says how likely either is:

    log p(v) = log g + log softmax over met targets of    pair term(v)
    log p(v) = log (1 - g) + log softmax over others of   match(v) + candidate term(v)

The vectors only speak of targets that were not met, where the facts say least, and learn from
first meetings alone: so they cannot spoil what the pair term knows about repeats.

Shapes: B queries, K candidates (columns), P pairs that have met, F facts, H hidden.
"""

from dataclasses import dataclass

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
from tclgraph.models.tcl.config import TCLConfig

_CANDIDATE_HIDDEN = 16
_PAIR_HIDDEN = 48
_GATE_HIDDEN = 32
_LEAST_DEVIATION = 0.05
# Instead of minus infinity, which would make NaN where nothing at all is left.
_NEVER = -1e9


class Scale(nn.Module):
    """HistoryFeatures minus their mean, divided by their deviation in training; 0 if switched off."""

    mean: Tensor
    inverse: Tensor

    def __init__(self, num_facts: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(num_facts))
        self.register_buffer("inverse", torch.ones(num_facts))

    def measure(self, facts_NF: ScoreArray) -> None:
        """Take mean and deviation from a sample."""
        if len(facts_NF):
            wide = facts_NF.astype(np.float64)
            deviation = wide.std(axis=0)
            # A fact that hardly ever changed would be blown up, should it ever do.
            deviation[deviation < _LEAST_DEVIATION] = 1.0
            self.mean.copy_(torch.from_numpy(wide.mean(axis=0)))
            self.inverse.copy_(torch.from_numpy(1 / deviation))

    def leave(self, which: slice) -> None:
        """These facts as they are."""
        self.mean[which] = 0.0
        self.inverse[which] = 1.0

    def switch_off(self, which: slice) -> None:
        self.mean[which] = 0.0
        self.inverse[which] = 0.0

    def forward(self, facts_NF: Tensor) -> Tensor:
        return (facts_NF - self.mean) * self.inverse


_ACTIVITY = slice(0, NUM_ACTIVITY_FEATURES)
_NEARBY = slice(NUM_ACTIVITY_FEATURES, None)
_SPARSE = slice(NUM_ACTIVITY_FEATURES, NUM_ACTIVITY_FEATURES + NUM_SPARSE_FEATURES)
_ALL = slice(None)


@dataclass(frozen=True, slots=True)
class Choice:
    """Which columns of a block a query chooses among; all, unless they are a sample."""

    column_of: IntArray
    """Column of every target, -1 if it has none."""
    weight: Tensor | None = None
    """Added to the scores of columns: the log of how many targets each stands for, [B, K]."""


class HistoryTerms(nn.Module):
    """Log-probabilities of all candidates from facts, and from how well vectors match."""

    def __init__(self, config: TCLConfig) -> None:
        super().__init__()
        self.config = config
        self.source_scale = Scale(NUM_SOURCE_FEATURES)
        self.candidate_scale = Scale(NUM_CANDIDATE_FEATURES)
        self.pair_scale = Scale(NUM_PAIR_FEATURES)
        self.candidate = ConditionedScores(NUM_CANDIDATE_FEATURES, _CANDIDATE_HIDDEN)
        self.by_all = nn.Parameter(torch.randn(_CANDIDATE_HIDDEN) / _CANDIDATE_HIDDEN**0.5)
        self.by_source = nn.Linear(NUM_SOURCE_FEATURES, _CANDIDATE_HIDDEN)
        nn.init.zeros_(self.by_source.weight)
        nn.init.zeros_(self.by_source.bias)
        self.pair = nn.Sequential(
            nn.Linear(
                NUM_PAIR_FEATURES + NUM_CANDIDATE_FEATURES + NUM_SOURCE_FEATURES, _PAIR_HIDDEN
            ),
            nn.GELU(),
            nn.Linear(_PAIR_HIDDEN, _PAIR_HIDDEN),
            nn.GELU(),
            nn.Linear(_PAIR_HIDDEN, 1),
        )
        self.gate = nn.Sequential(
            nn.Linear(NUM_SOURCE_FEATURES, _GATE_HIDDEN), nn.GELU(), nn.Linear(_GATE_HIDDEN, 1)
        )

    def measure(self, sample: list[HistoryFeatures]) -> None:
        """Learn what is usual from blocks of the training stream."""
        self.source_scale.measure(np.concatenate([facts.source for facts in sample]))
        self.pair_scale.measure(np.concatenate([facts.pair for facts in sample]))
        by_row = [facts.candidate.transpose(0, 2, 1) for facts in sample]
        self.candidate_scale.measure(
            np.concatenate([one.reshape(-1, NUM_CANDIDATE_FEATURES) for one in by_row])
        )
        # 0 nearly everywhere, so their deviation says little.
        self.candidate_scale.leave(_SPARSE)
        if not self.config.source_state:
            self.source_scale.switch_off(_ALL)
        if not self.config.candidate_state:
            self.candidate_scale.switch_off(_ACTIVITY)
        if not self.config.nearby:
            self.candidate_scale.switch_off(_NEARBY)

    def forward(
        self, facts: HistoryFeatures, match_BK: Tensor, choice: Choice, repeat_bias: float = 0.0
    ) -> Tensor:
        """Log-probability of every column, [B, K], the gate moved by so much."""
        source_BF = self.source_scale(self._tensor(facts.source))
        score_BK: Tensor = self.candidate(
            self._tensor(facts.candidate),
            self.candidate_scale.mean,
            self.candidate_scale.inverse,
            self.by_all + self.by_source(source_BF),
        )
        if self.config.embeddings:
            score_BK = score_BK + match_BK
        if choice.weight is not None:
            score_BK = score_BK + choice.weight
        if not self.config.pair_history:
            return score_BK.log_softmax(dim=1)

        query, column = facts.pair_query, choice.column_of[facts.pair_target]
        query_P = self._index(query)
        pair_P: Tensor = self.pair(
            torch.cat(
                [
                    self.pair_scale(self._tensor(facts.pair)),
                    self.candidate_scale(self._tensor(facts.pair_candidate)),
                    source_BF[query_P],
                ],
                dim=1,
            )
        )[:, 0]
        cell = self._index((query * score_BK.shape[1] + column)[column >= 0])
        is_met = torch.zeros_like(score_BK, dtype=torch.bool)
        is_met.view(-1)[cell] = True
        new_BK = score_BK.masked_fill(is_met, _NEVER)
        all_new_B = new_BK.logsumexp(dim=1)
        all_met_B = log_sum_exp(pair_P, query_P, len(facts.source))
        if self.config.repeat_gate:
            gate_B = self.gate(source_BF)[:, 0] + repeat_bias
            num_met = np.diff(facts.pair_start)
            # Who has met nobody cannot repeat, and who has met all cannot do otherwise.
            gate_B = gate_B.masked_fill(self._index(num_met == 0), _NEVER)
            gate_B = gate_B.masked_fill(self._index(num_met == len(choice.column_of)), -_NEVER)
            new_B = functional.logsigmoid(-gate_B) - all_new_B
            met_P = pair_P + (functional.logsigmoid(gate_B) - all_met_B)[query_P]
        else:
            new_B = -torch.logaddexp(all_new_B, all_met_B)
            met_P = pair_P + new_B[query_P]
        found_BK = new_BK + new_B[:, None]
        kept = self._index(np.flatnonzero(column >= 0))
        return found_BK.flatten().index_put((cell,), met_P[kept]).view_as(found_BK)

    def _tensor(self, array: ScoreArray) -> Tensor:
        return torch.from_numpy(array).to(self.by_all)

    def _index(self, array: IntArray) -> Tensor:
        return torch.from_numpy(array).to(self.by_all.device)
