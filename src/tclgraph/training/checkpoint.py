"""A training run frozen between two batches, in one file that is replaced whole.

Tensors are the network, Adam's moments, the best weights so far and the averaged ones; everything
else is JSON in the file's header. There is no random state: what a batch draws depends only on the
seed, the epoch and the batch, so the position says it all.
"""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

from tclgraph.errors import InputError
from tclgraph.events.writers import replacing


@dataclass(slots=True, kw_only=True)
class Position:
    """How far training has come, and what it found on the way."""

    epoch: int = 0
    """Epochs that are over."""
    batch: int = 0
    """Batches of the next epoch that are done."""
    loss_sum: float = 0.0
    """Over those batches."""
    first_loss: float | None = None
    seconds: float = 0.0
    """Spent on batches of the epoch."""
    best_epoch: int | None = None
    history: list[dict[str, Any]] = field(default_factory=list)
    """One entry per finished epoch."""


Weights = dict[str, Tensor]


def weights_of(network: nn.Module) -> Weights:
    """A copy that training does not touch."""
    return {name: one.detach().cpu().clone() for name, one in network.state_dict().items()}


def part_of(tensors: Weights, prefix: str) -> Weights:
    """The tensors whose names begin so, without that beginning."""
    return {
        name.removeprefix(prefix): one for name, one in tensors.items() if name.startswith(prefix)
    }


def save_checkpoint(
    path: Path,
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    best: Weights | None,
    average: Weights | None,
    position: Position,
) -> None:
    tensors = {f"network.{name}": one for name, one in weights_of(network).items()}
    tensors |= {f"best.{name}": one for name, one in (best or {}).items()}
    tensors |= {f"average.{name}": one for name, one in (average or {}).items()}
    for number, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{name}": one.cpu() for name, one in state.items()}
    with replacing(path) as temporary:
        temporary.write_bytes(to_bytes(tensors, {"position": json.dumps(asdict(position))}))


def load_checkpoint(
    path: Path, network: nn.Module, optimizer: torch.optim.Optimizer
) -> tuple[Weights | None, Weights | None, Position]:
    """Set network and optimizer to what was saved.

    Returns the best weights, the averaged ones and the position.
    """
    try:
        with safe_open(path, framework="pt") as file:
            position = Position(**json.loads(file.metadata()["position"]))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise InputError(f"cannot read the checkpoint {path} ({error})") from None

    network.load_state_dict(part_of(tensors, "network."))
    state: dict[int, dict[str, Tensor]] = {}
    for name, one in part_of(tensors, "optimizer.").items():
        number, kind = name.split(".", 1)
        state.setdefault(int(number), {})[kind] = one
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
    return part_of(tensors, "best.") or None, part_of(tensors, "average.") or None, position
