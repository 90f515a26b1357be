"""Standardization of history features by their mean and deviation in training."""

import numpy as np
import torch
from torch import Tensor, nn

from tclgraph.arrays import ScoreArray

_MIN_DEVIATION = 0.05


class FeatureScaling(nn.Module):
    """Subtracts the training mean and divides by the training deviation; drops features."""

    mean: Tensor
    inverse_deviation: Tensor

    def __init__(self, num_features: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(num_features))
        self.register_buffer("inverse_deviation", torch.ones(num_features))

    def measure(self, features_NF: ScoreArray) -> None:
        """Measure mean and deviation on a sample."""
        if len(features_NF):
            sample = features_NF.astype(np.float64)
            deviation = sample.std(axis=0)
            # A near-constant feature would be amplified, so its scale is left at 1.
            deviation[deviation < _MIN_DEVIATION] = 1.0
            self.mean.copy_(torch.from_numpy(sample.mean(axis=0)))
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
