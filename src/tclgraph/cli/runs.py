"""What the commands that work on a run folder share: the log of a run, its model, its class."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tclgraph.errors import InputError
from tclgraph.events.log_spec import LogSpec

if TYPE_CHECKING:
    from tclgraph.events.split import Split
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


def note_new_keys(model: Model, sources: Sequence[str], targets: Sequence[str] = ()) -> None:
    """Say on stderr which keys the model has never seen."""
    state = model.state
    for side, known, keys in (
        ("source", state.sources, sources),
        ("target", state.targets, targets),
    ):
        for key in keys:
            if not known.has(key):
                print(
                    f"note: {side} {key} is new; it counts as a node without events",
                    file=sys.stderr,
                )


def num_trained_events(run: Path) -> int:
    """Return the number of events of the log that a run was trained on, all parts together."""
    from tclgraph.training.run_folder import RunFolder

    config = RunFolder(run).read_config()
    if config is None:
        raise InputError(f"{run} is not the folder of a run; give one that `tclgraph train` made")
    return sum(config["data"]["sizes"].values())


def refuse_updated(run: Path) -> None:
    """Refuse to train a run that has been updated further, because that drops its later events."""
    from tclgraph.models.saving import FILE_NAME, read_model

    if not (run / FILE_NAME).exists():
        return
    num_added = len(read_model(run).state.graph) - num_trained_events(run)
    if num_added > 0:
        raise InputError(
            f"{run} has been updated with {num_added:,} later events, which training would drop; "
            "train in another folder"
        )


def check_log_of_run(run: Path, split: Split) -> None:
    """Refuse a log that has other events than when the run was trained."""
    from tclgraph.training.run_folder import RunFolder, difference, fingerprint

    config = RunFolder(run).read_config()
    if config is not None and config["data"] != (now := fingerprint(split)):
        raise InputError(
            f"the log of {run} has changed since training ({difference(config['data'], now)}); "
            "restore it, or train again in another folder"
        )


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
