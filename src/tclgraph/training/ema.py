"""The running mean of the weights: steadier than what the last few batches made of them."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from tclgraph.training.checkpoint import Weights, weights_of

# The mean of the first few is taken of fewer, so that the initial weights are soon forgotten.
_SOON = 10


class WeightEMA:
    """Exponential: each batch leaves the share `kept` of it as it was."""

    def __init__(self, network: nn.Module, kept: float) -> None:
        self._network = network
        self._kept = kept
        self.weights: Weights = weights_of(network)

    @torch.no_grad()
    def follow(self, num_batches: int) -> None:
        """Take in the network's weights after so many batches."""
        kept = min(self._kept, num_batches / (num_batches + _SOON))
        for name, one in self._network.state_dict().items():
            self.weights[name].lerp_(one.cpu(), 1 - kept)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """The network has the averaged weights for a while."""
        own = weights_of(self._network)
        self._network.load_state_dict(self.weights)
        try:
            yield
        finally:
            self._network.load_state_dict(own)
