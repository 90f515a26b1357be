"""The file that holds a saved model.

`model.safetensors` in the model's folder. Its header has, as text: the format version, the model's
name, all of its settings, the figures measured on the training data, the kind of graph, and the
numbers of sources and targets that the model was fitted with. Its tensors are:

| name       | content                                                                  |
|------------|--------------------------------------------------------------------------|
| node, time | every observed event: node of both instances, time in seconds            |
| sources    | keys of all sources, as the bytes of a JSON list                         |
| targets    | keys of all targets; in a one-mode graph the same as `sources`           |
| model.…    | what the model itself keeps: weights and state, see `Model.tensors`      |

Settings are complete in the file and never filled in from defaults, so a later change of a default
does not change a saved model.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor

from tclgraph.errors import InputError
from tclgraph.events.identifiers import Identifiers
from tclgraph.events.node_space import NodeSpace
from tclgraph.events.stream import check_kind
from tclgraph.events.writers import replacing
from tclgraph.models.stream_state import StreamState

FILE_NAME = "model.safetensors"
FORMAT_VERSION = 3
"""Increased whenever a file of the old form can no longer be read."""

_MODEL_PREFIX = "model."


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedModel:
    """Everything that a model file holds."""

    model: str
    """Registry name of the model."""
    settings: dict[str, Any]
    """All settings of the model, as JSON values."""
    measured: dict[str, Any]
    """Figures measured on the training data, as JSON values."""
    state: StreamState
    """Vocabulary and observed events."""
    tensors: dict[str, Tensor]
    """Weights and state of the model, on the CPU after reading."""


def write_model(folder: str | Path, saved: SavedModel) -> None:
    """Write a model into a folder, completely or not at all."""
    graph = saved.state.graph
    tensors = {
        **{_MODEL_PREFIX + name: tensor for name, tensor in saved.tensors.items()},
        "node": torch.from_numpy(graph.node.copy()),
        "time": torch.from_numpy(graph.time.copy()),
        "sources": _keys_to_tensor(saved.state.sources),
        "targets": _keys_to_tensor(saved.state.targets),
    }
    header = {
        "format": str(FORMAT_VERSION),
        "model": saved.model,
        "settings": json.dumps(saved.settings),
        "measured": json.dumps(saved.measured),
        "kind": graph.space.kind,
        "fitted": json.dumps([saved.state.fitted.num_sources, saved.state.fitted.num_targets]),
    }
    with replacing(Path(folder) / FILE_NAME) as path:
        path.write_bytes(to_bytes({name: t.contiguous() for name, t in tensors.items()}, header))


def read_model_name(folder: str | Path) -> str:
    """Return the registry name of the model that a folder holds."""
    return _read_header(folder)["model"]


def read_model(folder: str | Path) -> SavedModel:
    """Read a model file; tensors are on the CPU, wherever the model was trained."""
    header = _read_header(folder)
    with safe_open(Path(folder) / FILE_NAME, framework="pt", device="cpu") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    kind = check_kind(header["kind"])
    sources = _tensor_to_keys(tensors["sources"])
    targets = sources if kind == "one-mode" else _tensor_to_keys(tensors["targets"])
    num_sources, num_targets = json.loads(header["fitted"])
    fitted = NodeSpace(kind=kind, num_sources=num_sources, num_targets=num_targets)
    state = StreamState.of(kind, sources, targets, fitted)
    state.graph.extend(tensors["node"].numpy(), tensors["time"].numpy())
    return SavedModel(
        model=header["model"],
        settings=json.loads(header["settings"]),
        measured=json.loads(header["measured"]),
        state=state,
        tensors=tensors_below(tensors, _MODEL_PREFIX),
    )


def tensors_below(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Return the tensors whose names begin with a prefix, under the rest of their names."""
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }


def _read_header(folder: str | Path) -> dict[str, str]:
    try:
        with safe_open(Path(folder) / FILE_NAME, framework="pt", device="cpu") as file:
            header: dict[str, str] = file.metadata() or {}
    except (OSError, SafetensorError) as error:
        raise InputError(
            f"no saved model in {folder} ({error}); give a folder that `tclgraph train` or "
            "`model.save` wrote"
        ) from None
    version = header.get("format", "none")
    if version != str(FORMAT_VERSION):
        raise InputError(
            f"the model in {folder} has file format {version} and this version of tclgraph reads "
            f"format {FORMAT_VERSION}; train the model again, or load it with the version of "
            "tclgraph that saved it"
        )
    return header


def _keys_to_tensor(identifiers: Identifiers) -> Tensor:
    # A safetensors file has no text, so keys are stored as the bytes of a JSON list.
    keys = json.dumps(identifiers.keys.to_list()).encode()
    return torch.from_numpy(np.frombuffer(keys, dtype=np.uint8).copy())


def _tensor_to_keys(text: Tensor) -> Identifiers:
    keys = json.loads(text.numpy().tobytes())
    is_text = bool(keys) and isinstance(keys[0], str)
    return Identifiers(pl.Series(keys, dtype=pl.String if is_text else pl.Int64))
