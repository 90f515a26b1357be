"""From what a node was to what it will be, and whether two such futures belong together."""

import torch
from torch import Tensor, nn


class FutureProjection(nn.Module):
    """A node's next state from the two parties of its last event (φ, "Future Prediction").

    Two hidden layers with PReLU. Paper: their width is not given. Here: as wide as the states.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(2 * width, width),
            nn.PReLU(),
            nn.Linear(width, width),
            nn.PReLU(),
            nn.Linear(width, width),
        )

    def forward(self, own_ND: Tensor, partner_ND: Tensor) -> Tensor:
        future: Tensor = self.layers(torch.cat([own_ND, partner_ND], dim=1))
        return future


class Discriminator(nn.Module):
    """Sim before its SoftPlus: w_add · (a + b) + w_mul · (a ⊙ b).

    For one a, candidates b are in the order of b · (w_add + w_mul ⊙ a), as SoftPlus is increasing
    and w_add · a is the same for all: ranking everything is one product of matrices.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.additive = nn.Parameter(torch.empty(width))
        self.multiplicative = nn.Parameter(torch.empty(width))
        for weight in (self.additive, self.multiplicative):
            nn.init.xavier_uniform_(weight.detach()[:, None])

    def forward(self, one: Tensor, other: Tensor) -> Tensor:
        """Of pairs of vectors along the last axis."""
        return other @ self.additive + one @ self.additive + (one * other) @ self.multiplicative

    def ranking_key(self, one_BD: Tensor) -> Tensor:
        """What candidates are multiplied with."""
        return self.additive + self.multiplicative * one_BD


class PairIntensity(nn.Module):
    """What a point process adds to the discriminator: a bias, and a slope for elapsed time.

    The intensity of a pair is SoftPlus of the line that this gives. Times are in units of the mean
    interval between events of a node.
    """

    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(()))
        self.slopes = nn.Parameter(torch.zeros(2))

    @property
    def slope(self) -> Tensor:
        """Of the line, as time passes for both at once."""
        return self.slopes.sum()

    def line(self, match: Tensor, since_source: Tensor, since_target: Tensor) -> Tensor:
        """From what the discriminator says and the time since either one's last event."""
        return match + self.bias + self.slopes[0] * since_source + self.slopes[1] * since_target
