"""Models by name. A model's module is imported when the model is asked for, not before."""

from importlib import import_module
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from tclgraph.errors import InputError, did_you_mean
from tclgraph.models.interface import Model

_WHERE = {
    "popularity": "tclgraph.heuristics.rules:Popularity",
    "global-recency": "tclgraph.heuristics.rules:GlobalRecency",
    "own-recency": "tclgraph.heuristics.rules:OwnRecency",
    "own-frequency": "tclgraph.heuristics.rules:OwnFrequency",
    "last-contact": "tclgraph.heuristics.rules:LastContact",
    "edgebank": "tclgraph.heuristics.rules:EdgeBank",
    "edgebank-window": "tclgraph.heuristics.rules:EdgeBankWindow",
    "tcl": "tclgraph.models.tcl.model:TCL",
    "graphsage": "tclgraph.baselines.graphsage:GraphSAGE",
    "ctdne": "tclgraph.baselines.ctdne:CTDNE",
    "dyngem": "tclgraph.baselines.dyngem:DynGEM",
    "dysat": "tclgraph.baselines.dysat:DySAT",
    "deepcoevolve": "tclgraph.baselines.deepcoevolve:DeepCoevolve",
    "jodie": "tclgraph.baselines.jodie:JODIE",
    "tgat": "tclgraph.baselines.tgat:TGAT",
    "tgn": "tclgraph.baselines.tgn:TGN",
    "tdig-mpnn": "tclgraph.baselines.tdig_mpnn:TDIGMPNN",
}


def names() -> tuple[str, ...]:
    """All models there are."""
    return tuple(_WHERE)


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
