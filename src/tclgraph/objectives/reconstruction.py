"""DynGEM's objective: reconstruct the rows of an adjacency matrix and keep neighbors close.

The published objective is a sum over edges (i, j), in both directions, of

    ‖(x̂ᵢ − xᵢ) ⊙ bᵢ‖² / degreeᵢ + ‖(x̂ⱼ − xⱼ) ⊙ bⱼ‖² / degreeⱼ + α sᵢⱼ ‖yᵢ − yⱼ‖²

A node is the first end of as many edges as it has neighbors, and the second end of as many. The
degrees cancel, so the sum is twice `row_loss` over all nodes with neighbors, plus α times
`closeness_loss` over all edges.

Shapes: R rows, N nodes, P pairs, D width of a code.
"""

import torch
from torch import Tensor


def row_loss(predicted_RN: Tensor, true_RN: Tensor, emphasis: float) -> Tensor:
    """Return the sum of squared errors, with the errors at edges multiplied by `emphasis` first.

    Edges count more because most of a row is zero, and a zero can be an edge not yet observed.
    `emphasis` is β in the paper.

    >>> row_loss(torch.tensor([[1.0, 1.0]]), torch.tensor([[0.0, 3.0]]), emphasis=5.0).item()
    101.0
    """
    error_RN = predicted_RN - true_RN
    return torch.where(true_RN != 0, emphasis * error_RN, error_RN).square().sum()


def closeness_loss(first_PD: Tensor, second_PD: Tensor, weight_P: Tensor) -> Tensor:
    """Return the weighted sum of squared distances between pairs of codes.

    >>> closeness_loss(torch.zeros(1, 2), torch.ones(1, 2), torch.tensor([3.0])).item()
    6.0
    """
    return ((first_PD - second_PD).square().sum(1) * weight_P).sum()
