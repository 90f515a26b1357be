"""Synthetic streams of any size with a known structure.

Each event has one of four causes, drawn with the probabilities in the config:

- *repeat*: the source returns to one of its recent targets;
- *habit*: the source chooses the successor of its last target;
- *wave*: the source chooses the target that is popular at that time;
- *community*: otherwise, the source chooses a random target of its community.

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
    """Size of a synthetic stream and the probability of each cause."""

    events: int = 10_000
    sources: int = 200
    targets: int = 300
    """Number of targets. In a one-mode graph both sides share keys: node 7 sends and receives."""
    communities: int = 5
    repeat: float = 0.4
    """Probability that an event is a repeat."""
    habit: float = 0.2
    """Probability that an event follows a habit."""
    wave: float = 0.1
    """Probability that an event follows a wave."""
    waves: int = 20
    """Number of consecutive waves; all have the same duration."""
    days: float = 30.0
    kind: GraphKind = "bipartite"
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.repeat, self.habit, self.wave) < 0 or self.repeat + self.habit + self.wave > 1:
            raise InputError(
                "repeat, habit and wave must not be negative and must add up to at most 1; "
                f"they are {self.repeat}, {self.habit} and {self.wave}"
            )
        if not 1 <= self.communities <= self.targets:
            raise InputError(
                f"each community needs a target, but there are {self.communities} communities and "
                f"{self.targets} targets; give fewer communities or more targets"
            )

    def successor(self, target: int) -> int:
        """Return the target that a habit chooses after a target.

        >>> SyntheticConfig(targets=10, communities=3).successor(7)
        1
        """
        following = target + self.communities
        return following if following < self.targets else target % self.communities


def synthesize(config: SyntheticConfig | None = None) -> EventStream:
    """Return a random stream; the same config gives the same stream.

    >>> len(synthesize(SyntheticConfig(events=50)))
    50
    """
    config = config or SyntheticConfig()
    random = np.random.default_rng(config.seed)
    # Activity is skewed, as in real logs: a few sources cause most events.
    activity = 1.0 / np.arange(1, config.sources + 1) ** 0.8
    source = random.choice(config.sources, size=config.events, p=activity / activity.sum())
    # Round to seconds, so that some events are simultaneous.
    time = np.floor(np.sort(random.uniform(0, config.days * _DAY, size=config.events)))
    shares = [config.repeat, config.habit, config.wave]
    cause = random.choice(4, size=config.events, p=[*shares, max(0.0, 1 - sum(shares))])
    steps_back = random.geometric(0.5, size=config.events)
    popular = random.integers(config.targets, size=config.waves)
    wave = np.minimum(time / (config.days * _DAY) * config.waves, config.waves - 1).astype(int)
    num_members = (config.targets - source % config.communities - 1) // config.communities + 1
    member = (random.random(config.events) * num_members).astype(int)
    community_target = source % config.communities + member * config.communities

    target = np.where(cause == _WAVE, popular[wave], community_target).tolist()
    # Repeats and habits depend on earlier targets of the source, so fill them in by event order.
    targets_of: list[list[int]] = [[] for _ in range(config.sources)]
    for event, (event_source, event_cause, steps) in enumerate(
        zip(source.tolist(), cause.tolist(), steps_back.tolist(), strict=True)
    ):
        earlier = targets_of[event_source]
        if event_cause == _REPEAT and steps <= len(earlier):
            target[event] = earlier[-steps]
        elif event_cause == _HABIT and earlier:
            target[event] = config.successor(earlier[-1])
        earlier.append(target[event])
    return EventStream.from_columns(source, target, time, kind=config.kind)
