"""What the training loop needs of a model, beyond the contract of every model."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy, deepcopy
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from torch import Tensor, nn

from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream
from tclgraph.models.interface import Model
from tclgraph.models.stream_state import StreamState
from tclgraph.training.config import TrainingConfig

UseOfThreads = Literal["torch", "parts", "drawing"]


class Trainable(Model):
    """A model with a network that is trained batch by batch."""

    config_type: ClassVar[type[TrainingConfig]]
    """Class of the model's settings."""
    search_space: ClassVar[Mapping[str, Sequence[Any]]] = {
        "learning_rate": (1e-4, 5e-4, 1e-3, 5e-3),
        "batch_size": (128, 256, 512),
    }
    """Settings worth tuning, each with the values worth trying."""
    in_order: ClassVar[bool] = False
    """Whether each batch continues from the one before, so that batches cannot be shuffled. What is
    carried over is then in buffers of the network, and batch 0 resets it."""

    config: TrainingConfig
    network: nn.Module

    @abstractmethod
    def prepare(self, split: Split) -> int:
        """Build the network and everything that batches are drawn from; return their number.

        The split has the training events and their nodes only, see `Split.train_only`.
        """

    def without_events(self) -> Self:
        model = copy(self)
        # The copy has modules of its own, whose tables can be extended, and the same tensors.
        tensors = (*self.network.parameters(), *self.network.buffers())
        model.network = deepcopy(self.network, {id(tensor): tensor for tensor in tensors})
        model.forget()
        return model

    def extended(self, events: EventStream) -> Self:
        """Return a copy with a larger vocabulary, for ranking; the two share what was learned."""
        model = self.without_events()
        model.extend(StreamState.for_stream(events))
        return model

    @property
    def use_of_threads(self) -> UseOfThreads:
        """What training uses several threads for.

        torch: inside each torch operation. parts: for parts of a batch, into which `loss` divides
        it. drawing: for drawing the next batches, if that takes about as long as a step.
        """
        return "torch"

    def draw_batch(self, batch: int, random: np.random.Generator) -> Any:  # noqa: ARG002
        """Return the part of a batch's inputs that does not depend on the network.

        The random numbers that it takes come before those of `loss`. By default all is drawn in
        `loss`, and this is only the number of the batch.
        """
        return batch

    @abstractmethod
    def loss(self, batch: Any, random: np.random.Generator) -> Tensor:
        """Return the loss of a batch, given as a number or as what `draw_batch` returned for it.

        Equal generators give equal losses.
        """

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Return the parameter groups of the optimizer, all with the same rate by default."""
        return [{"params": list(self.network.parameters())}]

    def make_optimizer(self) -> torch.optim.Optimizer:
        """Build the optimizer."""
        return torch.optim.Adam(self.parameter_groups(), lr=self.config.learning_rate, fused=True)
