"""DynGEM's objective: get back the rows of an adjacency matrix, and keep neighbors together.

As published it is a sum over edges (i, j), in both directions, of

    ‖(x̂ᵢ − xᵢ) ⊙ bᵢ‖² / degreeᵢ + ‖(x̂ⱼ − xⱼ) ⊙ bⱼ‖² / degreeⱼ + α sᵢⱼ ‖yᵢ − yⱼ‖²

A node is at either end of as many edges as it has neighbors, so degrees cancel out, and the sum is
twice `row_loss` of all nodes that have neighbors, plus α times `closeness_loss` of all edges.

Shapes: R rows, N nodes, P pairs, D width of a code.
"""

import torch
from torch import Tensor


def row_loss(found_RN: Tensor, true_RN: Tensor, emphasis: float) -> Tensor:
    """Squared errors, summed up, with those where there is an edge multiplied before squaring.

    Most of a row is zero and could mean that two have not met yet; `emphasis` is β in the paper.

    >>> row_loss(torch.tensor([[1.0, 1.0]]), torch.tensor([[0.0, 3.0]]), emphasis=5.0).item()
    101.0
    """
    error_RN = found_RN - true_RN
    return torch.where(true_RN != 0, emphasis * error_RN, error_RN).square().sum()


def closeness_loss(one_PD: Tensor, other_PD: Tensor, weight_P: Tensor) -> Tensor:
    """Squared distances of pairs of codes, weighted and summed up.

    >>> closeness_loss(torch.zeros(1, 2), torch.ones(1, 2), torch.tensor([3.0])).item()
    6.0
    """
    return ((one_PD - other_PD).square().sum(1) * weight_P).sum()
