"""The columns of a table that hold source, target, time and more: named by the user, or guessed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import polars as pl

from tclgraph.errors import InputError, did_you_mean
from tclgraph.events.column_types import guess_roles
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

    If `source`, `target` or `time` is None, the column is guessed from common names, otherwise from
    types and values. If `label` or `weight` is None, a column with that name is read if there is
    one. A `segment` is read only if it is named. `features=None` reads the columns named feature_0,
    feature_1, …; `()` reads none.
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


Read: TypeAlias = Callable[[Sequence[str]], list[pl.Series]]
"""Returns columns by name; it may leave out columns that cannot be read."""


def choose(
    columns: Columns,
    names: Sequence[str],
    *,
    has_header: bool,
    origin: str,
    notify: Notify,
    read: Read,
) -> ChosenColumns:
    """Choose a column for every role, and notify the user of the guesses.

    Columns are read only if the names of the table do not decide all roles.
    """
    named: dict[str, str] = {}
    for position, role in enumerate(_COMMON_NAMES):
        requested: str | None = getattr(columns, role)
        if requested is not None:
            named[role] = _existing(requested, names, role, origin)
        elif not has_header:
            # SNAP files and most logs without a header have the order source, target, time.
            named[role] = _by_position(position, names, origin)
        elif (common_name := _by_common_name(role, names)) is not None:
            named[role] = common_name
    by_values = [role for role in _COMMON_NAMES if role not in named]
    chosen = named
    if by_values:
        time = named.get("time")
        wanted = [name for name in names if name == time or _has_no_role(name, columns, named)]
        values = read(wanted) if wanted else []
        chosen = named | guess_roles(by_values, values, time=time, names=names, origin=origin)
    if len(set(chosen.values())) < len(chosen):
        raise InputError(
            f"{origin}: source, target and time must be three different columns, "
            f"not {', '.join(chosen[role] for role in _COMMON_NAMES)}"
        )
    guesses = {role: chosen[role] for role in _COMMON_NAMES if getattr(columns, role) is None}
    _notify_of_guesses(guesses, by_values, origin, notify, has_header=has_header)
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


def _has_no_role(name: str, columns: Columns, named: Mapping[str, str]) -> bool:
    """Return whether neither the user nor the name of a column says what the column holds."""
    with_role = (*named.values(), columns.label, columns.weight, *(columns.features or ()))
    has_known_name = name in (*_LABEL_NAMES, *_WEIGHT_NAMES) or name.startswith(_FEATURE_PREFIX)
    return name not in with_role and not has_known_name


def _notify_of_guesses(
    guesses: Mapping[str, str],
    by_values: Sequence[str],
    origin: str,
    notify: Notify,
    *,
    has_header: bool,
) -> None:
    """Notify the user of the guessed columns; the flags follow if values decided some of them."""
    # A column that has the name of its role needs no notice.
    notice = ", ".join(f"{name} is the {role}" for role, name in guesses.items() if name != role)
    if not notice:
        return
    if by_values:
        flags = " and ".join(f"--{role}" for role in by_values)
        notice += f"; pass {flags} to change what is guessed from the values"
    notify(f"{origin}: " + ("" if has_header else "no header; column ") + notice)


def _existing(name: str, names: Sequence[str], role: str, origin: str) -> str:
    if name not in names:
        raise InputError(
            f"{origin}: there is no {role} column {name!r}; {did_you_mean(name, names)}"
        )
    return name


def _by_common_name(role: str, names: Sequence[str]) -> str | None:
    by_lower_case = {name.strip().lower(): name for name in reversed(names)}
    for common in _COMMON_NAMES[role]:
        if common in by_lower_case:
            return by_lower_case[common]
    return None


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
