"""What the verbs that work on a run folder share: which log it was trained on, and loading it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tclgraph.cli.options import DEFAULT_MODEL, LogOptions
from tclgraph.errors import InputError

if TYPE_CHECKING:
    from tclgraph.training.learned import LearnedModel

_LOG_FILE = "log.json"


def remember_log(run: Path, log: str, options: LogOptions) -> None:
    """Keep in the run folder how to read its log again, from wherever."""
    from tclgraph.training.run_folder import RunFolder

    path = Path(log)
    found = {"log": str(path.resolve()) if path.exists() else log, "options": asdict(options)}
    RunFolder(run).write(_LOG_FILE, json.dumps(found, indent=2))


def recall_log(run: Path) -> tuple[str, LogOptions]:
    """The log of a run, and how it was read and split."""
    try:
        found = json.loads((run / _LOG_FILE).read_text())
        return found["log"], LogOptions(**found["options"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{run} is not the folder of a run ({error}); give one that `tclgraph train` made"
        ) from None


def learned_kind(name: str, preset: str | None) -> Callable[..., LearnedModel]:
    """What makes a learned model of that name and preset when it is given its settings."""
    from tclgraph import registry
    from tclgraph.training.learned import LearnedModel

    kind = type(registry.build(name))
    if not issubclass(kind, LearnedModel):
        raise InputError(
            f"{name} is a rule and learns nothing; see it with: "
            f"tclgraph evaluate --model {name} --data LOG"
        )
    if preset is None:
        return kind
    if name != DEFAULT_MODEL:
        raise InputError(f"{name} has no presets; leave out --preset {preset}")
    return partial(kind, preset=preset)


def trainable_class(name: str) -> type[LearnedModel]:
    """Return the class of a trainable model."""
    from tclgraph import registry
    from tclgraph.training.learned import LearnedModel

    model_class = type(registry.build(name))
    if not issubclass(model_class, LearnedModel):
        raise InputError(
            f"{name} is a heuristic and cannot be trained; evaluate it with: "
            f"tclgraph evaluate --model {name} --data LOG"
        )
    return model_class


def load_run(run: Path) -> LearnedModel:
    """The best model of a run so far."""
    from tclgraph.registry import load_model
    from tclgraph.training.learned import LearnedModel

    model = load_model(run)
    if not isinstance(model, LearnedModel):
        raise InputError(f"{run} holds {model.name}, which is a rule and has no vectors; train tcl")
    return model
