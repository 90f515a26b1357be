"""Multi-head attention where every query has its own list of keys.

Shapes: Q queries, R rows that serve as keys and values, P pairs of a query and one of its keys,
H heads, D = H · (head width) columns, E = 2D: a row's key, then its value. Head h owns the columns
h, h + H, h + 2H, …; which columns make a head is a matter of naming, as the matrices around are
learned, and this one is quick.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tclgraph.layers import kernels


@dataclass(frozen=True, slots=True)
class KeyLists:
    """Which rows each query attends to: keys[start[q]:start[q + 1]], never none."""

    start: Tensor
    keys: Tensor


def packed_attention(
    query_QD: Tensor, key_value_RE: Tensor, lists: KeyLists, num_heads: int
) -> Tensor:
    """Softmax over each query's own keys, scaled by the root of the head width.

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
    """The same on any device, in plain torch."""
    query_QWH, key_RWH, value_RWH = (
        one.reshape(len(one), -1, num_heads) for one in (query_QD, *key_value_RE.chunk(2, dim=1))
    )
    num_queries = len(query_QD)
    asker_P = torch.repeat_interleave(
        torch.arange(num_queries, device=query_QD.device), lists.start.diff()
    )
    scale = query_QWH.shape[1] ** -0.5
    score_PH = (query_QWH[asker_P] * key_RWH[lists.keys]).sum(1) * scale
    best_QH = score_PH.new_full((num_queries, num_heads), -torch.inf)
    best_QH = best_QH.scatter_reduce(0, asker_P[:, None].expand_as(score_PH), score_PH, "amax")
    share_PH = (score_PH - best_QH.detach()[asker_P]).exp()
    total_QH = score_PH.new_zeros(num_queries, num_heads).index_add(0, asker_P, share_PH)
    taken_PWH = (share_PH / total_QH[asker_P])[:, None] * value_RWH[lists.keys]
    return torch.zeros_like(query_QWH).index_add(0, asker_P, taken_PWH).flatten(1)


class _CompiledAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        context: Any,
        query_QD: Tensor,
        key_value_RE: Tensor,
        lists: KeyLists,
        num_heads: int,
    ) -> Tensor:
        query, key_value = (one.detach().contiguous().numpy() for one in (query_QD, key_value_RE))
        given = query, key_value, lists.start.numpy(), lists.keys.numpy()
        output = np.empty_like(query)
        weight = np.empty((len(lists.keys), num_heads), query.dtype)
        kernel = kernels.forward_kernel(num_heads, query.shape[1] // num_heads)
        _share_out(lists, lambda _, *queries: kernel(*queries, *given, output, weight))
        context.given, context.lists, context.weight = given, lists, weight
        return torch.from_numpy(output)

    @staticmethod
    def backward(context: Any, gradient_QD: Tensor) -> Any:
        query, key_value, *_ = context.given
        weight, num_heads = context.weight, context.weight.shape[1]
        kernel = kernels.backward_kernel(num_heads, query.shape[1] // num_heads)
        gradient = gradient_QD.contiguous().numpy()
        for_query = torch.empty(query.shape, dtype=gradient_QD.dtype)
        # Queries share keys, so each thread adds up its own.
        for_key_value = [
            torch.zeros(key_value.shape, dtype=gradient_QD.dtype)
            for _ in range(_num_parts(context.lists))
        ]

        def work(part: int, *queries: int) -> None:
            found = for_query.numpy(), for_key_value[part].numpy()
            kernel(*queries, gradient, *context.given, weight, *found)

        _share_out(context.lists, work)
        total, *others = for_key_value
        for other in others:
            total += other
        return for_query, total, None, None


# Fewer pairs are done before a second thread has begun.
_PAIRS_WORTH_A_THREAD = 4096
_pool = ThreadPoolExecutor(thread_name_prefix="attention")


def _renew_pool() -> None:
    global _pool
    _pool = ThreadPoolExecutor(thread_name_prefix="attention")


os.register_at_fork(after_in_child=_renew_pool)  # threads do not survive a fork


def _num_parts(lists: KeyLists) -> int:
    return max(1, min(torch.get_num_threads(), len(lists.keys) // _PAIRS_WORTH_A_THREAD))


def _share_out(lists: KeyLists, work: Callable[[int, int, int], None]) -> None:
    """Do work(part, first query, last query) for ranges with about as many pairs each."""
    num_parts = _num_parts(lists)
    ends = torch.arange(1, num_parts) * (len(lists.keys) // num_parts)
    cuts = [0, *torch.searchsorted(lists.start, ends).tolist(), len(lists.start) - 1]
    others = [_pool.submit(work, part, cuts[part], cuts[part + 1]) for part in range(1, num_parts)]
    work(0, cuts[0], cuts[1])
    for other in others:
        other.result()
