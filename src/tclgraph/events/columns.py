"""Which column of a table is the source, the target, the time: told by the user, or guessed."""

from collections.abc import Sequence
from dataclasses import dataclass

from tclgraph.errors import InputError, did_you_mean
from tclgraph.events.stream import Notify

# Names in common use, the surest first; compared in lower case.
_USUAL_NAMES = {
    "source": ("source", "src", "user_id", "user", "u", "sender", "from", "source_id", "customer"),
    "target": ("target", "dst", "item_id", "item", "i", "receiver", "to", "target_id", "product"),
    "time": ("time", "timestamp", "ts", "t", "datetime", "date", "unixts", "created_at"),
}
_LABEL_NAMES = ("label", "state_label")
_WEIGHT_NAMES = ("weight",)
_FEATURE_PREFIX = "feature_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Names of the columns to read. None: guess the first three, do without the rest.

    `features=None` takes the columns called feature_0, feature_1, …; `()` takes none.
    """

    source: str | None = None
    target: str | None = None
    time: str | None = None
    label: str | None = None
    weight: str | None = None
    features: Sequence[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenColumns:
    """Names that are known to be in the table."""

    source: str
    target: str
    time: str
    label: str | None
    weight: str | None
    features: tuple[str, ...]

    def all(self) -> list[str]:
        optional = [name for name in (self.label, self.weight) if name is not None]
        return [self.source, self.target, self.time, *optional, *self.features]


def choose(
    wanted: Columns, names: Sequence[str], *, has_header: bool, origin: str, notify: Notify
) -> ChosenColumns:
    """Settle every role, saying which were guessed."""
    guessed = {}
    found = {}
    for position, role in enumerate(("source", "target", "time")):
        asked: str | None = getattr(wanted, role)
        if asked is not None:
            found[role] = _existing(asked, names, role, origin)
        elif has_header:
            found[role] = guessed[role] = _guess(role, names, origin)
        else:
            # SNAP's order, and the order in which most people write a bare log.
            found[role] = guessed[role] = _by_position(position, names, origin)
    if len(set(found.values())) < len(found):
        raise InputError(
            f"{origin}: source, target and time must be three different columns, "
            f"not {', '.join(found.values())}"
        )
    # A guess that merely repeats the role's own name is no news.
    told = ", ".join(f"{name} is the {role}" for role, name in guessed.items() if name != role)
    if told:
        notify(f"{origin}: " + ("" if has_header else "no header; column ") + told)
    features = wanted.features
    if features is None:
        features = [name for name in names if name.startswith(_FEATURE_PREFIX)]
    return ChosenColumns(
        source=found["source"],
        target=found["target"],
        time=found["time"],
        label=_optional(wanted.label, _LABEL_NAMES, names, "label", origin),
        weight=_optional(wanted.weight, _WEIGHT_NAMES, names, "weight", origin),
        features=tuple(_existing(name, names, "feature", origin) for name in features),
    )


def _existing(name: str, names: Sequence[str], role: str, origin: str) -> str:
    if name not in names:
        raise InputError(f"{origin}: no {role} column {name!r}; {did_you_mean(name, names)}")
    return name


def _guess(role: str, names: Sequence[str], origin: str) -> str:
    by_lower_case = {name.strip().lower(): name for name in reversed(names)}
    for usual in _USUAL_NAMES[role]:
        if usual in by_lower_case:
            return by_lower_case[usual]
    raise InputError(
        f"{origin}: cannot tell which column is the {role} among {', '.join(names)}; "
        f"name it with --{role} (in Python: {role}=)"
    )


def _by_position(position: int, names: Sequence[str], origin: str) -> str:
    if len(names) < 3:
        raise InputError(
            f"{origin}: {len(names)} column{'s'[: len(names) != 1]} where source, target and time "
            "need three; check the file and its delimiter"
        )
    return names[position]


def _optional(
    asked: str | None, usual: Sequence[str], names: Sequence[str], role: str, origin: str
) -> str | None:
    if asked is not None:
        return _existing(asked, names, role, origin)
    return next((name for name in usual if name in names), None)
