"""The facts of history as their documentation has them: one node at a time, slow, sharing no code.

Where the words leave it open: a self-loop is one event of its node, in which it acts and whose
partner it is itself; as a candidate, such a node was acted upon as well. The last hour is less than
3600 seconds ago. Shares are of 1, 4, 16 and 64 events even where there were fewer, and partners to
an event are of one event more than there were.

Only the nearby facts look beyond the source's own events, and only so far: the source's latest
partners, some latest events of each, and one step on or a few steps back from those. The source's
own meetings with a partner tell nothing new, nor does a way that leads back to that partner. A walk
may go back and forth; nobody is their own acquaintance.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from math import log, log1p
from typing import NamedTuple

HOUR, DAY, WEEK = 3_600.0, 86_400.0, 604_800.0

# How far it looks back: a bound on the product's work, and so a part of what the facts are.
REMEMBERED = 2_000
NEAR_SOURCE_EVENTS = 100
NEAR_PARTNERS = 20
NEAR_EVENTS = 20
NEAR_STEPS = 5
WALK_CHOICES = 64


class Meeting(NamedTuple):
    """An event as one of its parties has it."""

    event: int
    time: float
    partner: int
    acted: bool


class Nearby(NamedTuple):
    """HistoryFeatures 15 to 18 of every node that has any, before the logarithm."""

    met: dict[int, float]
    after_last: dict[int, float]
    after_earlier: dict[int, float]
    walked_to: dict[int, float]


class Known:
    """Events (source, target, time) before a query; targets are candidates by their ids.

    In a one-mode graph the first target is node 0, in a bipartite one the node after all sources.
    """

    def __init__(
        self, events: Sequence[tuple[int, int, float]], first_target: int, num_targets: int
    ) -> None:
        self.first_target = first_target
        self.num_targets = num_targets
        self._meetings: dict[int, list[Meeting]] = {}
        self._acted: dict[int, list[float]] = {}
        self._acted_upon: dict[int, list[float]] = {}
        upon: list[int] = []
        active: list[int] = []
        for event, (source, target_id, time) in enumerate(events):
            target = first_target + target_id
            self._acted.setdefault(source, []).append(time)
            self._acted_upon.setdefault(target, []).append(time)
            upon.append(target)
            active += [source, target] if first_target == 0 else [target]
            self._meetings.setdefault(source, []).append(Meeting(event, time, target, True))
            if target != source:
                self._meetings.setdefault(target, []).append(Meeting(event, time, source, False))

        self._upon_order = latest_first(upon)
        self._active_order = latest_first(active)

    def meetings(self, node: int) -> list[Meeting]:
        """All of a node, oldest first."""
        return self._meetings.get(node, [])

    def remembered(self, source: int) -> list[Meeting]:
        return self.meetings(source)[-REMEMBERED:]

    def last_instance(self, node: int) -> int:
        """Twice its last event, and one more if it was acted upon in that; -1 without one."""
        if not self.meetings(node):
            return -1
        last = self.meetings(node)[-1]
        return 2 * last.event + (not last.acted)

    def partners(self, source: int) -> list[int]:
        """Latest first."""
        return latest_first([one.partner for one in self.remembered(source)])

    # Source facts

    def source_facts(self, source: int, now: float) -> list[float]:
        own = self.remembered(source)
        acted = [one.time for one in own if one.acted]
        acted_upon = [one.time for one in own if not one.acted]
        partners = [one.partner for one in own]
        is_first_meeting = [
            partner not in partners[:place] for place, partner in enumerate(partners)
        ]
        return [
            *since_last([one.time for one in own], now),
            float(bool(own) and not own[-1].acted),
            *since_last(acted, now),
            *in_windows(acted, now),
            *in_windows(acted_upon, now),
            log1p(len(own)),
            *(sum(is_first_meeting[-number:]) / number for number in (1, 4, 16, 64)),
            len(set(partners)) / (len(own) + 1),
            log1p(len(set(partners))),
        ]

    # Pair facts

    def pair_facts(self, source: int, partner: int, now: float) -> list[float]:
        own = self.remembered(source)
        shared = [one for one in own if one.partner == partner]
        acted = [one.time for one in shared if one.acted]
        acted_upon = [one.time for one in shared if not one.acted]
        place = 1 + self.partners(source).index(partner)
        run = 0
        while run < len(shared) and shared[-1 - run].acted == shared[-1].acted:
            run += 1
        several = len(shared) > 1
        between = (shared[-1].time - shared[0].time) / (len(shared) - 1) if several else 0.0
        since = [one for one in own if one.event > shared[-1].event]
        went_to = [
            after.partner for before, after in pairwise(own) if before.partner == own[-1].partner
        ]
        return [
            log1p(now - shared[-1].time),
            *since_last(acted, now),
            *since_last(acted_upon, now),
            log1p(len(acted)),
            log1p(len(acted_upon)),
            log(place),
            float(not shared[-1].acted),
            log1p(run),
            *in_windows([one.time for one in shared], now),
            log1p(between),
            float(several),
            log1p(len(since)),
            log1p(went_to.count(partner)),
            log1p(len(went_to)),
        ]

    # Candidate facts

    def candidate_facts(self, target: int, nearby: Nearby, now: float) -> list[float]:
        """Of a candidate by its id; `nearby` is the source's."""
        node = self.first_target + target
        acted_upon = self._acted_upon.get(node, [])
        # Those who act in a bipartite graph are no candidates.
        acted = self._acted.get(node, [])
        return [
            *since_last(acted_upon, now),
            *since_last(acted, now),
            log1p(len(acted_upon)),
            *in_windows(acted_upon, now),
            *in_windows(acted, now),
            *(
                log1p(order.index(node) if node in order else len(order))
                for order in (self._upon_order, self._active_order)
            ),
            log1p(len(self.acquaintances(node))),
            log1p(sum(not one.acted for one in self.first_meetings(node))),
            *(log1p(counted.get(node, 0.0)) for counted in nearby),
        ]

    def first_meetings(self, node: int) -> list[Meeting]:
        """Oldest first."""
        found: dict[int, Meeting] = {}
        for meeting in self.meetings(node):
            if meeting.partner != node:
                found.setdefault(meeting.partner, meeting)
        return list(found.values())

    def acquaintances(self, node: int) -> list[int]:
        """Whoever it has met, in the order of first meetings."""
        return [one.partner for one in self.first_meetings(node)]

    def walked_to(self, source: int) -> dict[int, float]:
        """Where a walk of three steps may end, in tenths of what chance would have."""
        chances = {source: 1.0}
        for _ in range(3):
            after: dict[int, float] = defaultdict(float)
            for node, chance in chances.items():
                choices = self.acquaintances(node)[-WALK_CHOICES:]
                for choice in choices:
                    after[choice] += chance / len(choices)
            chances = after
        by_chance = 1 / self.num_targets
        return {node: chance / (by_chance / 10) for node, chance in chances.items()}

    def nearby(self, source: int) -> Nearby:
        walked_to = self.walked_to(source)
        found = Nearby(defaultdict(float), defaultdict(float), defaultdict(float), walked_to)
        latest = [one.partner for one in self.meetings(source)[-NEAR_SOURCE_EVENTS:]]
        for place, partner in enumerate(latest_first(latest)[:NEAR_PARTNERS], start=1):
            for meeting in self.meetings(partner)[-NEAR_EVENTS:]:
                if meeting.partner == source:
                    continue
                for node in self.met_by(meeting, partner):
                    found.met[node] += 1 / place
                for node in self.turned_to(meeting, partner):
                    if place == 1:
                        found.after_last[node] += 1
                    else:
                        found.after_earlier[node] += 1 / place
        return found

    def met_by(self, meeting: Meeting, partner: int) -> list[int]:
        """Whom the partner met here, if a candidate; else whom that one had met before."""
        if meeting.partner >= self.first_target:
            return [meeting.partner]
        earlier = [one for one in self.meetings(meeting.partner) if one.event < meeting.event]
        return [one.partner for one in earlier[-NEAR_STEPS:] if one.partner != partner]

    def turned_to(self, meeting: Meeting, partner: int) -> list[int]:
        """Whom the one who met the partner met next, which is one or none."""
        if meeting.partner == partner:
            return []
        later = [one for one in self.meetings(meeting.partner) if one.event > meeting.event]
        return [one.partner for one in later[:1] if one.partner != partner]


def latest_first(nodes: Sequence[int]) -> list[int]:
    """Each once, by where it stands last."""
    return list(dict.fromkeys(reversed(nodes)))


def since_last(times: Sequence[float], now: float) -> list[float]:
    """Time since; whether ever."""
    return [log1p(now - times[-1]), 1.0] if times else [0.0, 0.0]


def in_windows(times: Sequence[float], now: float) -> list[float]:
    return [log1p(sum(now - time < window for time in times)) for window in (HOUR, DAY, WEEK)]
