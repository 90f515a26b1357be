"""Settings of the training loop, and how settings are checked at the border."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import ConfigDict, Field, NonNegativeInt, PositiveFloat, PositiveInt, TypeAdapter
from pydantic import ValidationError as PydanticError

from tclgraph.errors import InputError, did_you_mean


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingConfig:
    """What every learned model can be told; models add their own."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    epochs: PositiveInt = 20
    """Passes over the training stream, at most."""
    batch_size: PositiveInt = 512
    """Events in a batch, which is a window of consecutive events."""
    learning_rate: PositiveFloat = 5e-4
    """Of Adam."""
    warm_up: NonNegativeInt = 0
    """Batches over which the learning rate rises to that, evenly."""
    ema_decay: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Validate and keep a running mean of the weights, of which each batch leaves this share."""
    max_gradient_norm: PositiveFloat | None = None
    """Longer gradients are shortened to this; None leaves them as they are."""
    choose_by: Literal["MRR", "MR"] = "MRR"
    """Validation metric that says which epoch is kept."""
    patience: PositiveInt | None = None
    """Epochs without a better validation figure before training stops early; None: never."""
    valid_events: PositiveInt | None = None
    """Of more validation events than this only so many are ranked after an epoch, in runs that are
    spread evenly; None: all are. For models that rank slowly."""
    seed: NonNegativeInt = 0
    """Of initial weights, the order of batches, negatives and dropout."""
    device: str = "cpu"
    """Where the network lives, as torch names it."""
    threads: PositiveInt | None = None
    """Processor threads; None: as torch has it. Equal results need equal numbers of threads."""


Config = TypeVar("Config", bound=TrainingConfig)


def checked(config: type[Config], settings: Mapping[str, Any]) -> Config:
    """A config from settings by name, which may be text; what does not fit is refused.

    >>> checked(TrainingConfig, {"epochs": "3"}).epochs
    3
    >>> checked(TrainingConfig, {"epoch": 3})
    Traceback (most recent call last):
    tclgraph.errors.InputError: unknown setting 'epoch'; did you mean "epochs"?
    """
    known = [field.name for field in fields(config)]
    for name in settings:
        if name not in known:
            raise InputError(f"unknown setting {name!r}; {did_you_mean(name, known)}")
    plain = {name: None if value in ("none", "None") else value for name, value in settings.items()}
    try:
        found: Config = _adapter(config).validate_python(plain)
    except PydanticError as error:
        first = error.errors()[0]
        place = str(first["loc"][0]) if first["loc"] else ""
        told = first["msg"].removeprefix("Value error, ").replace("Input should be", "give")
        where = f"setting {place}={settings[place]!r}: " if place in settings else ""
        raise InputError(where + told) from None
    return found


# Kept, as making one takes longer than a small model's whole epoch.
_adapters: dict[type[Any], TypeAdapter[Any]] = {}


def _adapter(config: type[Any]) -> TypeAdapter[Any]:
    if config not in _adapters:
        _adapters[config] = TypeAdapter(config)
    return _adapters[config]
