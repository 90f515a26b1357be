"""Multi-head attention in which every query has its own list of keys.

Shapes: Q queries, R rows that serve as keys and values, P pairs of a query and one of its keys,
H heads, W width of a head, D = H · W columns, E = 2D: the key of a row, then its value. Head h owns
the columns h, h + H, h + 2H, …; the assignment of columns to heads makes no difference, because the
projections around the attention are learned, and this assignment is fast.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tclgraph.layers import kernels
from tclgraph.threads import num_parts, run_in_parts


@dataclass(frozen=True, slots=True)
class KeyLists:
    """Rows that each query attends to: keys[start[q]:start[q + 1]], at least one."""

    start: Tensor
    keys: Tensor
    num_single: int = 0
    """Number of queries, the last ones, whose only key is the row that they come from."""


def packed_attention(
    query_QD: Tensor, key_value_RE: Tensor, lists: KeyLists, num_heads: int
) -> Tensor:
    """Return softmax attention of each query over its own keys, scaled by 1/√(head width).

    >>> key_value = torch.tensor([[0.0, 1.0], [0.0, 3.0]])
    >>> lists = KeyLists(torch.tensor([0, 2, 3]), torch.tensor([0, 1, 1]))
    >>> packed_attention(torch.zeros(2, 1), key_value, lists, num_heads=1).tolist()
    [[2.0], [3.0]]
    """
    if query_QD.device.type == "cpu":
        attended: Tensor = _CompiledAttention.apply(query_QD, key_value_RE, lists, num_heads)  # type: ignore[no-untyped-call]
        return attended
    return attention_by_gathering(query_QD, key_value_RE, lists, num_heads)


def attention_by_gathering(
    query_QD: Tensor, key_value_RE: Tensor, lists: KeyLists, num_heads: int
) -> Tensor:
    """Return the same as `packed_attention` on any device, in plain torch."""
    query_QWH, key_RWH, value_RWH = (
        rows.reshape(len(rows), -1, num_heads) for rows in (query_QD, *key_value_RE.chunk(2, dim=1))
    )
    num_queries = len(query_QD)
    query_P = torch.repeat_interleave(
        torch.arange(num_queries, device=query_QD.device), lists.start.diff()
    )
    scale = query_QWH.shape[1] ** -0.5
    score_PH = (query_QWH[query_P] * key_RWH[lists.keys]).sum(1) * scale
    highest_QH = score_PH.new_full((num_queries, num_heads), -torch.inf)
    highest_QH = highest_QH.scatter_reduce(
        0, query_P[:, None].expand_as(score_PH), score_PH, "amax"
    )
    share_PH = (score_PH - highest_QH.detach()[query_P]).exp()
    total_QH = score_PH.new_zeros(num_queries, num_heads).index_add(0, query_P, share_PH)
    weighted_PWH = (share_PH / total_QH[query_P])[:, None] * value_RWH[lists.keys]
    return torch.zeros_like(query_QWH).index_add(0, query_P, weighted_PWH).flatten(1)


class _CompiledAttention(torch.autograd.Function):
    """Run the compiled kernels on the CPU, with the queries divided among threads."""

    @staticmethod
    def forward(
        context: Any,
        query_QD: Tensor,
        key_value_RE: Tensor,
        lists: KeyLists,
        num_heads: int,
    ) -> Tensor:
        inputs = kernels.AttentionInputs(
            query_QD.detach().contiguous().numpy(),
            key_value_RE.detach().contiguous().numpy(),
            lists.start.numpy(),
            lists.keys.numpy(),
        )
        output = np.empty_like(inputs.query)
        weight = np.empty((len(lists.keys), num_heads), output.dtype)
        kernel = kernels.forward_kernel(num_heads, output.shape[1] // num_heads)
        run_in_parts(
            even_pairs(lists), lambda _, *queries: kernel(*queries, inputs, output, weight)
        )
        context.inputs, context.lists, context.weight = inputs, lists, weight
        return torch.from_numpy(output)

    @staticmethod
    def backward(context: Any, gradient_QD: Tensor) -> Any:
        inputs, weight = context.inputs, context.weight
        num_heads = weight.shape[1]
        kernel = kernels.backward_kernel(num_heads, inputs.query.shape[1] // num_heads)
        gradient = gradient_QD.contiguous().numpy()
        query_gradient = torch.empty(inputs.query.shape, dtype=gradient_QD.dtype)
        # Queries share keys, so each thread adds up gradients of its own.
        cuts = even_pairs(context.lists)
        key_value_gradients = [
            torch.zeros(inputs.key_value.shape, dtype=gradient_QD.dtype) for _ in cuts[1:]
        ]

        def run(part: int, *queries: int) -> None:
            outputs = query_gradient.numpy(), key_value_gradients[part].numpy()
            kernel(*queries, inputs, weight, gradient, *outputs)

        run_in_parts(cuts, run)
        total, *others = key_value_gradients
        for other in others:
            total += other
        return query_gradient, total, None, None


# Starting a second thread for fewer pairs takes longer than processing them.
_MIN_PAIRS_PER_THREAD = 4096


def even_pairs(lists: KeyLists) -> list[int]:
    """Return the first query of every thread, and the end; all have about equally many pairs."""
    parts = num_parts(len(lists.keys), _MIN_PAIRS_PER_THREAD)
    ends = torch.arange(1, parts) * (len(lists.keys) // parts)
    return [0, *torch.searchsorted(lists.start, ends).tolist(), len(lists.start) - 1]
