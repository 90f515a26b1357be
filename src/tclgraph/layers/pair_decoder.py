"""Two vectors made into one, or into a score, by a network with one hidden layer.

Shapes: a trailing A or B is the width of the one or the other vector, H of the hidden layer.
"""

import torch
from torch import Tensor, nn


class PairMerge(nn.Module):
    """W₂ ReLU(W₁ [one ; other] + b₁) + b₂.

    The hidden layer's input is a sum of two halves, one for either vector. So where one side is the
    same for many pairs, its half is made once.
    """

    def __init__(self, one_width: int, other_width: int, hidden: int, width: int) -> None:
        super().__init__()
        self.one = nn.Linear(one_width, hidden)
        self.other = nn.Linear(other_width, hidden, bias=False)
        self.output = nn.Linear(hidden, width)
        bound = (6 / (one_width + other_width + hidden)) ** 0.5
        for half in (self.one, self.other):
            nn.init.uniform_(half.weight, -bound, bound)  # Glorot's rule for both together
        nn.init.xavier_uniform_(self.output.weight)
        for bias in (self.one.bias, self.output.bias):
            nn.init.zeros_(bias)

    def forward(self, one_A: Tensor, other_B: Tensor) -> Tensor:
        return self.of_halves(self.one(one_A), self.other(other_B))

    def of_halves(self, one_H: Tensor, other_H: Tensor) -> Tensor:
        """The same from `self.one(…)` and `self.other(…)`, which may broadcast."""
        merged: Tensor = self.output(torch.relu(one_H + other_H))
        return merged


class PairDecoder(PairMerge):
    """A score for two vectors of the same width: how well they fit together, before a sigmoid."""

    def __init__(self, width: int) -> None:
        super().__init__(width, width, width, 1)

    def of_halves(self, one_H: Tensor, other_H: Tensor) -> Tensor:
        """One number less deep than a vector."""
        return super().of_halves(one_H, other_H).squeeze(-1)
