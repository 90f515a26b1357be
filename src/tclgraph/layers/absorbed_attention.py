"""Attention that projects queries instead of keys and values (see `absorbed_kernels`).

Shapes: Q queries, R rows, D width, I inner width of all heads, E = 2I: the projections to keys,
then those to values.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from tclgraph.layers import absorbed_kernels as kernels
from tclgraph.layers.packed_attention import KeyLists, even_pairs
from tclgraph.threads import run_in_parts

# How much longer a multiplication takes here than in a matrix product.
_RELATIVE_COST = 1.5


def is_absorbing_faster(
    num_queries: int, inner: int, num_rows: int, num_pairs: int, num_heads: int
) -> bool:
    """Return whether `absorbed_attention` takes less work than to project all rows."""
    absorbing = num_pairs * num_heads + num_queries * inner
    return _RELATIVE_COST * absorbing < num_rows * inner


def absorbed_attention(
    query_QI: Tensor, hidden_RD: Tensor, weight_ED: Tensor, lists: KeyLists, num_heads: int
) -> Tensor:
    """Return packed_attention(query, hidden @ weight.T, lists, num_heads), on the CPU.

    >>> hidden = torch.tensor([[1.0], [3.0]])
    >>> weight = torch.tensor([[0.0], [2.0]])  # all keys are 0
    >>> lists = KeyLists(torch.tensor([0, 2]), torch.tensor([0, 1]))
    >>> absorbed_attention(torch.ones(1, 1), hidden, weight, lists, num_heads=1).tolist()
    [[4.0]]
    """
    attended: Tensor = _AbsorbedAttention.apply(query_QI, hidden_RD, weight_ED, lists, num_heads)  # type: ignore[no-untyped-call]
    return attended


class _AbsorbedAttention(torch.autograd.Function):
    """Run the compiled kernels, with the queries divided among threads."""

    @staticmethod
    def forward(
        context: Any,
        query_QI: Tensor,
        hidden_RD: Tensor,
        weight_ED: Tensor,
        lists: KeyLists,
        num_heads: int,
    ) -> Tensor:
        inner, width = query_QI.shape[1], hidden_RD.shape[1]
        weight = weight_ED.detach().numpy()
        inputs = kernels.AbsorbedInputs(
            query_QI.detach().contiguous().numpy(),
            hidden_RD.detach().contiguous().numpy(),
            weight[:inner],
            weight[inner:],
            lists.start.numpy(),
            lists.keys.numpy(),
        )
        output = np.empty_like(inputs.query)
        share = np.empty((len(inputs.keys), num_heads), output.dtype)
        kernel = kernels.forward_kernel(num_heads, inner // num_heads, width)
        run_in_parts(even_pairs(lists), lambda _, *queries: kernel(*queries, inputs, output, share))
        context.inputs, context.lists, context.share = inputs, lists, share
        return torch.from_numpy(output)

    @staticmethod
    def backward(context: Any, gradient_QI: Tensor) -> Any:
        inputs, share = context.inputs, context.share
        inner, width = inputs.key_weight.shape
        kernel = kernels.backward_kernel(share.shape[1], inner // share.shape[1], width)
        gradient = gradient_QI.contiguous().numpy()
        query_gradient = np.empty_like(inputs.query)
        cuts = even_pairs(context.lists)
        # Queries share rows and weights, so each thread adds up gradients of its own.
        hidden_gradients = [
            torch.zeros(inputs.hidden.shape, dtype=gradient_QI.dtype) for _ in cuts[1:]
        ]
        weight_gradients = torch.zeros(
            len(hidden_gradients), 2, width, inner, dtype=gradient_QI.dtype
        )

        def run(part: int, *queries: int) -> None:
            totals = kernels.AbsorbedGradients(
                query_gradient, hidden_gradients[part].numpy(), *weight_gradients[part].numpy()
            )
            kernel(*queries, inputs, share, gradient, totals)

        run_in_parts(cuts, run)
        hidden_gradient, *others = hidden_gradients
        for other in others:
            hidden_gradient += other
        weight_gradient = weight_gradients.sum(dim=0).transpose(1, 2).reshape(2 * inner, width)
        return torch.from_numpy(query_gradient), hidden_gradient, weight_gradient, None, None
