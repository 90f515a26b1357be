"""Scores of candidates by a small network whose output weights depend on the query.

Shapes: B queries, K candidates, F features, H hidden units.
"""

from typing import Any

import torch
from torch import Tensor, nn

from tclgraph.features.block import MOVING_FEATURES, STEADY_FEATURES, CandidateFeatures
from tclgraph.models.ranker import conditioned_kernels as kernels
from tclgraph.threads import even_cuts, num_parts, run_in_parts

# Fewer pairs of a query and a candidate are not worth a second thread.
_MIN_PAIRS_PER_THREAD = 20_000


class ConditionedScores(nn.Module):
    """Compute score = Σ_h c_h · ReLU(w_h · features + b_h), with coefficients c from the query.

    `mean` and `inverse` standardize the features: (feature - mean) · inverse. They are folded into
    the weights. The features get no gradient. The number of hidden units is even.
    """

    def __init__(self, num_features: int, hidden: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(hidden, num_features) / num_features**0.5)
        self.bias = nn.Parameter(torch.randn(hidden) / 2)

    def forward(
        self,
        features: CandidateFeatures,
        mean_F: Tensor,
        inverse_F: Tensor,
        coefficient_BH: Tensor,
    ) -> Tensor:
        weight_HF = self.weight * inverse_F
        bias_H = self.bias - weight_HF @ mean_F
        if coefficient_BH.device.type != "cpu":
            dense_BFK = torch.from_numpy(features.to_dense()).to(weight_HF)
            return dense_scores(dense_BFK, weight_HF, bias_H, coefficient_BH)
        scores: Tensor = _Scores.apply(features, weight_HF, bias_H, coefficient_BH)  # type: ignore[no-untyped-call]
        return scores


def dense_scores(
    features_BFK: Tensor, weight_HF: Tensor, bias_H: Tensor, coefficient_BH: Tensor
) -> Tensor:
    """Return the scores on any device, in plain torch."""
    hidden_BHK = torch.relu(weight_HF @ features_BFK + bias_H[:, None])
    return torch.einsum("bh,bhk->bk", coefficient_BH, hidden_BHK)


class _Scores(torch.autograd.Function):
    """Compute scores without a table of all features, which would be large.

    The backward pass computes the hidden values again, which are too many to be stored.
    """

    @staticmethod
    def forward(
        ctx: Any,
        features: CandidateFeatures,
        weight_HF: Tensor,
        bias_H: Tensor,
        coefficient_BH: Tensor,
    ) -> Tensor:
        ctx.features = features
        ctx.save_for_backward(weight_HF, bias_H, coefficient_BH)
        score_BK = weight_HF.new_empty(features.moving.shape[0], features.moving.shape[2])
        candidates, weights = _candidates(features), _weights(weight_HF, bias_H)
        coefficient, scores = coefficient_BH.contiguous().numpy(), score_BK.numpy()

        def work(_: int, first: int, last: int) -> None:
            kernels.forward(first, last, candidates, weights, coefficient, scores)

        run_in_parts(even_cuts(score_BK.shape[1], _num_parts(score_BK)), work)
        return score_BK

    @staticmethod
    def backward(ctx: Any, gradient_BK: Tensor) -> tuple[None, Tensor, Tensor, Tensor]:
        weight_HF, bias_H, coefficient_BH = ctx.saved_tensors
        candidates, weights = _candidates(ctx.features), _weights(weight_HF, bias_H)
        coefficient = coefficient_BH.contiguous().numpy()
        gradient = gradient_BK.contiguous().numpy()
        parts = _num_parts(gradient_BK)
        weight_gradient = weight_HF.new_zeros(parts, *weight_HF.shape)
        bias_gradient = bias_H.new_zeros(parts, *bias_H.shape)
        coefficient_gradient = coefficient_BH.new_zeros(parts, *coefficient_BH.shape)

        def work(part: int, first: int, last: int) -> None:
            part_gradients = _weights(weight_gradient[part], bias_gradient[part])
            kernels.backward(
                first,
                last,
                candidates,
                weights,
                coefficient,
                gradient,
                part_gradients,
                coefficient_gradient[part].numpy(),
            )
            for columns, group_gradient in zip(_GROUPS, part_gradients[1:], strict=True):
                weight_gradient[part][:, columns] = torch.from_numpy(group_gradient)

        run_in_parts(even_cuts(gradient.shape[1], parts), work)
        return None, weight_gradient.sum(0), bias_gradient.sum(0), coefficient_gradient.sum(0)


_GROUPS = [list(STEADY_FEATURES), list(MOVING_FEATURES)]


def _candidates(features: CandidateFeatures) -> kernels.Candidates:
    return kernels.Candidates(*(getattr(features, name) for name in kernels.Candidates._fields))


def _weights(weight_HF: Tensor, bias_H: Tensor) -> kernels.Weights:
    """Return the weights by group of features; the groups are copies, the bias is not."""
    groups = (weight_HF[:, columns].numpy() for columns in _GROUPS)
    return kernels.Weights(bias_H.numpy(), *groups)


def _num_parts(score_BK: Tensor) -> int:
    return num_parts(score_BK.numel(), _MIN_PAIRS_PER_THREAD)
