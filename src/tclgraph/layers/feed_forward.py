"""What a Transformer layer does after its attention, in one pass over the queries.

Shapes: Q queries, I inner width of the attention, D width, F width of the hidden layer.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

# Queries are processed in chunks whose intermediate arrays fit in cache. For all queries the time
# would be spent on moving them.
_CHUNK_SIZE = 2048
_EPSILON = 1e-5  # of LayerNorm, torch's default

_norm = torch.ops.aten.native_layer_norm
_norm_backward = torch.ops.aten.native_layer_norm_backward
_relu_backward = torch.ops.aten.threshold_backward


class FeedForwardWeights(NamedTuple):
    """Weights of all steps, in the order of the computation."""

    output: Tensor
    attention_scale: Tensor
    attention_shift: Tensor
    expand: Tensor
    expand_bias: Tensor
    contract: Tensor
    contract_bias: Tensor
    output_scale: Tensor
    output_shift: Tensor


def feed_forward(attended_QI: Tensor, residual_QD: Tensor, weights: FeedForwardWeights) -> Tensor:
    """Return LN(W_contract · ReLU(W_expand · Z) + Z) with Z = LN(W_output · attended + residual).

    The products with W_contract and W_expand have a bias, and LN is LayerNorm.
    """
    states: Tensor = _FeedForward.apply(attended_QI, residual_QD, *weights)  # type: ignore[no-untyped-call]
    return states


class _FeedForward(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, attended_QI: Tensor, residual_QD: Tensor, *tensors: Tensor) -> Tensor:
        weights = FeedForwardWeights(*tensors)
        num_queries, width = residual_QD.shape
        # Both LayerNorms have an input, an output, and the mean and deviation of each row.
        first_input, first, second_input, second = (torch.empty_like(residual_QD) for _ in range(4))
        moments_4Q = residual_QD.new_empty(4, num_queries, 1)
        hidden_QF = residual_QD.new_empty(num_queries, len(weights.expand))
        for rows in _chunks(num_queries):
            torch.addmm(
                residual_QD[rows], attended_QI[rows], weights.output.T, out=first_input[rows]
            )
            scale, shift = weights.attention_scale, weights.attention_shift
            _norm.out(
                first_input[rows],
                (width,),
                scale,
                shift,
                _EPSILON,
                out0=first[rows],
                out1=moments_4Q[0, rows],
                out2=moments_4Q[1, rows],
            )
            hidden = hidden_QF[rows]
            torch.addmm(weights.expand_bias, first[rows], weights.expand.T, out=hidden).relu_()
            torch.addmm(weights.contract_bias, hidden, weights.contract.T, out=second_input[rows])
            second_input[rows] += first[rows]
            scale, shift = weights.output_scale, weights.output_shift
            _norm.out(
                second_input[rows],
                (width,),
                scale,
                shift,
                _EPSILON,
                out0=second[rows],
                out1=moments_4Q[2, rows],
                out2=moments_4Q[3, rows],
            )
        context.save_for_backward(
            attended_QI, first_input, first, hidden_QF, second_input, moments_4Q, *weights
        )
        return second

    @staticmethod
    def backward(context: Any, gradient_QD: Tensor) -> tuple[Tensor, ...]:
        attended_QI, first_input, first, hidden_QF, second_input, moments_4Q, *tensors = (
            context.saved_tensors
        )
        weights = FeedForwardWeights(*tensors)
        totals = FeedForwardWeights(*(torch.zeros_like(weight) for weight in weights))
        attended_gradient = torch.empty_like(attended_QI)
        residual_gradient = torch.empty_like(first)
        for rows in _chunks(len(first)):
            mean_first, inverse_first, mean_second, inverse_second = moments_4Q[:, rows]
            gradient, scale_gradient, shift_gradient = _norm_backward(
                gradient_QD[rows],
                second_input[rows],
                first.shape[1:],
                mean_second,
                inverse_second,
                weights.output_scale,
                weights.output_shift,
                [True, True, True],
            )
            totals.output_scale.add_(scale_gradient)
            totals.output_shift.add_(shift_gradient)
            totals.contract.addmm_(gradient.T, hidden_QF[rows])
            totals.contract_bias.add_(gradient.sum(dim=0))
            hidden_gradient = _relu_backward(gradient @ weights.contract, hidden_QF[rows], 0)
            totals.expand.addmm_(hidden_gradient.T, first[rows])
            totals.expand_bias.add_(hidden_gradient.sum(dim=0))
            gradient, scale_gradient, shift_gradient = _norm_backward(
                gradient.addmm_(hidden_gradient, weights.expand),
                first_input[rows],
                first.shape[1:],
                mean_first,
                inverse_first,
                weights.attention_scale,
                weights.attention_shift,
                [True, True, True],
            )
            totals.attention_scale.add_(scale_gradient)
            totals.attention_shift.add_(shift_gradient)
            totals.output.addmm_(gradient.T, attended_QI[rows])
            torch.mm(gradient, weights.output, out=attended_gradient[rows])
            residual_gradient[rows] = gradient
        return attended_gradient, residual_gradient, *totals


def _chunks(count: int) -> Iterator[slice]:
    for start in range(0, count, _CHUNK_SIZE):
        yield slice(start, start + _CHUNK_SIZE)
