"""Scores of candidates by a small network whose output weights depend on the query.

Shapes: B queries, K candidates, F features, H hidden units.
"""

from typing import Any

import torch
from torch import Tensor, nn

# Queries are processed in chunks whose hidden values fit in cache. For a whole block of queries the
# hidden values would take hundreds of megabytes, and the time would be spent on moving them.
_CHUNK_SIZE = 8


class ConditionedScores(nn.Module):
    """Compute score = Σ_h c_h · ReLU(w_h · features + b_h), with coefficients c from the query.

    `mean` and `inverse` standardize the features: (feature - mean) · inverse. They are folded into
    the weights, because the features are too large to be copied. The features get no gradient.
    """

    def __init__(self, num_features: int, hidden: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(hidden, num_features) / num_features**0.5)
        self.bias = nn.Parameter(torch.randn(hidden) / 2)

    def forward(
        self, features_BFK: Tensor, mean_F: Tensor, inverse_F: Tensor, coefficient_BH: Tensor
    ) -> Tensor:
        weight_HF = self.weight * inverse_F
        bias_H = self.bias - weight_HF @ mean_F
        scores: Tensor = _Scores.apply(features_BFK, weight_HF, bias_H, coefficient_BH)  # type: ignore[no-untyped-call]
        return scores


class _Scores(torch.autograd.Function):
    """Compute scores by chunks of queries.

    The backward pass recomputes the hidden values, which are too large to be stored.
    """

    @staticmethod
    def forward(
        ctx: Any, features_BFK: Tensor, weight_HF: Tensor, bias_H: Tensor, coefficient_BH: Tensor
    ) -> Tensor:
        ctx.save_for_backward(features_BFK, weight_HF, bias_H, coefficient_BH)
        scores = []
        for chunk in _chunks(len(features_BFK)):
            hidden = _hidden(features_BFK[chunk], weight_HF, bias_H)
            scores.append(torch.bmm(coefficient_BH[chunk, None], hidden)[:, 0])
        return torch.cat(scores) if scores else features_BFK.new_empty(0, features_BFK.shape[2])

    @staticmethod
    def backward(ctx: Any, gradient_BK: Tensor) -> tuple[None, Tensor, Tensor, Tensor]:
        features_BFK, weight_HF, bias_H, coefficient_BH = ctx.saved_tensors
        weight_gradient, bias_gradient = torch.zeros_like(weight_HF), torch.zeros_like(bias_H)
        coefficient_gradient = torch.empty_like(coefficient_BH)
        for chunk in _chunks(len(features_BFK)):
            features = features_BFK[chunk]
            hidden = _hidden(features, weight_HF, bias_H)
            coefficient_gradient[chunk] = torch.bmm(hidden, gradient_BK[chunk, :, None])[:, :, 0]
            hidden_gradient = coefficient_BH[chunk, :, None] * gradient_BK[chunk, None]
            hidden_gradient *= hidden.sign_()
            weight_gradient += torch.bmm(hidden_gradient, features.transpose(1, 2)).sum(dim=0)
            bias_gradient += hidden_gradient.sum(dim=(0, 2))
        return None, weight_gradient, bias_gradient, coefficient_gradient


def _hidden(features: Tensor, weight_HF: Tensor, bias_H: Tensor) -> Tensor:
    weight = weight_HF.expand(len(features), -1, -1)
    return torch.baddbmm(bias_H[None, :, None], weight, features).relu_()


def _chunks(count: int) -> list[slice]:
    return [slice(start, start + _CHUNK_SIZE) for start in range(0, count, _CHUNK_SIZE)]
