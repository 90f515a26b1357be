"""Models by name. A model's module is imported when the model is asked for, not before."""

from importlib import import_module
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from tclgraph.errors import InputError, did_you_mean
from tclgraph.events.stream import Graph
from tclgraph.models.interface import Model

_FLOORS = {
    "popularity": "tclgraph.baselines.floors:Popularity",
    "global-recency": "tclgraph.baselines.floors:GlobalRecency",
    "own-recency": "tclgraph.baselines.floors:OwnRecency",
    "own-frequency": "tclgraph.baselines.floors:OwnFrequency",
    "last-contact": "tclgraph.baselines.floors:LastContact",
    "edgebank": "tclgraph.baselines.floors:EdgeBank",
    "edgebank-window": "tclgraph.baselines.floors:EdgeBankWindow",
}
_WHERE = {**_FLOORS}
_ONE_MODE_ONLY = frozenset({"last-contact"})


def names() -> tuple[str, ...]:
    """All models there are."""
    return tuple(_WHERE)


def floors(graph: Graph) -> tuple[str, ...]:
    """The rules that any learned model must beat on this kind of graph."""
    return tuple(name for name in _FLOORS if graph == "one-mode" or name not in _ONE_MODE_ONLY)


def _class_of(name: str) -> type[Model]:
    if name not in _WHERE:
        raise InputError(f"unknown model {name!r}; {did_you_mean(name, _WHERE)}")
    module, class_name = _WHERE[name].split(":")
    found: type[Model] = getattr(import_module(module), class_name)
    return found


def build(name: str, **settings: Any) -> Model:
    """A model that has yet to be fitted."""
    return _class_of(name)(**settings)


def load_model(folder: str | Path) -> Model:
    """A saved model, whichever it is."""
    path = Path(folder) / Model.saved_as
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
    except (OSError, SafetensorError) as error:
        raise InputError(f"no saved model in {folder} ({error})") from None
    return _class_of(metadata.get("model", "")).load(folder)
