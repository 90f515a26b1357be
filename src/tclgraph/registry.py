"""Models by name. A model's module is imported when the model is asked for, not before.

A new baseline of this package gets a line in `_BUILT_IN`; if the paper compares with it, also one
in `BASELINES` of `studies/overall.py`.

Another package adds a model with an entry point of the group `tclgraph.models`; in its
pyproject.toml:

    [project.entry-points."tclgraph.models"]
    mymodel = "mypackage.mymodule:MyModel"
"""

from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from inspect import signature
from pathlib import Path
from typing import Any

from tclgraph.errors import InputError, did_you_mean
from tclgraph.models.interface import Model
from tclgraph.models.saving import read_model_name

GROUP = "tclgraph.models"

_BUILT_IN = {
    "popularity": "tclgraph.heuristics.rules:Popularity",
    "global-recency": "tclgraph.heuristics.rules:GlobalRecency",
    "own-recency": "tclgraph.heuristics.rules:OwnRecency",
    "own-frequency": "tclgraph.heuristics.rules:OwnFrequency",
    "last-contact": "tclgraph.heuristics.rules:LastContact",
    "edgebank": "tclgraph.heuristics.rules:EdgeBank",
    "edgebank-window": "tclgraph.heuristics.rules:EdgeBankWindow",
    "tcl": "tclgraph.models.tcl.model:TCL",
    "ranker": "tclgraph.models.ranker.model:Ranker",
    "graphsage": "tclgraph.baselines.graphsage:GraphSAGE",
    "ctdne": "tclgraph.baselines.ctdne:CTDNE",
    "dyngem": "tclgraph.baselines.dyngem:DynGEM",
    "dysat": "tclgraph.baselines.dysat:DySAT",
    "deepcoevolve": "tclgraph.baselines.deepcoevolve:DeepCoevolve",
    "jodie": "tclgraph.baselines.jodie:JODIE",
    "tgat": "tclgraph.baselines.tgat:TGAT",
    "tgn": "tclgraph.baselines.tgn:TGN",
    "tdig-mpnn": "tclgraph.baselines.tdig_mpnn:TDIGMPNN",
    "sasrec": "tclgraph.baselines.sasrec:SASRec",
    "graphmixer": "tclgraph.baselines.graphmixer:GraphMixer",
    "tpnet": "tclgraph.baselines.tpnet:TPNet",
}


@cache
def _external() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


def names() -> tuple[str, ...]:
    """Return the names of all models, those of other packages last."""
    return tuple(dict.fromkeys((*_BUILT_IN, *_external())))


def model_class(name: str) -> type[Model]:
    """Return the class of a model; a built-in name cannot be taken by another package."""
    if name in _BUILT_IN:
        module, class_name = _BUILT_IN[name].split(":")
        built_in: type[Model] = getattr(import_module(module), class_name)
        return built_in
    if name not in _external():
        raise InputError(f"unknown model {name!r}; {did_you_mean(name, names())}")
    point = _external()[name]
    try:
        loaded = point.load()
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"cannot import the model {name!r} from {point.value} ({error}); "
            "check the package that registers it"
        ) from None
    if not (isinstance(loaded, type) and issubclass(loaded, Model)) or loaded.name != name:
        raise InputError(
            f"{point.value}, registered as the model {name!r}, is not a subclass of tclgraph.Model "
            f"with that name; set `name = {name!r}` in the class"
        )
    return loaded


def build(name: str, **settings: Any) -> Model:
    """Build an unfitted model.

    >>> build("popularity").name
    'popularity'
    """
    cls = model_class(name)
    try:
        signature(cls).bind(**settings)
    except TypeError as error:
        raise InputError(
            f"the model {name!r} does not take these settings ({error}); leave them out"
        ) from None
    return cls(**settings)


def load_model(folder: str | Path, *, device: str | None = None) -> Model:
    """Load a saved model of any class; `device` overrides the device it was trained on."""
    return model_class(read_model_name(folder)).load(folder, device=device)
