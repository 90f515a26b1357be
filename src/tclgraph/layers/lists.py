"""Reductions over lists of different lengths whose values are adjacent in one flat tensor.

Shapes: P values, L lists.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from tclgraph.arrays import IntArray
from tclgraph.layers import list_kernels
from tclgraph.threads import even_cuts, num_parts, run_in_parts

# Fewer values are not worth a second thread.
_MIN_VALUES_PER_THREAD = 50_000


def log_sum_exp(value_P: Tensor, start: IntArray) -> Tensor:
    """Return the log-sum-exp of each list, and a large negative number for an empty list.

    The values of list n are those from start[n] to before start[n + 1].

    >>> log_sum_exp(torch.zeros(3), np.array([0, 2, 2, 3])).exp()
    tensor([2., 0., 1.])
    """
    if value_P.device.type == "cpu":
        total_L: Tensor = _LogSumExp.apply(value_P, start)  # type: ignore[no-untyped-call]
        return total_L
    return log_sum_exp_by_steps(value_P, start)


def log_sum_exp_by_steps(value_P: Tensor, start: IntArray) -> Tensor:
    """Return the same as `log_sum_exp` on any device, in plain torch."""
    num_lists = len(start) - 1
    list_P = torch.from_numpy(np.repeat(np.arange(num_lists), np.diff(start))).to(value_P.device)
    lowest = torch.finfo(value_P.dtype).min
    highest = value_P.new_full((num_lists,), lowest)
    highest = highest.scatter_reduce(0, list_P, value_P.detach(), "amax")
    total = value_P.new_zeros(num_lists)
    total = total.index_add(0, list_P, (value_P - highest[list_P]).exp())
    # The highest value adds 1 to its list's total, so the clamp changes the total of empty lists
    # only, from 0.
    return total.clamp_min(torch.finfo(value_P.dtype).tiny).log() + highest


class _LogSumExp(torch.autograd.Function):
    """The same in one pass; the backward pass computes the exponentials again."""

    @staticmethod
    def forward(ctx: Any, value_P: Tensor, start: IntArray) -> Tensor:
        total_L = value_P.new_empty(len(start) - 1)
        ctx.start = start
        ctx.save_for_backward(value_P, total_L)
        values, totals = value_P.detach().numpy(), total_L.numpy()

        def work(_: int, first: int, last: int) -> None:
            list_kernels.log_sum_exp(start[first : last + 1], values, totals[first:last])

        run_in_parts(_cuts(value_P, total_L), work)
        return total_L

    @staticmethod
    def backward(ctx: Any, gradient_L: Tensor) -> tuple[Tensor, None]:
        value_P, total_L = ctx.saved_tensors
        value_gradient_P = torch.empty_like(value_P)
        values, totals, gradient, result = (
            tensor.detach().numpy()
            for tensor in (value_P, total_L, gradient_L.contiguous(), value_gradient_P)
        )

        def work(_: int, first: int, last: int) -> None:
            lists = slice(first, last)
            start = ctx.start[first : last + 1]
            list_kernels.weigh_members(start, values, totals[lists], gradient[lists], result)

        run_in_parts(_cuts(value_P, total_L), work)
        return value_gradient_P, None


def _cuts(value_P: Tensor, total_L: Tensor) -> list[int]:
    return even_cuts(len(total_L), num_parts(len(value_P), _MIN_VALUES_PER_THREAD))
