"""The paper's "Future Prediction": the projection φ, the similarity Sim, and the pair intensity.

Shapes: N instances, B queries, D width.
"""

import torch
from torch import Tensor, nn


class FutureProjection(nn.Module):
    """Predict a node's next state from the states of both parties of its last event (φ).

    The network has two hidden layers with PReLU. Paper: does not give their width. Here: the width
    of the states.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(2 * width, width),
            _PReLU(),
            nn.Linear(width, width),
            _PReLU(),
            nn.Linear(width, width),
        )

    def forward(self, own_ND: Tensor, partner_ND: Tensor) -> Tensor:
        future: Tensor = self.layers(torch.cat([own_ND, partner_ND], dim=1))
        return future


class _PReLU(nn.PReLU):
    """The same function as torch's PReLU, whose gradient takes ten times as long on the CPU."""

    def forward(self, input: Tensor) -> Tensor:
        positive = torch.relu(input)
        return positive + self.weight * (input - positive)


class Discriminator(nn.Module):
    """Compute Sim of the paper before its SoftPlus: w_add · (a + b) + w_mul · (a ⊙ b).

    SoftPlus is increasing and w_add · a is the same for all candidates b, so the candidates can be
    ranked by b · (w_add + w_mul ⊙ a): ranking all targets is one matrix product.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.additive = nn.Parameter(torch.empty(width))
        self.multiplicative = nn.Parameter(torch.empty(width))
        for weight in (self.additive, self.multiplicative):
            nn.init.xavier_uniform_(weight.detach()[:, None])

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Return the similarity of pairs of vectors along the last axis; it is symmetric."""
        added = target @ self.additive + source @ self.additive
        return added + (source * target) @ self.multiplicative

    def ranking_key(self, source_BD: Tensor) -> Tensor:
        """Return the vectors whose product with the candidates ranks them, [B, D]."""
        return self.additive + self.multiplicative * source_BD


class PairIntensity(nn.Module):
    """Compute the intensity λ of a pair in a point process, before its SoftPlus.

    The value before the SoftPlus is a line in time: the similarity of the pair, a bias, and a slope
    for the time since the last event of each party. Times are in units of the mean interval between
    events of a node.
    """

    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(()))
        self.slopes = nn.Parameter(torch.zeros(2))

    @property
    def slope(self) -> Tensor:
        """Slope of the line as time passes for both parties."""
        return self.slopes.sum()

    def line(self, match: Tensor, since_source: Tensor, since_target: Tensor) -> Tensor:
        """Return the line from the pair's similarity and the time since each party's last event."""
        return match + self.bias + self.slopes[0] * since_source + self.slopes[1] * since_target
