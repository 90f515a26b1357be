"""Event streams, models, heuristics and evaluation for continuous-time dynamic graphs.

>>> import tclgraph as tg
>>> stream = tg.load({"source": list("abab"), "target": list("xyxx"), "time": [1, 2, 3, 4]})
>>> split = stream.split(0.5, 0.25)
>>> report = tg.evaluate(tg.build("own-recency").fit(split), split)
>>> report["MR"]
2.0
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Names are fetched when first used, so that the command line starts at once.
_MODULES = {
    "CATALOG": "tclgraph.events.catalog",
    "EventStream": "tclgraph.events.stream",
    "InputError": "tclgraph.errors",
    "Model": "tclgraph.models.interface",
    "Report": "tclgraph.evaluation.report",
    "Split": "tclgraph.events.split",
    "SyntheticConfig": "tclgraph.events.synthetic",
    "Ranker": "tclgraph.models.ranker.model",
    "Recommendation": "tclgraph.answers.recommendations",
    "TCL": "tclgraph.models.tcl.model",
    "build": "tclgraph.registry",
    "describe": "tclgraph.events.statistics",
    "evaluate": "tclgraph.evaluation.protocol",
    "load": "tclgraph.events.catalog",
    "load_model": "tclgraph.registry",
    "read_file": "tclgraph.events.readers",
    "read_frame": "tclgraph.events.readers",
    "synthesize": "tclgraph.events.synthetic",
    "write_file": "tclgraph.events.writers",
}

if TYPE_CHECKING:
    from tclgraph.answers.recommendations import Recommendation as Recommendation
    from tclgraph.errors import InputError as InputError
    from tclgraph.evaluation.protocol import evaluate as evaluate
    from tclgraph.evaluation.report import Report as Report
    from tclgraph.events.catalog import CATALOG as CATALOG
    from tclgraph.events.catalog import load as load
    from tclgraph.events.readers import read_file as read_file
    from tclgraph.events.readers import read_frame as read_frame
    from tclgraph.events.split import Split as Split
    from tclgraph.events.statistics import describe as describe
    from tclgraph.events.stream import EventStream as EventStream
    from tclgraph.events.synthetic import SyntheticConfig as SyntheticConfig
    from tclgraph.events.synthetic import synthesize as synthesize
    from tclgraph.events.writers import write_file as write_file
    from tclgraph.models.interface import Model as Model
    from tclgraph.models.ranker.model import Ranker as Ranker
    from tclgraph.models.tcl.model import TCL as TCL
    from tclgraph.registry import build as build
    from tclgraph.registry import load_model as load_model


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"tclgraph has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted([*_MODULES, "__version__"])
