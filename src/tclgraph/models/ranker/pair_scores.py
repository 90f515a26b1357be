"""Scores of pairs by a network with two hidden layers, whose first bias depends on the query.

Shapes: P pairs, those of each query adjacent, B queries, F inputs, H hidden units.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from tclgraph.arrays import IntArray
from tclgraph.models.ranker import pair_score_kernels as kernels

# Pairs are processed in chunks whose hidden values fit in cache.
_PAIRS_PER_CHUNK = 4096


class PairWeights(NamedTuple):
    """Weights of all layers, in the order of the computation."""

    first_HF: Tensor
    second_HH: Tensor
    second_bias_H: Tensor
    last_1H: Tensor
    last_bias_1: Tensor


def pair_scores(
    input_PF: Tensor, start: IntArray, query_bias_BH: Tensor, weights: PairWeights
) -> Tensor:
    """Return a score for every pair; the pairs of query b are those from start[b] to start[b + 1].

    A score is w_last · GELU(W_second · GELU(W_first · input + query_bias)), with biases. The inputs
    get no gradient.
    """
    if query_bias_BH.device.type == "cpu":
        is_training = torch.is_grad_enabled()
        score_P: Tensor = _Scores.apply(is_training, input_PF, start, query_bias_BH, *weights)  # type: ignore[no-untyped-call]
        return score_P
    return pair_scores_by_steps(input_PF, start, query_bias_BH, weights)


def pair_scores_by_steps(
    input_PF: Tensor, start: IntArray, query_bias_BH: Tensor, weights: PairWeights
) -> Tensor:
    """Return the same as `pair_scores` on any device, in plain torch."""
    query_P = torch.from_numpy(np.repeat(np.arange(len(start) - 1), np.diff(start)))
    pair_bias_PH = query_bias_BH.index_select(0, query_P.to(query_bias_BH.device))
    hidden_PH = functional.gelu(torch.addmm(pair_bias_PH, input_PF, weights.first_HF.T))
    hidden_PH = functional.gelu(
        functional.linear(hidden_PH, weights.second_HH, weights.second_bias_H)
    )
    return functional.linear(hidden_PH, weights.last_1H, weights.last_bias_1)[:, 0]


class _Chunk(NamedTuple):
    """Adjacent queries and their pairs."""

    queries: slice
    pairs: slice
    start: IntArray
    """First pair of every query in the chunk, and the number of pairs."""


class _Scores(torch.autograd.Function):
    """Compute the scores chunk by chunk.

    If gradients follow, the hidden values and slopes of all chunks are stored.
    """

    @staticmethod
    def forward(
        ctx: Any,
        is_training: bool,
        input_PF: Tensor,
        start: IntArray,
        query_bias_BH: Tensor,
        *tensors: Tensor,
    ) -> Tensor:
        weights = PairWeights(*tensors)
        num_pairs, width = len(input_PF), query_bias_BH.shape[1]
        longest = max((int(chunk.start[-1]) for chunk in _chunks(start)), default=0)
        room = num_pairs if is_training else longest
        stored = [query_bias_BH.new_empty(room, width) for _ in range(4)]
        score_P = query_bias_BH.new_empty(num_pairs)
        for chunk in _chunks(start):
            rows = chunk.pairs if is_training else slice(0, int(chunk.start[-1]))
            first, second, first_slope, second_slope = (values[rows] for values in stored)
            torch.mm(input_PF[chunk.pairs], weights.first_HF.T, out=first)
            query_bias = query_bias_BH[chunk.queries]
            kernels.activate(chunk.start, *_arrays(query_bias, first, first_slope))
            torch.mm(first, weights.second_HH.T, out=second)
            bias_1H, both_ends = weights.second_bias_H[None], chunk.start[[0, -1]]
            kernels.activate(both_ends, *_arrays(bias_1H, second, second_slope))
            torch.addmv(weights.last_bias_1, second, weights.last_1H[0], out=score_P[chunk.pairs])
        if is_training:
            ctx.start = start
            ctx.save_for_backward(input_PF, query_bias_BH, *tensors, *stored)
        return score_P

    @staticmethod
    def backward(ctx: Any, gradient_P: Tensor) -> tuple[Tensor | None, ...]:
        input_PF, query_bias_BH, *others = ctx.saved_tensors
        weights = PairWeights(*others[:-4])
        first_PH, second_PH, first_slope_PH, second_slope_PH = others[-4:]
        gradients = PairWeights(*(torch.zeros_like(weight) for weight in weights))
        query_bias_gradient = torch.zeros_like(query_bias_BH)
        for chunk in _chunks(ctx.start):
            pairs, gradient = chunk.pairs, gradient_P[chunk.pairs]
            gradients.last_1H[0].addmv_(second_PH[pairs].T, gradient)
            second_gradient = gradient[:, None] * weights.last_1H * second_slope_PH[pairs]
            gradients.second_HH.addmm_(second_gradient.T, first_PH[pairs])
            gradients.second_bias_H.add_(second_gradient.sum(0))
            first_gradient = (second_gradient @ weights.second_HH).mul_(first_slope_PH[pairs])
            gradients.first_HF.addmm_(first_gradient.T, input_PF[pairs])
            kernels.sum_groups(
                chunk.start, *_arrays(first_gradient, query_bias_gradient[chunk.queries])
            )
        gradients.last_bias_1.add_(gradient_P.sum())
        return None, None, None, query_bias_gradient, *gradients


def _chunks(start: IntArray) -> Iterator[_Chunk]:
    """Yield groups of queries with about _PAIRS_PER_CHUNK pairs, the last with what is left."""
    num_queries, first = len(start) - 1, 0
    while first < num_queries:
        end = int(np.searchsorted(start, start[first] + _PAIRS_PER_CHUNK))
        last = min(max(end, first + 1), num_queries)
        pairs = slice(int(start[first]), int(start[last]))
        yield _Chunk(slice(first, last), pairs, start[first : last + 1] - start[first])
        first = last


def _arrays(*tensors: Tensor) -> list[Any]:
    """Return the tensors as arrays that share their memory."""
    return [tensor.detach().numpy() for tensor in tensors]
