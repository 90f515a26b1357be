"""Projections of some rows of an array, without a copy of all these rows at once.

Shapes: R rows, D width.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

# Rows are copied and projected in chunks that fit in cache.
_CHUNK_SIZE = 2048


def project_rows(
    hidden_RD: Tensor, indices: Sequence[Tensor], weights: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    """Return `hidden`, and hidden[index] @ weight.T for each index and its weight.

    Whatever else reads the rows must read the returned ones: the gradients of the projections are
    added to theirs in place, because another array of this size would take more time than the
    projections.

    >>> rows, indices = torch.tensor([[1.0], [2.0]]), [torch.tensor([1]), torch.tensor([0, 1])]
    >>> _, *projected = project_rows(rows, indices, [torch.tensor([[3.0]]), torch.tensor([[5.0]])])
    >>> [part.tolist() for part in projected]
    [[[6.0]], [[5.0], [10.0]]]
    """
    projected: tuple[Tensor, ...] = _ProjectRows.apply(hidden_RD, indices, *weights)  # type: ignore[no-untyped-call]
    return projected


class _ProjectRows(torch.autograd.Function):
    @staticmethod
    def forward(
        context: Any, hidden_RD: Tensor, indices: Sequence[Tensor], *weights: Tensor
    ) -> tuple[Tensor, ...]:
        outputs = []
        for index, weight in zip(indices, weights, strict=True):
            output = hidden_RD.new_empty(len(index), len(weight))
            for rows in _chunks(len(index)):
                torch.mm(hidden_RD.index_select(0, index[rows]), weight.T, out=output[rows])
            outputs.append(output)
        context.save_for_backward(hidden_RD, *weights)
        context.indices = indices
        return hidden_RD.view_as(hidden_RD), *outputs

    @staticmethod
    def backward(context: Any, hidden_gradient: Tensor, *gradients: Tensor) -> Any:
        hidden_RD, *weights = context.saved_tensors
        hidden_gradient = hidden_gradient.contiguous()
        weight_gradients = [torch.zeros_like(weight) for weight in weights]
        parts = zip(context.indices, weights, gradients, weight_gradients, strict=True)
        for index, weight, gradient, total in parts:
            for rows in _chunks(len(index)):
                total.addmm_(gradient[rows].T, hidden_RD.index_select(0, index[rows]))
                hidden_gradient.index_add_(0, index[rows], gradient[rows] @ weight)
        return hidden_gradient, None, *weight_gradients


def _chunks(count: int) -> Iterator[slice]:
    for start in range(0, count, _CHUNK_SIZE):
        yield slice(start, start + _CHUNK_SIZE)
