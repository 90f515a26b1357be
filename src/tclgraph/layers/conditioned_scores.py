"""One number for every candidate of every query, by a small network that each query can tune.

Shapes: B queries, K candidates, F facts, H hidden.
"""

from typing import Any

import torch
from torch import Tensor, nn

# Queries at a time: the hidden values of so many stay near the processor. Made whole for a block of
# queries they would be hundreds of megabytes, and moving them would be all the work.
_QUERIES_AT_ONCE = 8


class ConditionedScores(nn.Module):
    """score = Σ_h c_h · ReLU(w_h · facts + b_h), where the query gives c.

    `mean` and `inverse` standardise the facts; they are folded into the weights, as the facts
    themselves are too many to touch twice. No gradient flows into facts.
    """

    def __init__(self, num_facts: int, hidden: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(hidden, num_facts) / num_facts**0.5)
        self.bias = nn.Parameter(torch.randn(hidden) / 2)

    def forward(
        self, facts_BFK: Tensor, mean_F: Tensor, inverse_F: Tensor, by_BH: Tensor
    ) -> Tensor:
        weight_HF = self.weight * inverse_F
        bias_H = self.bias - weight_HF @ mean_F
        scores: Tensor = _Scores.apply(facts_BFK, weight_HF, bias_H, by_BH)  # type: ignore[no-untyped-call]
        return scores


class _Scores(torch.autograd.Function):
    """Hidden values are made again on the way back, a few queries at a time."""

    @staticmethod
    def forward(
        ctx: Any, facts_BFK: Tensor, weight_HF: Tensor, bias_H: Tensor, by_BH: Tensor
    ) -> Tensor:
        ctx.save_for_backward(facts_BFK, weight_HF, bias_H, by_BH)
        parts = [
            torch.bmm(by_BH[some, None], _hidden(facts_BFK[some], weight_HF, bias_H))[:, 0]
            for some in _pieces(len(facts_BFK))
        ]
        return torch.cat(parts) if parts else facts_BFK.new_empty(0, facts_BFK.shape[2])

    @staticmethod
    def backward(ctx: Any, slope_BK: Tensor) -> tuple[None, Tensor, Tensor, Tensor]:
        facts_BFK, weight_HF, bias_H, by_BH = ctx.saved_tensors
        weight_slope, bias_slope = torch.zeros_like(weight_HF), torch.zeros_like(bias_H)
        by_slope = torch.empty_like(by_BH)
        for some in _pieces(len(facts_BFK)):
            hidden = _hidden(facts_BFK[some], weight_HF, bias_H)
            by_slope[some] = torch.bmm(hidden, slope_BK[some, :, None])[:, :, 0]
            through = by_BH[some, :, None] * slope_BK[some, None]
            through *= hidden.sign_()
            weight_slope += torch.bmm(through, facts_BFK[some].transpose(1, 2)).sum(dim=0)
            bias_slope += through.sum(dim=(0, 2))
        return None, weight_slope, bias_slope, by_slope


def _hidden(facts: Tensor, weight_HF: Tensor, bias_H: Tensor) -> Tensor:
    weight = weight_HF.expand(len(facts), -1, -1)
    return torch.baddbmm(bias_H[None, :, None], weight, facts).relu_()


def _pieces(count: int) -> list[slice]:
    return [slice(start, start + _QUERIES_AT_ONCE) for start in range(0, count, _QUERIES_AT_ONCE)]
