"""The columns of a table that hold source, target, time and more: named by the user, or guessed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from tclgraph.errors import InputError, did_you_mean
from tclgraph.events.stream import Notify

# Common column names in lower case. The first that a table has is the guess.
_COMMON_NAMES = {
    "source": ("source", "src", "user_id", "user", "u", "sender", "from", "source_id", "customer"),
    "target": ("target", "dst", "item_id", "item", "i", "receiver", "to", "target_id", "product"),
    "time": ("time", "timestamp", "ts", "t", "datetime", "date", "day", "unixts", "created_at"),
}
_LABEL_NAMES = ("label", "state_label")
_WEIGHT_NAMES = ("weight",)
_FEATURE_PREFIX = "feature_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Names of the columns to read.

    If `source`, `target` or `time` is None, the name is guessed from common names. If `label` or
    `weight` is None, a column with that name is read if there is one. A `segment` is
    read only if it is named. `features=None` reads the columns named feature_0, feature_1, …; `()`
    reads none.
    """

    source: str | None = None
    target: str | None = None
    time: str | None = None
    label: str | None = None
    weight: str | None = None
    segment: str | None = None
    features: Sequence[str] | None = None

    @classmethod
    def of(cls, columns: "Columns | Mapping[str, Any] | None") -> "Columns":
        """Return `columns` as an object; a mapping like {"source": "buyer"} is accepted.

        >>> Columns.of({"source": "buyer", "time": "bought_at"}).time
        'bought_at'
        """
        if columns is None:
            return cls()
        if isinstance(columns, Columns):
            return columns
        roles = [field.name for field in fields(cls)]
        for role in columns:
            if role not in roles:
                raise InputError(f"columns has no entry {role!r}; {did_you_mean(str(role), roles)}")
        return cls(**columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenColumns:
    """Names of columns that the table is known to have."""

    source: str
    target: str
    time: str
    label: str | None
    weight: str | None
    segment: str | None
    features: tuple[str, ...]

    def all(self) -> list[str]:
        """Return the names, each of them once: a column may have several roles."""
        columns = (self.label, self.weight, self.segment)
        optional = [name for name in columns if name is not None]
        names = [self.source, self.target, self.time, *optional, *self.features]
        return list(dict.fromkeys(names))


def choose(
    columns: Columns, names: Sequence[str], *, has_header: bool, origin: str, notify: Notify
) -> ChosenColumns:
    """Choose a column for every role, and notify the user of the guesses."""
    guessed: dict[str, str] = {}
    chosen: dict[str, str] = {}
    for position, role in enumerate(_COMMON_NAMES):
        requested: str | None = getattr(columns, role)
        if requested is not None:
            chosen[role] = _existing(requested, names, role, origin)
        elif has_header:
            chosen[role] = guessed[role] = _guess(role, names, origin)
        else:
            # SNAP files and most logs without a header have the order source, target, time.
            chosen[role] = guessed[role] = _by_position(position, names, origin)
    if len(set(chosen.values())) < len(chosen):
        raise InputError(
            f"{origin}: source, target and time must be three different columns, "
            f"not {', '.join(chosen.values())}"
        )
    # A column that has the name of its role needs no notice.
    guesses = ", ".join(f"{name} is the {role}" for role, name in guessed.items() if name != role)
    if guesses:
        notify(f"{origin}: " + ("" if has_header else "no header; column ") + guesses)
    features = columns.features
    if features is None:
        features = [name for name in names if name.startswith(_FEATURE_PREFIX)]
    return ChosenColumns(
        source=chosen["source"],
        target=chosen["target"],
        time=chosen["time"],
        label=_optional(columns.label, _LABEL_NAMES, names, "label", origin),
        weight=_optional(columns.weight, _WEIGHT_NAMES, names, "weight", origin),
        segment=_optional(columns.segment, (), names, "segment", origin),
        features=tuple(_existing(name, names, "feature", origin) for name in features),
    )


def _existing(name: str, names: Sequence[str], role: str, origin: str) -> str:
    if name not in names:
        raise InputError(
            f"{origin}: there is no {role} column {name!r}; {did_you_mean(name, names)}"
        )
    return name


def _guess(role: str, names: Sequence[str], origin: str) -> str:
    by_lower_case = {name.strip().lower(): name for name in reversed(names)}
    for common in _COMMON_NAMES[role]:
        if common in by_lower_case:
            return by_lower_case[common]
    raise InputError(
        f"{origin}: cannot guess the {role} column among {', '.join(names)}; "
        f'name it with --{role} (in Python: columns={{"{role}": …}})'
    )


def _by_position(position: int, names: Sequence[str], origin: str) -> str:
    if len(names) < 3:
        raise InputError(
            f"{origin}: source, target and time need three columns, but the file has {len(names)}; "
            "check the file and its delimiter"
        )
    return names[position]


def _optional(
    requested: str | None, common: Sequence[str], names: Sequence[str], role: str, origin: str
) -> str | None:
    if requested is not None:
        return _existing(requested, names, role, origin)
    return next((name for name in common if name in names), None)
