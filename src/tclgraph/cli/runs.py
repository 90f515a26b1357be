"""What the commands that work on a run folder share: the log of a run, its model, its class."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tclgraph.errors import InputError
from tclgraph.events.log_spec import LogSpec

if TYPE_CHECKING:
    from tclgraph.models.interface import Model
    from tclgraph.models.learned import LearnedModel

_LOG_FILE = "log.json"


def write_log_spec(run: Path, spec: LogSpec) -> None:
    """Write into the run folder how to read its log again, from any working folder."""
    from tclgraph.training.run_folder import RunFolder

    RunFolder(run).write(_LOG_FILE, json.dumps(spec.resolved().to_json(), indent=2))


def read_log_spec(run: Path) -> LogSpec:
    """Return the log of a run, and how it was read and split."""
    try:
        return LogSpec.from_json(json.loads((run / _LOG_FILE).read_text()))
    except (OSError, ValueError, TypeError) as error:
        raise InputError(
            f"{run} is not the folder of a run ({error}); give one that `tclgraph train` made"
        ) from None


def load_run(run: Path) -> Model:
    """Load the model of a run, on the CPU if its device is not on this machine."""
    from tclgraph.models.learned import DeviceUnavailableError
    from tclgraph.registry import load_model

    try:
        return load_model(run)
    except DeviceUnavailableError:
        print("note: the training device is not on this machine; using the CPU", file=sys.stderr)
        return load_model(run, device="cpu")


def trainable_class(name: str) -> type[LearnedModel]:
    """Return the class of a model with settings to tune; other models are refused."""
    from tclgraph import registry
    from tclgraph.models.learned import LearnedModel

    model_class = registry.model_class(name)
    if not issubclass(model_class, LearnedModel):
        raise InputError(
            f"{name} has no settings to tune; fit it with: tclgraph train LOG --model {name}"
        )
    return model_class


def resumed_model(config: dict[str, Any], settings: dict[str, str]) -> Model:
    """Return the unfitted model of a run; settings given again must be the same."""
    from tclgraph import registry
    from tclgraph.models.learned import LearnedModel
    from tclgraph.training.config import flattened, parse_complete_settings

    model_class = registry.model_class(config["model"])
    if not issubclass(model_class, LearnedModel):
        return registry.build(config["model"], **{**config["settings"], **settings})
    model = model_class.from_settings(config["settings"])
    if settings:
        model.config = parse_complete_settings(
            model.config, {**flattened(config["settings"]), **settings}
        )
    return model
