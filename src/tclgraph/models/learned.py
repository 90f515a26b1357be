"""What all learned models share: settings, a network, fitting by the training loop, saving.

A subclass says how its network is built, what the loss of a batch is, and how its state follows
events.
"""

from abc import abstractmethod
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from tclgraph.dependency_graph.graph import DependencyGraph
from tclgraph.errors import InputError
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream
from tclgraph.layers.node_tables import extend_tables
from tclgraph.models.saving import SavedModel, tensors_below
from tclgraph.models.stream_state import StreamState
from tclgraph.training.config import parse_settings, restore_config
from tclgraph.training.loop import train
from tclgraph.training.progress import ProgressCallback, progress_bar
from tclgraph.training.run_folder import RunFolder
from tclgraph.training.trainable import Trainable


class DeviceUnavailableError(InputError):
    """The device of a model's settings does not exist on this machine."""


class LearnedModel(Trainable):
    """A trainable model that builds its network from settings and measured figures."""

    def __init__(self, **settings: Any) -> None:
        self.config = parse_settings(self.config_type, settings)
        check_device(self.config.device)

    @abstractmethod
    def build_network(self) -> nn.Module:
        """Build the network for the nodes of `self.graph.space`, from `self.measured`.

        Tensors with an entry per node are declared by `layers.node_tables`.
        """

    @property
    def graph(self) -> DependencyGraph:
        """Dependency graph of all observed events."""
        return self.state.graph

    def start(self, events: EventStream, **measured: Any) -> None:
        """Take over a vocabulary, and build a network whose weights depend on the seed alone.

        For use in `prepare`, with the training events. `extend` adds the nodes of later events.
        """
        self._build(StreamState.for_stream(events), measured)

    def _build(self, state: StreamState, measured: dict[str, Any]) -> None:
        check_device(self.config.device)
        self.state, self.measured = state, measured
        with torch.random.fork_rng(devices=()):
            torch.manual_seed(self.config.seed)
            self.network = self.build_network().to(self.config.device)
        self.reset_state()

    def extend(self, state: StreamState) -> None:
        extend_tables(self.network, state.growth_since(self.state, self.config.seed))
        super().extend(state)

    def fit(
        self,
        split: Split,
        *,
        run: str | Path | None = None,
        resume: bool = False,
        progress: ProgressCallback | None = None,
    ) -> Self:
        """Train, and keep the epoch that does best on valid; the state ends with train.

        Training knows the nodes of the training events and no others; afterwards the model is
        extended to all nodes of the split.
        With `run` everything is kept in that folder during training, and `resume` continues what
        was interrupted there, to the same weights as without the interruption. `progress` is called
        after every batch; without it a terminal shows a bar.
        """
        folder = RunFolder(run) if run is not None else None
        with nullcontext(progress) if progress else progress_bar(always=False) as callback:
            train(self, split, run=folder, resume=resume, progress=callback)
        return self

    # State

    def reset_state(self) -> None:
        """Reset the state to that before the first event; a model may have none."""

    def update_state(self, events: EventStream) -> None:
        """Update the state with events that the graph already has; a model may have none."""

    def state_tensors(self) -> dict[str, Tensor]:
        """Return the state that cannot be computed again bit for bit from network and graph."""
        return {}

    def load_state_tensors(self, tensors: dict[str, Tensor]) -> None:
        """Restore what `state_tensors` returned."""

    # Saving

    def settings(self) -> dict[str, Any]:
        return asdict(self.config)

    def tensors(self) -> dict[str, Tensor]:
        network = {f"network.{name}": value for name, value in self.network.state_dict().items()}
        return network | {f"state.{name}": value for name, value in self.state_tensors().items()}

    @classmethod
    def from_settings(cls, settings: dict[str, Any]) -> Self:
        """Build an unfitted model from complete settings, as a file has them."""
        model = cls.__new__(cls)
        model.config = restore_config(cls.config_type, settings)
        return model

    @classmethod
    def from_saved(cls, saved: SavedModel, *, device: str | None = None) -> Self:
        model = cls.from_settings(saved.settings)
        if device is not None:
            model.config = replace(model.config, device=device)
        model._build(saved.state, saved.measured)
        model.network.load_state_dict(tensors_below(saved.tensors, "network."))
        model.load_state_tensors(tensors_below(saved.tensors, "state."))
        return model


def check_device(device: str) -> None:
    """Refuse a device that torch cannot use on this machine."""
    try:
        torch.empty(0, device=device)
    except (AssertionError, NotImplementedError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise DeviceUnavailableError(
            f"the device {device!r} is not available on this machine ({reason}); give another, "
            "such as device='cpu', in the settings or to load"
        ) from None
