"""A training run between two batches, in one file that is replaced as a whole.

The tensors are the network's weights, the optimizer's moments, the best weights so far and the
averaged weights; everything else is JSON in the file's header. No random state is needed: what a
batch draws depends only on the seed, the epoch and the batch, so the position is enough.
"""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

from tclgraph.errors import InputError
from tclgraph.events.writers import replacing
from tclgraph.models.saving import tensors_below

Weights = dict[str, Tensor]


@dataclass(slots=True, kw_only=True)
class Position:
    """How far training has come, and its figures so far."""

    epoch: int = 0
    """Number of finished epochs."""
    batch: int = 0
    """Number of finished batches of the current epoch."""
    loss_sum: float = 0.0
    """Sum of the losses of these batches."""
    first_loss: float | None = None
    """Loss of the very first batch."""
    seconds: float = 0.0
    """Time spent on the batches of the current epoch."""
    best_epoch: int | None = None
    """Number of the epoch with the best validation metric."""
    history: list[dict[str, Any]] = field(default_factory=list)
    """One record per finished epoch."""


class StoredWeights(NamedTuple):
    """Weights kept in addition to those in training."""

    best: Weights | None
    """Weights of the best epoch so far."""
    ema: Weights | None
    """Exponential moving average."""


def weights_of(network: nn.Module) -> Weights:
    """Return a copy of the weights on the CPU, which training does not touch."""
    return {name: weight.detach().cpu().clone() for name, weight in network.state_dict().items()}


def save_checkpoint(
    path: Path,
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    stored: StoredWeights,
    position: Position,
) -> None:
    """Write a checkpoint, completely or not at all."""
    tensors = {f"network.{name}": weight for name, weight in weights_of(network).items()}
    tensors |= {f"best.{name}": weight for name, weight in (stored.best or {}).items()}
    tensors |= {f"ema.{name}": weight for name, weight in (stored.ema or {}).items()}
    for number, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{name}": value.cpu() for name, value in state.items()}
    with replacing(path) as temporary:
        temporary.write_bytes(to_bytes(tensors, {"position": json.dumps(asdict(position))}))


def load_checkpoint(
    path: Path, network: nn.Module, optimizer: torch.optim.Optimizer
) -> tuple[StoredWeights, Position]:
    """Restore network and optimizer; return the other weights and the position."""
    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            position = Position(**json.loads(file.metadata()["position"]))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"cannot read the checkpoint {path} ({error}); delete the run's folder and train again"
        ) from None

    network.load_state_dict(tensors_below(tensors, "network."))
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors_below(tensors, "optimizer.").items():
        number, kind = name.split(".", 1)
        state.setdefault(int(number), {})[kind] = value
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
    stored = StoredWeights(
        best=tensors_below(tensors, "best.") or None, ema=tensors_below(tensors, "ema.") or None
    )
    return stored, position
