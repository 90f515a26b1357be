"""Seeded streams of any size whose structure is known in advance.

Every event follows one of four causes, drawn by the shares in the config:

- *repeat*: the source comes back to one of its recent targets;
- *habit*: the source goes from its last target to that target's successor;
- *wave*: the source takes the target that is in fashion at the time;
- otherwise a random target of the source's community.

Keys are integers. Source s and target t belong to communities `s % communities` and
`t % communities`; the successor of t is the next target of t's community.
"""

from dataclasses import dataclass

import numpy as np

from tclgraph.errors import InputError
from tclgraph.events.stream import EventStream, GraphKind

_REPEAT, _HABIT, _WAVE, _COMMUNITY = range(4)
_DAY = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticConfig:
    """How many of everything, and how often each cause acts."""

    events: int = 10_000
    sources: int = 200
    targets: int = 300
    """In a one-mode graph both sides draw from the same keys: person 7 sends and receives."""
    communities: int = 5
    repeat: float = 0.4
    habit: float = 0.2
    wave: float = 0.1
    waves: int = 20
    """Fashions that follow each other, each in its own equal part of the time span."""
    days: float = 30.0
    kind: GraphKind = "bipartite"
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.repeat, self.habit, self.wave) < 0 or self.repeat + self.habit + self.wave > 1:
            raise InputError("repeat, habit and wave are shares: not negative, at most 1 together")
        if not 1 <= self.communities <= self.targets:
            raise InputError(
                f"{self.communities} communities need at least one target each, "
                f"and there are {self.targets}"
            )

    def successor(self, target: int) -> int:
        """Where a habit leads from a target.

        >>> SyntheticConfig(targets=10, communities=3).successor(7)
        1
        """
        following = target + self.communities
        return following if following < self.targets else target % self.communities


def synthesize(config: SyntheticConfig | None = None) -> EventStream:
    """A stream drawn from a config; the same config gives the same stream.

    >>> len(synthesize(SyntheticConfig(events=50)))
    50
    """
    config = config or SyntheticConfig()
    random = np.random.default_rng(config.seed)
    # A few sources do most of the acting, as in every log we know.
    activity = 1.0 / np.arange(1, config.sources + 1) ** 0.8
    source = random.choice(config.sources, size=config.events, p=activity / activity.sum())
    # Whole seconds, so that some events are simultaneous.
    time = np.floor(np.sort(random.uniform(0, config.days * _DAY, size=config.events)))
    shares = [config.repeat, config.habit, config.wave]
    cause = random.choice(4, size=config.events, p=[*shares, max(0.0, 1 - sum(shares))])
    steps_back = random.geometric(0.5, size=config.events)
    in_fashion = random.integers(config.targets, size=config.waves)
    wave = np.minimum(time / (config.days * _DAY) * config.waves, config.waves - 1).astype(int)
    members = (config.targets - source % config.communities - 1) // config.communities + 1
    member = (random.random(config.events) * members).astype(int)
    own_community = source % config.communities + member * config.communities

    target = np.where(cause == _WAVE, in_fashion[wave], own_community).tolist()
    past: list[list[int]] = [[] for _ in range(config.sources)]
    for event, (one, why, back) in enumerate(
        zip(source.tolist(), cause.tolist(), steps_back.tolist(), strict=True)
    ):
        mine = past[one]
        if why == _REPEAT and back <= len(mine):
            target[event] = mine[-back]
        elif why == _HABIT and mine:
            target[event] = config.successor(mine[-1])
        mine.append(target[event])
    return EventStream.from_columns(source, target, time, kind=config.kind)
