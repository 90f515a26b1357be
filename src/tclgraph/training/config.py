"""Settings of the training loop, and the checks of settings that users give.

Settings have names and values, `{"width": 32}`. Settings of a part have dotted names,
`{"encoder.width": 32}`, and a part is switched off by its own name, `{"encoder": None}`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_args, get_type_hints

from pydantic import ConfigDict, Field, NonNegativeInt, PositiveFloat, PositiveInt, TypeAdapter
from pydantic import ValidationError as PydanticError

from tclgraph.errors import InputError, did_you_mean


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """Settings that every learned model has; models add their own."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    epochs: PositiveInt = 20
    """Maximum number of passes over the training stream."""
    batch_size: PositiveInt = 512
    """Number of events in a batch, which is a window of consecutive events."""
    learning_rate: PositiveFloat = 5e-4
    """Learning rate of Adam."""
    warmup_steps: NonNegativeInt = 0
    """Number of batches over which the learning rate rises linearly to its full value."""
    ema_decay: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Decay of the exponential moving average of the weights, which is then what is validated and
    kept. None: no average."""
    max_gradient_norm: PositiveFloat | None = None
    """Norm to which gradients are clipped. None: no clipping."""
    selection_metric: Literal["MRR", "MR"] = "MRR"
    """Validation metric that decides which epoch is kept."""
    patience: PositiveInt | None = None
    """Number of epochs without a better validation metric before training stops. None: never."""
    max_valid_events: PositiveInt | None = None
    """Maximum number of validation events ranked after an epoch, in evenly spread runs; for models
    that rank slowly. None: all."""
    seed: NonNegativeInt = 0
    """Seed of initial weights, batch order, negatives and dropout."""
    device: str = "cpu"
    """Torch device of the network."""
    threads: PositiveInt | None = None
    """Number of CPU threads. None: torch's own choice. Equal results need equal numbers."""

    def unused_settings(self) -> dict[str, str]:
        """Return the settings without effect in this configuration, each with the reason."""
        return {}


Config = TypeVar("Config", bound=TrainingConfig)


def parse_settings(config: type[Config], settings: Mapping[str, Any]) -> Config:
    """Build a config from settings that a user gave; values may be text.

    Unknown settings, values that do not fit, and settings without effect are refused.

    >>> parse_settings(TrainingConfig, {"epochs": "3"}).epochs
    3
    >>> parse_settings(TrainingConfig, {"epoch": 3})
    Traceback (most recent call last):
    tclgraph.errors.InputError: unknown setting 'epoch'; did you mean "epochs"?
    """
    known = setting_names(config)
    for name in settings:
        if name not in known:
            raise InputError(f"unknown setting {name!r}; {did_you_mean(name, known)}")
    for name in settings:
        part = name.split(".")[0]
        if part != name and part in settings and _parsed(settings[part]) is None:
            raise InputError(f"setting {name} has no effect with {part}=none; leave one out")
    built = _validate(config, _nested(settings), settings)
    for name, reason in built.unused_settings().items():
        if name in settings:
            raise InputError(f"setting {name} has no effect {reason}; leave it out")
    return built


def restore_config(config: type[Config], settings: Mapping[str, Any]) -> Config:
    """Build a config from the complete settings of a file, nested as JSON has them."""
    flat = flattened(settings)
    absent_parts = [name for name, value in settings.items() if value is None]
    missing = [
        name
        for name in setting_names(config)
        if name not in flat and name not in settings and name.split(".")[0] not in absent_parts
    ]
    if missing:
        raise InputError(
            f"the saved settings lack {', '.join(missing)}; they were written by another version "
            "of tclgraph, so train again"
        )
    return _validate(config, dict(settings), settings)


def parse_complete_settings(config: Config, settings: Mapping[str, Any]) -> Config:
    """Return a config of the same class from complete settings under dotted names, as text or not.

    Settings without effect are allowed, because complete settings include them.
    """
    return _validate(type(config), _nested(settings), settings)


def flattened(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested settings under dotted names.

    >>> flattened({"epochs": 3, "encoder": {"width": 8}})
    {'epochs': 3, 'encoder.width': 8}
    """
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            flat |= {f"{name}.{inner}": entry for inner, entry in value.items()}
        else:
            flat[name] = value
    return flat


def setting_names(config: type[Any]) -> list[str]:
    """Return the names of all settings of a config class, those of its parts with a dot."""
    hints = get_type_hints(config)
    names = []
    for field in fields(config):
        names.append(field.name)
        for part in (hints[field.name], *get_args(hints[field.name])):
            if is_dataclass(part):
                names += [f"{field.name}.{inner}" for inner in setting_names(part)]  # type: ignore[arg-type]
    return names


def _nested(settings: Mapping[str, Any]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for name, value in settings.items():
        part, dot, inner = name.partition(".")
        if dot:
            nested.setdefault(part, {})[inner] = _parsed(value)
        else:
            nested[name] = _parsed(value)
    return nested


def _parsed(value: Any) -> Any:
    return None if isinstance(value, str) and value.lower() == "none" else value


def _validate(config: type[Config], nested: dict[str, Any], given: Mapping[str, Any]) -> Config:
    try:
        built: Config = _adapter(config).validate_python(nested)  # type: ignore[arg-type]
    except PydanticError as error:
        first = error.errors()[0]
        message = first["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
        # The location of a part's setting also has the name of the part's class.
        location = [str(word) for word in first["loc"]]
        dotted = (".".join([*location[:1], word]) for word in location[1:])
        place = next((name for name in (*dotted, *location[:1]) if name in given), None)
        raise InputError(
            f"setting {place}={given[place]!r}: {message}" if place else message
        ) from None
    return built


@cache
def _adapter(config: type[Any]) -> TypeAdapter[Any]:
    # Cached, because building an adapter takes longer than an epoch of a small model.
    return TypeAdapter(config)
