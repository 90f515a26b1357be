"""What a Transformer layer does after its attention, in one pass over the queries.

Shapes: P queries with attention, N without, Q = P + N queries, I inner width of the attention,
D width, F width of the hidden layer. An *affine* has three rows: what is added before a LayerNorm,
and its scale and shift.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from tclgraph.layers import norm_kernels

# Queries are processed in chunks whose intermediate arrays fit in cache. Larger arrays would be
# limited by memory bandwidth.
_CHUNK_SIZE = 2048


class FeedForwardWeights(NamedTuple):
    """Weights of all steps, in the order of the computation."""

    output: Tensor
    attention_norm_scale: Tensor
    attention_norm_shift: Tensor
    expand: Tensor
    expand_bias: Tensor
    contract: Tensor
    contract_bias: Tensor
    output_norm_scale: Tensor
    output_norm_shift: Tensor


def feed_forward(
    attended_PI: Tensor, residual_PD: Tensor, direct_ND: Tensor, weights: FeedForwardWeights
) -> Tensor:
    """Return LN(W_contract · ReLU(W_expand · Z) + Z) with Z = LN(W_output · attended + residual).

    For the last N queries Z is LN(direct). The products with W_contract and W_expand have a bias,
    and LN is LayerNorm.
    """
    if residual_PD.device.type == "cpu":
        states: Tensor = _FeedForward.apply(attended_PI, residual_PD, direct_ND, *weights)  # type: ignore[no-untyped-call]
        return states
    return feed_forward_by_steps(attended_PI, residual_PD, direct_ND, weights)


def feed_forward_by_steps(
    attended_PI: Tensor, residual_PD: Tensor, direct_ND: Tensor, weights: FeedForwardWeights
) -> Tensor:
    """Return the same as `feed_forward` on any device, in plain torch."""
    width = residual_PD.shape[1:]
    sum_PD = functional.linear(attended_PI, weights.output) + residual_PD
    normed_QD = functional.layer_norm(
        torch.cat([sum_PD, direct_ND]),
        width,
        weights.attention_norm_scale,
        weights.attention_norm_shift,
    )
    hidden_QF = torch.relu(functional.linear(normed_QD, weights.expand, weights.expand_bias))
    return functional.layer_norm(
        functional.linear(hidden_QF, weights.contract, weights.contract_bias) + normed_QD,
        width,
        weights.output_norm_scale,
        weights.output_norm_shift,
    )


class _FeedForward(torch.autograd.Function):
    """Compute `feed_forward` in chunks; store normalized values and inverse deviations."""

    @staticmethod
    def forward(
        context: Any,
        attended_PI: Tensor,
        residual_PD: Tensor,
        direct_ND: Tensor,
        *tensors: Tensor,
    ) -> Tensor:
        weights = FeedForwardWeights(*tensors)
        num_attending, width = residual_PD.shape
        num_queries = num_attending + len(direct_ND)
        norm = norm_kernels.forward_kernel(width)
        affines = _affines(weights).numpy()
        states_QD = residual_PD.new_empty(num_queries, width)
        normed_2QD = residual_PD.new_empty(2, num_queries, width)
        inverse_2Q = residual_PD.new_empty(2, num_queries)
        hidden_QF = residual_PD.new_empty(num_queries, len(weights.expand))
        buffer_2CD = residual_PD.new_empty(2, _CHUNK_SIZE, width)
        for rows, attending in _chunks(num_attending, num_queries):
            hidden, states = hidden_QF[rows], states_QD[rows]
            normed, inverse = normed_2QD[:, rows].numpy(), inverse_2Q[:, rows].numpy()
            added, middle = buffer_2CD[:, : len(states)]
            if attending:
                torch.mm(attended_PI[rows], weights.output.T, out=added)
                residual = residual_PD[rows].contiguous().numpy()
            else:
                added.zero_()
                direct = direct_ND[rows.start - num_attending : rows.stop - num_attending]
                residual = direct.contiguous().numpy()
            norm(added.numpy(), residual, affines[0], normed[0], inverse[0], middle.numpy())
            torch.addmm(weights.expand_bias, middle, weights.expand.T, out=hidden).relu_()
            torch.mm(hidden, weights.contract.T, out=added)
            norm(added.numpy(), middle.numpy(), affines[1], normed[1], inverse[1], states.numpy())
        context.save_for_backward(attended_PI, hidden_QF, normed_2QD, inverse_2Q, *weights)
        return states_QD

    @staticmethod
    def backward(context: Any, gradient_QD: Tensor) -> tuple[Tensor, ...]:
        attended_PI, hidden_QF, normed_2QD, inverse_2Q, *tensors = context.saved_tensors
        weights = FeedForwardWeights(*tensors)
        norm_backward = norm_kernels.backward_kernel(gradient_QD.shape[1])
        affines = _affines(weights).numpy()
        affine_totals = torch.zeros_like(_affines(weights))
        scale_totals = affine_totals.numpy()
        output, expand, expand_bias, contract = (
            torch.zeros_like(weight)
            for weight in (weights.output, weights.expand, weights.expand_bias, weights.contract)
        )
        attended_gradient = torch.empty_like(attended_PI)
        sum_gradient = torch.empty_like(normed_2QD[0])
        for rows, attending in _chunks(len(attended_PI), len(hidden_QF)):
            incoming, hidden = gradient_QD[rows].contiguous(), hidden_QF[rows]
            normed, inverse = normed_2QD[:, rows].numpy(), inverse_2Q[:, rows].numpy()
            gradient, own_gradient = torch.empty_like(incoming), sum_gradient[rows]
            norm_backward(
                incoming.numpy(),
                affines[1],
                normed[1],
                inverse[1],
                scale_totals[1],
                gradient.numpy(),
            )
            contract.addmm_(gradient.T, hidden)
            hidden_gradient = gradient @ weights.contract
            hidden_gradient = torch.ops.aten.threshold_backward(hidden_gradient, hidden, 0)
            expand.addmm_(hidden_gradient.T, normed_2QD[0, rows])
            expand_bias += hidden_gradient.sum(dim=0)
            gradient.addmm_(hidden_gradient, weights.expand)
            norm_backward(
                gradient.numpy(),
                affines[0],
                normed[0],
                inverse[0],
                scale_totals[0],
                own_gradient.numpy(),
            )
            if attending:
                output.addmm_(own_gradient.T, attended_PI[rows])
                torch.mm(own_gradient, weights.output, out=attended_gradient[rows])
        # The input of `expand` is the scaled and shifted LayerNorm.
        expand *= weights.attention_norm_scale
        expand.addr_(expand_bias, weights.attention_norm_shift)
        totals = FeedForwardWeights(
            output=output,
            attention_norm_scale=affine_totals[0, 1],
            attention_norm_shift=affine_totals[0, 2],
            expand=expand,
            expand_bias=expand_bias,
            contract=contract,
            contract_bias=affine_totals[1, 0],
            output_norm_scale=affine_totals[1, 1],
            output_norm_shift=affine_totals[1, 2],
        )
        residual_gradient, direct_gradient = sum_gradient.tensor_split([len(attended_PI)])
        return attended_gradient, residual_gradient, direct_gradient, *totals


def _affines(weights: FeedForwardWeights) -> Tensor:
    """Return what is added before both LayerNorms, and their scale and shift, [2, 3, D]."""
    first = torch.zeros_like(weights.attention_norm_scale)
    first = torch.stack([first, weights.attention_norm_scale, weights.attention_norm_shift])
    second = torch.stack(
        [weights.contract_bias, weights.output_norm_scale, weights.output_norm_shift]
    )
    return torch.stack([first, second]).detach()


def _chunks(num_attending: int, num_queries: int) -> Iterator[tuple[slice, bool]]:
    """Yield ranges of queries, and whether these have attention."""
    for first, last in ((0, num_attending), (num_attending, num_queries)):
        for start in range(first, last, _CHUNK_SIZE):
            yield slice(start, min(start + _CHUNK_SIZE, last)), first < num_attending
