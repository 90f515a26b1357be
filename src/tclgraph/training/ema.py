"""Exponential moving average (EMA) of a network's weights."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from tclgraph.training.checkpoint import Weights, weights_of

# In the first updates the decay is step / (step + 10), so that initial weights fade quickly.
_RAMP_STEPS = 10


class WeightEMA:
    """Average with decay `decay`, updated after every batch.

    Only parameters are averaged. A buffer, such as a state that training carries, is copied.
    """

    def __init__(self, network: nn.Module, decay: float) -> None:
        self._network = network
        self._decay = decay
        self.weights: Weights = weights_of(network)

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Take in the network's weights after optimizer step `step`, counted from 1."""
        decay = min(self._decay, step / (step + _RAMP_STEPS))
        buffers = dict(self._network.named_buffers(remove_duplicate=False))
        for name, weight in self._network.state_dict().items():
            if name in buffers:
                self.weights[name].copy_(weight)
            else:
                self.weights[name].lerp_(weight.cpu(), 1 - decay)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Give the network the averaged weights for the duration of a `with` block."""
        original = weights_of(self._network)
        self._network.load_state_dict(self.weights)
        try:
            yield
        finally:
            self._network.load_state_dict(original)
