"""Standardization of history features by their mean and deviation in training."""

import numpy as np
import torch
from torch import Tensor, nn

from tclgraph.arrays import FloatArray, ScoreArray

_MIN_DEVIATION = 0.05


class Moments:
    """Mean and squared deviations of features, from samples that are added one after another."""

    def __init__(self) -> None:
        self.count = 0
        self.mean: FloatArray = np.zeros(1)
        self.squares: FloatArray = np.zeros(1)
        """Sum of the squared deviations from the mean."""

    def add(self, features_NF: ScoreArray) -> None:
        """Add a sample, one row each."""
        if not len(features_NF):
            return
        mean = features_NF.mean(axis=0, dtype=np.float64)
        squares = np.square(features_NF - mean).sum(axis=0)
        total = self.count + len(features_NF)
        shift = mean - self.mean
        self.squares = self.squares + squares + shift**2 * self.count * len(features_NF) / total
        self.mean = self.mean + shift * len(features_NF) / total
        self.count = total


class FeatureScaling(nn.Module):
    """Subtracts the training mean and divides by the training deviation; drops features."""

    mean: Tensor
    inverse_deviation: Tensor

    def __init__(self, num_features: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(num_features))
        self.register_buffer("inverse_deviation", torch.ones(num_features))

    def set(self, moments: "Moments") -> None:
        """Take mean and deviation from a sample, if there is any."""
        if moments.count:
            deviation = np.sqrt(moments.squares / moments.count)
            # A near-constant feature would be amplified, so its scale is left at 1.
            deviation[deviation < _MIN_DEVIATION] = 1.0
            self.mean.copy_(torch.from_numpy(moments.mean))
            self.inverse_deviation.copy_(torch.from_numpy(1 / deviation))

    def keep_unscaled(self, columns: slice) -> None:
        """Pass these features through unchanged."""
        self.mean[columns] = 0.0
        self.inverse_deviation[columns] = 1.0

    def drop(self, columns: slice) -> None:
        """Replace these features by zero."""
        self.mean[columns] = 0.0
        self.inverse_deviation[columns] = 0.0

    def forward(self, features_NF: Tensor) -> Tensor:
        return (features_NF - self.mean) * self.inverse_deviation
