"""Networks with one hidden layer that merge two vectors into a vector or a score.

Shapes: A width of the first vector, B width of the second one, H width of the hidden layer.
"""

import torch
from torch import Tensor, nn


class PairMerge(nn.Module):
    """Compute W₂ ReLU(W₁ [first ; second] + b₁) + b₂.

    The product with W₁ is the sum of two halves, one for each vector. Where many pairs share a
    vector, its half needs to be computed only once; `of_halves` takes it from there.
    """

    def __init__(self, first_width: int, second_width: int, hidden: int, width: int) -> None:
        super().__init__()
        self.first_half = nn.Linear(first_width, hidden)
        self.second_half = nn.Linear(second_width, hidden, bias=False)
        self.output = nn.Linear(hidden, width)
        bound = (6 / (first_width + second_width + hidden)) ** 0.5
        for half in (self.first_half, self.second_half):
            nn.init.uniform_(
                half.weight, -bound, bound
            )  # Glorot initialization of the two as one matrix
        nn.init.xavier_uniform_(self.output.weight)
        for bias in (self.first_half.bias, self.output.bias):
            nn.init.zeros_(bias)

    def forward(self, first_A: Tensor, second_B: Tensor) -> Tensor:
        return self.of_halves(self.first_half(first_A), self.second_half(second_B))

    def of_halves(self, first_H: Tensor, second_H: Tensor) -> Tensor:
        """Return the merged vector from both halves, `first_half(…)` and `second_half(…)`."""
        merged: Tensor = self.output(torch.relu(first_H + second_H))
        return merged


class PairDecoder(PairMerge):
    """Score how well two vectors of the same width match; the score is a logit."""

    def __init__(self, width: int) -> None:
        super().__init__(width, width, width, 1)

    def of_halves(self, first_H: Tensor, second_H: Tensor) -> Tensor:
        """Return the score, without a last axis of length 1."""
        return super().of_halves(first_H, second_H).squeeze(-1)
