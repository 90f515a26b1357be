"""What the loop asks of a model that learns by gradient descent, and what it gives for it."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from torch import Tensor, nn

from tclgraph.events.split import Split
from tclgraph.models.interface import Model
from tclgraph.training.config import TrainingConfig
from tclgraph.training.loop import train
from tclgraph.training.progress import Watch, watching
from tclgraph.training.run_folder import RunFolder


class LearnedModel(Model):
    """A model with a network that is trained batch by batch."""

    search_space: ClassVar[Mapping[str, Sequence[Any]]] = {
        "learning_rate": (1e-4, 5e-4, 1e-3, 5e-3),
        "batch_size": (128, 256, 512),
    }
    """Settings that are worth tuning, and the values worth trying."""
    config: TrainingConfig
    network: nn.Module

    @abstractmethod
    def prepare(self, split: Split) -> int:
        """Make a fresh network and all that batches are drawn from; returns how many there are."""

    @abstractmethod
    def loss(self, batch: int, random: np.random.Generator) -> Tensor:
        """Of one batch; equal generators give equal losses."""

    def parameter_groups(self) -> list[dict[str, Any]]:
        """What Adam moves, and how fast: all at the same rate, unless a model knows better."""
        return [{"params": list(self.network.parameters())}]

    def fit(
        self,
        split: Split,
        *,
        run: str | Path | None = None,
        resume: bool = False,
        watch: Watch | None = None,
    ) -> Self:
        """Train, and keep the epoch that does best on valid; the state ends with train.

        With `run` everything is kept in that folder as training goes, and `resume` continues what
        was interrupted there, to the same weights as if it had not been. `watch` is called after
        every batch; without it a bar is shown where someone watches.
        """
        folder = RunFolder(run) if run is not None else None
        with nullcontext(watch) if watch else watching(always=False) as watcher:
            train(self, split, run=folder, resume=resume, watch=watcher)
        return self
