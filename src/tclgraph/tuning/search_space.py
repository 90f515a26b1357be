"""The settings that a search varies, and the values it tries for each of them.

A setting of a group is written with a dot: `encoder.levels` is the field `levels` of the field
`encoder` of the config.
"""

from collections.abc import Collection, Mapping, Sequence
from operator import attrgetter
from typing import Any, TypeAlias

Settings: TypeAlias = dict[str, Any]
SearchSpace: TypeAlias = Mapping[str, Sequence[Any]]


def free_settings(space: SearchSpace, config: object, fixed: Collection[str]) -> SearchSpace:
    """Return the part of a search space that can still be varied.

    Settings that are `fixed` are left out, and so are the settings of a group that is None.

    >>> from types import SimpleNamespace
    >>> space = {"learning_rate": (0.001, 0.002), "encoder.levels": (3, 4)}
    >>> list(free_settings(space, SimpleNamespace(learning_rate=0.001, encoder=None), ()))
    ['learning_rate']
    """
    return {
        name: values
        for name, values in space.items()
        if name not in fixed and _has_group(config, name)
    }


def untuned_settings(space: SearchSpace, config: object) -> Settings:
    """Return the values that the settings of a search space have in `config`.

    >>> from types import SimpleNamespace
    >>> config = SimpleNamespace(encoder=SimpleNamespace(levels=5))
    >>> untuned_settings({"encoder.levels": (3, 4)}, config)
    {'encoder.levels': 5}
    """
    return {name: attrgetter(name)(config) for name in space}


def with_untuned_values(space: SearchSpace, untuned: Settings) -> dict[str, tuple[Any, ...]]:
    """Return the search space with the untuned value of each setting added in front if missing.

    >>> with_untuned_values({"levels": (3, 4)}, {"levels": 5})
    {'levels': (5, 3, 4)}
    """
    return {
        name: tuple(values) if untuned[name] in values else (untuned[name], *values)
        for name, values in space.items()
    }


def _has_group(config: object, name: str) -> bool:
    """Return whether the group of a setting exists; a setting without a group always exists."""
    group = name.rpartition(".")[0]
    return not group or attrgetter(group)(config) is not None
