"""What a Transformer layer does after its attention, in one pass over the queries.

Shapes: Q queries, I inner width of the attention, D width, F width of the hidden layer. An *affine*
has three rows: what is added before a LayerNorm, and its scale and shift.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from tclgraph.layers import norm_kernels

# Queries are processed in chunks whose intermediate arrays fit in cache. For all queries the time
# would be spent on moving them.
_CHUNK_SIZE = 2048


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
    if residual_QD.device.type == "cpu":
        states: Tensor = _FeedForward.apply(attended_QI, residual_QD, *weights)  # type: ignore[no-untyped-call]
        return states
    return feed_forward_by_steps(attended_QI, residual_QD, weights)


def feed_forward_by_steps(
    attended_QI: Tensor, residual_QD: Tensor, weights: FeedForwardWeights
) -> Tensor:
    """Return the same as `feed_forward` on any device, in plain torch."""
    width = residual_QD.shape[1:]
    normed_QD = functional.layer_norm(
        functional.linear(attended_QI, weights.output) + residual_QD,
        width,
        weights.attention_scale,
        weights.attention_shift,
    )
    hidden_QF = torch.relu(functional.linear(normed_QD, weights.expand, weights.expand_bias))
    return functional.layer_norm(
        functional.linear(hidden_QF, weights.contract, weights.contract_bias) + normed_QD,
        width,
        weights.output_scale,
        weights.output_shift,
    )


class _FeedForward(torch.autograd.Function):
    """The same in chunks. Of both LayerNorms only the normalized values are stored."""

    @staticmethod
    def forward(context: Any, attended_QI: Tensor, residual_QD: Tensor, *tensors: Tensor) -> Tensor:
        weights = FeedForwardWeights(*tensors)
        num_queries, width = residual_QD.shape
        norm = norm_kernels.forward_kernel(width)
        affines = _affines(weights).numpy()
        normed_2QD = residual_QD.new_empty(2, num_queries, width)
        inverse_2Q = residual_QD.new_empty(2, num_queries)
        hidden_QF = residual_QD.new_empty(num_queries, len(weights.expand))
        states_QD = torch.empty_like(residual_QD, memory_format=torch.contiguous_format)
        added = residual_QD.new_empty(_CHUNK_SIZE, width)
        middle = torch.empty_like(added)
        for rows in _chunks(num_queries):
            normed, inverse = normed_2QD[:, rows].numpy(), inverse_2Q[:, rows].numpy()
            hidden, residual = hidden_QF[rows], residual_QD[rows].contiguous()
            added, middle = added[: len(residual)], middle[: len(residual)]
            torch.mm(attended_QI[rows], weights.output.T, out=added)
            norm(added.numpy(), residual.numpy(), affines[0], normed[0], inverse[0], middle.numpy())
            torch.addmm(weights.expand_bias, middle, weights.expand.T, out=hidden).relu_()
            torch.mm(hidden, weights.contract.T, out=added)
            norm(
                added.numpy(),
                middle.numpy(),
                affines[1],
                normed[1],
                inverse[1],
                states_QD[rows].numpy(),
            )
        context.save_for_backward(attended_QI, hidden_QF, normed_2QD, inverse_2Q, *weights)
        return states_QD

    @staticmethod
    def backward(context: Any, gradient_QD: Tensor) -> tuple[Tensor, ...]:
        attended_QI, hidden_QF, normed_2QD, inverse_2Q, *tensors = context.saved_tensors
        weights = FeedForwardWeights(*tensors)
        num_queries, width = gradient_QD.shape
        norm_backward = norm_kernels.backward_kernel(width)
        affines = _affines(weights)
        totals = torch.zeros_like(affines)
        output_total = torch.zeros_like(weights.output)
        expand_total = torch.zeros_like(weights.expand)
        expand_bias_total = torch.zeros_like(weights.expand_bias)
        contract_total = torch.zeros_like(weights.contract)
        attended_gradient = torch.empty_like(attended_QI)
        residual_gradient = torch.empty_like(normed_2QD[0])
        for rows in _chunks(num_queries):
            incoming, hidden = gradient_QD[rows].contiguous(), hidden_QF[rows]
            normed, inverse = normed_2QD[:, rows], inverse_2Q[:, rows].numpy()
            gradient = torch.empty_like(incoming)
            norm_backward(
                incoming.numpy(),
                affines[1].numpy(),
                normed[1].numpy(),
                inverse[1],
                totals[1].numpy(),
                gradient.numpy(),
            )
            contract_total.addmm_(gradient.T, hidden)
            hidden_gradient = gradient @ weights.contract
            hidden_gradient = torch.ops.aten.threshold_backward(hidden_gradient, hidden, 0)
            expand_total.addmm_(hidden_gradient.T, normed[0])
            expand_bias_total += hidden_gradient.sum(dim=0)
            gradient.addmm_(hidden_gradient, weights.expand)
            norm_backward(
                gradient.numpy(),
                affines[0].numpy(),
                normed[0].numpy(),
                inverse[0],
                totals[0].numpy(),
                residual_gradient[rows].numpy(),
            )
            output_total.addmm_(residual_gradient[rows].T, attended_QI[rows])
            torch.mm(residual_gradient[rows], weights.output, out=attended_gradient[rows])
        # The input of `expand` is the scaled and shifted LayerNorm.
        expand_total *= weights.attention_scale
        expand_total.addr_(expand_bias_total, weights.attention_shift)
        return (
            attended_gradient,
            residual_gradient,
            *FeedForwardWeights(
                output=output_total,
                attention_scale=totals[0, 1],
                attention_shift=totals[0, 2],
                expand=expand_total,
                expand_bias=expand_bias_total,
                contract=contract_total,
                contract_bias=totals[1, 0],
                output_scale=totals[1, 1],
                output_shift=totals[1, 2],
            ),
        )


def _affines(weights: FeedForwardWeights) -> Tensor:
    """Return what is added before both LayerNorms, and their scale and shift, [2, 3, D]."""
    first = torch.zeros_like(weights.attention_scale)
    first = torch.stack([first, weights.attention_scale, weights.attention_shift])
    second = torch.stack([weights.contract_bias, weights.output_scale, weights.output_shift])
    return torch.stack([first, second]).detach()


def _chunks(count: int) -> Iterator[slice]:
    for start in range(0, count, _CHUNK_SIZE):
        yield slice(start, start + _CHUNK_SIZE)
