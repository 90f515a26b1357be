"""The history features computed slowly, for one node at a time, from their definitions.

It shares no code with the package. Every method returns features by the names of their columns in
`tclgraph.features.columns`, in lower case and in the same order.
"""

from collections import defaultdict
from collections.abc import Sequence
from math import log, log1p
from typing import NamedTuple

from tests.reference.intervals import in_units

# How many latest events, neighbors and choices count.
MAX_EVENTS = 2_000
MAX_PAIRS = 512
NEARBY_SOURCE_EVENTS = 100
NEARBY_NEIGHBORS = 20
NEARBY_EVENTS = 20
NEARBY_EARLIER_EVENTS = 5
WALK_CHOICES = (64, 64, 32)
EVENTS_WITH_LATEST = 128

Features = dict[str, float]


class Interaction(NamedTuple):
    """An event from the point of view of one of its nodes."""

    event: int
    time: float
    neighbor: int
    is_source: bool
    """Whether the node is the source of the event."""


class History:
    """The events (source, target id, time) before a query.

    In a one-mode graph the first target is node 0, in a bipartite graph it is the node after all
    sources. `unit` is that of ages and gaps, and `windows` are the lengths of the time windows.
    """

    def __init__(
        self,
        events: Sequence[tuple[int, int, float]],
        first_target: int,
        num_targets: int,
        unit: float,
        windows: tuple[float, float, float],
    ) -> None:
        self.unit = unit
        self.windows = windows
        self.first_target = first_target
        self.num_targets = num_targets
        self._interactions: dict[int, list[Interaction]] = {}
        self._times_as_source: dict[int, list[float]] = {}
        self._times_as_target: dict[int, list[float]] = {}
        targets: list[int] = []
        candidates: list[int] = []
        for event, (source, target_id, time) in enumerate(events):
            target = first_target + target_id
            self._times_as_source.setdefault(source, []).append(time)
            self._times_as_target.setdefault(target, []).append(time)
            targets.append(target)
            candidates += [source, target] if first_target == 0 else [target]
            self._interactions.setdefault(source, []).append(
                Interaction(event, time, target, is_source=True)
            )
            if target != source:
                self._interactions.setdefault(target, []).append(
                    Interaction(event, time, source, is_source=False)
                )
        self._latest_targets = latest_first(targets)
        self._latest_candidates = latest_first(candidates)

    def interactions(self, node: int) -> list[Interaction]:
        """Return all interactions of a node, the oldest first."""
        return self._interactions.get(node, [])

    def latest_neighbors(self, source: int) -> list[int]:
        """Return the neighbors that have pair features (the source itself after a self-loop)."""
        events = self.interactions(source)[-MAX_EVENTS:]
        neighbors = latest_first([event.neighbor for event in events])
        return neighbors[:MAX_PAIRS]

    def log_time(self, interval: float) -> float:
        """Return log(1 + interval in units)."""
        return log1p(in_units(interval, self.unit))

    def age(self, times: Sequence[float], now: float) -> float:
        """Return the logarithm of the time since the last of these times, or 0 without any."""
        return self.log_time(now - times[-1]) if times else 0.0

    # Source features

    def source_features(self, source: int, now: float) -> Features:
        events = self.interactions(source)
        as_source = [event.time for event in events if event.is_source]
        as_target = [event.time for event in events if not event.is_source]
        neighbors = [event.neighbor for event in events]
        is_new = [
            neighbor not in neighbors[max(index - MAX_EVENTS + 1, 0) : index]
            for index, neighbor in enumerate(neighbors)
        ]
        num_events = min(len(events), MAX_EVENTS)
        num_neighbors = len(set(neighbors[-MAX_EVENTS:]))
        return {
            "event_age": self.age([event.time for event in events], now),
            "has_event": float(bool(events)),
            "last_as_target": float(bool(events) and not events[-1].is_source),
            "as_source_age": self.age(as_source, now),
            "was_source": float(bool(as_source)),
            "as_source_short": num_within(self.windows[0], as_source, now),
            "as_source_medium": num_within(self.windows[1], as_source, now),
            "as_source_long": num_within(self.windows[2], as_source, now),
            "as_target_short": num_within(self.windows[0], as_target, now),
            "as_target_medium": num_within(self.windows[1], as_target, now),
            "as_target_long": num_within(self.windows[2], as_target, now),
            "num_events": log1p(num_events),
            "new_share_1": sum(is_new[-1:]) / 1,
            "new_share_4": sum(is_new[-4:]) / 4,
            "new_share_16": sum(is_new[-16:]) / 16,
            "new_share_64": sum(is_new[-64:]) / 64,
            "neighbors_per_event": num_neighbors / (num_events + 1),
            "num_neighbors": log1p(num_neighbors),
        }

    # Pair features

    def pair_features(self, source: int, neighbor: int, now: float) -> Features:
        events = self.interactions(source)[-MAX_EVENTS:]
        shared = [event for event in events if event.neighbor == neighbor]
        forward = [event.time for event in shared if event.is_source]
        backward = [event.time for event in shared if not event.is_source]
        both = [event.time for event in shared]
        run = 0
        while run < len(shared) and shared[-1 - run].is_source == shared[-1].is_source:
            run += 1
        has_gap = len(shared) > 1
        mean_gap = (both[-1] - both[0]) / (len(shared) - 1) if has_gap else 0.0
        after_latest, after_two, after_three = (
            self.next_neighbors(events, length) for length in (1, 2, 3)
        )
        recent = [
            1 / number
            for number, after in enumerate(reversed(after_latest), start=1)
            if after == neighbor
        ]
        return {
            "age": self.age(both, now),
            "forward_age": self.age(forward, now),
            "has_forward": float(bool(forward)),
            "backward_age": self.age(backward, now),
            "has_backward": float(bool(backward)),
            "num_forward": log1p(len(forward)),
            "num_backward": log1p(len(backward)),
            "recency_rank": log(1 + self.latest_neighbors(source).index(neighbor)),
            "last_is_backward": float(not shared[-1].is_source),
            "run_length": log1p(run),
            "in_short": num_within(self.windows[0], both, now),
            "in_medium": num_within(self.windows[1], both, now),
            "in_long": num_within(self.windows[2], both, now),
            "mean_gap": self.log_time(mean_gap),
            "has_gap": float(has_gap),
            "events_since": log1p(sum(event.event > shared[-1].event for event in events)),
            "num_after_latest": log1p(len(after_latest)),
            "next_after_latest": log1p(after_latest.count(neighbor)),
            "recent_after_latest": log1p(sum(recent)),
            "next_after_two": log1p(after_two.count(neighbor)),
            "next_after_three": log1p(after_three.count(neighbor)),
        }

    def next_neighbors(self, events: Sequence[Interaction], length: int) -> list[int]:
        """Return the neighbors that came next after the latest neighbors in their order.

        `length` is the number of latest neighbors. Of the events with the latest neighbor, only the
        latest EVENTS_WITH_LATEST before the last count.
        """
        neighbors = [event.neighbor for event in events]
        ends = [end for end in range(len(events) - 1) if neighbors[end] == neighbors[-1]]
        return [
            neighbors[end + 1]
            for end in ends[-EVENTS_WITH_LATEST:]
            if end + 1 >= length and neighbors[end + 1 - length : end + 1] == neighbors[-length:]
        ]

    # Activity features of a candidate

    def activity_features(self, target_id: int, now: float) -> Features:
        node = self.first_target + target_id
        as_target = self._times_as_target.get(node, [])
        # Empty in a bipartite graph, where no target is ever a source.
        as_source = self._times_as_source.get(node, [])
        first_interactions = self.first_interactions(node)
        return {
            "as_target_age": self.age(as_target, now),
            "was_target": float(bool(as_target)),
            "as_source_age": self.age(as_source, now),
            "was_source": float(bool(as_source)),
            "num_as_target": log1p(len(as_target)),
            "as_target_short": num_within(self.windows[0], as_target, now),
            "as_target_medium": num_within(self.windows[1], as_target, now),
            "as_target_long": num_within(self.windows[2], as_target, now),
            "as_source_short": num_within(self.windows[0], as_source, now),
            "as_source_medium": num_within(self.windows[1], as_source, now),
            "as_source_long": num_within(self.windows[2], as_source, now),
            "as_target_rank": log_rank(node, self._latest_targets),
            "event_rank": log_rank(node, self._latest_candidates),
            "num_neighbors": log1p(len(first_interactions)),
            "num_first_as_target": log1p(sum(not event.is_source for event in first_interactions)),
        }

    def first_interactions(self, node: int) -> list[Interaction]:
        """Return the first interaction with each neighbor but the node itself, the oldest first."""
        first: dict[int, Interaction] = {}
        for interaction in self.interactions(node):
            if interaction.neighbor != node:
                first.setdefault(interaction.neighbor, interaction)
        return list(first.values())

    # Nearby features of all candidates

    def nearby_features(self, source: int) -> list[Features]:
        """Return the nearby features of every target, by its id."""
        neighbor_events: dict[int, float] = defaultdict(float)
        next_after_latest: dict[int, float] = defaultdict(float)
        next_after_earlier: dict[int, float] = defaultdict(float)
        latest = [event.neighbor for event in self.interactions(source)[-NEARBY_SOURCE_EVENTS:]]
        for rank, neighbor in enumerate(latest_first(latest)[:NEARBY_NEIGHBORS], start=1):
            for event in self.interactions(neighbor)[-NEARBY_EVENTS:]:
                if event.neighbor == source:
                    continue
                for node in self.candidates_of(event, neighbor):
                    neighbor_events[node] += 1 / rank
                for node in self.next_neighbor(event, neighbor):
                    if rank == 1:
                        next_after_latest[node] += 1
                    else:
                        next_after_earlier[node] += 1 / rank
        walk = self.walk_probabilities(source)
        uniform = 1 / self.num_targets
        return [
            {
                "neighbor_events": log1p(neighbor_events[node]),
                "next_after_latest": log1p(next_after_latest[node]),
                "next_after_earlier": log1p(next_after_earlier[node]),
                "walk": log1p(walk.get(node, 0.0) / (uniform / 10)),
            }
            for node in range(self.first_target, self.first_target + self.num_targets)
        ]

    def candidates_of(self, event: Interaction, neighbor: int) -> list[int]:
        """Return the node that interacted with `neighbor`, or earlier targets of it if a source."""
        if event.neighbor >= self.first_target:
            return [event.neighbor]
        earlier = [
            other for other in self.interactions(event.neighbor) if other.event < event.event
        ]
        latest = earlier[-NEARBY_EARLIER_EVENTS:]
        return [other.neighbor for other in latest if other.neighbor != neighbor]

    def next_neighbor(self, event: Interaction, neighbor: int) -> list[int]:
        """Return whom the node that interacted with `neighbor` interacted with next, if anyone."""
        if event.neighbor == neighbor:
            return []
        later = [other for other in self.interactions(event.neighbor) if other.event > event.event]
        return [other.neighbor for other in later[:1] if other.neighbor != neighbor]

    def walk_probabilities(self, source: int) -> dict[int, float]:
        """Return where a random walk of three steps ends, with probabilities."""
        probabilities = {source: 1.0}
        for num_choices in WALK_CHOICES:
            after: dict[int, float] = defaultdict(float)
            for node, probability in probabilities.items():
                neighbors = [event.neighbor for event in self.first_interactions(node)]
                choices = neighbors[-num_choices:]
                for choice in choices:
                    after[choice] += probability / len(choices)
            probabilities = after
        return probabilities


def latest_first(nodes: Sequence[int]) -> list[int]:
    """Return the distinct nodes in the order of their last position, from the end."""
    return list(dict.fromkeys(reversed(nodes)))


def num_within(length: float, times: Sequence[float], now: float) -> float:
    """Return log(1 + number of times less than the length of a window ago)."""
    return log1p(sum(now - time < length for time in times))


def log_rank(node: int, latest: Sequence[int]) -> float:
    """Return log(1 + number of nodes that precede this one, or of all if it is missing)."""
    return log1p(latest.index(node) if node in latest else len(latest))
