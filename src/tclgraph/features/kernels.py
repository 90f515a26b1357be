"""The compiled loops of this room. What each fact means is told in `facts`.

Everything is read off the dependency graph by walking from a node's latest instance to the one
before, so nothing later than a query can be met on the way; only `following` points forward, and
is compared with the number of events that are known.
"""

from typing import Any

import numpy as np
from numba import njit

from tclgraph.arrays import FloatArray, IntArray
from tclgraph.dependency_graph.graph import NOT_FIRST

# Widths of the four tables; their columns are named in `facts`.
NUM_SOURCE_FEATURES = 18
NUM_PAIR_FEATURES = 18
NUM_ACTIVITY_FEATURES = 15
NUM_NEARBY_FEATURES = 4
NUM_SPARSE_FEATURES = 3  # of these, the first ones, which are 0 nearly everywhere
NUM_CANDIDATE_FEATURES = NUM_ACTIVITY_FEATURES + NUM_NEARBY_FEATURES

WINDOWS = (3_600.0, 86_400.0, 604_800.0)
"""An hour, a day and a week, in seconds."""
RECENT_STEPS = (4, 16, 64)
"""Numbers of latest events of which the share of first meetings is told."""
REMEMBERED = 2_000
"""Latest events of a source that count. A bound on the work of a query, rarely reached."""
NEAR_PARTNERS = 20
NEAR_EVENTS = 20
NEAR_STEPS = 5
"""How far "nearby" goes: so many latest partners, events of each, and steps back from those."""
NEAR_REMEMBERED = 100
"""Latest events of the source among which those partners are looked for."""
WALK_CHOICES = 64
"""Latest acquaintances among which each step of a walk chooses."""
WALK_ROWS = 16_384
"""Nodes whose acquaintances are kept at hand while a block is described."""
WALK_SCALE = 10.0


@njit(cache=True, nogil=True)
def _before(instance: int, node: IntArray, previous: IntArray) -> Any:
    """The same node's instance before this one, or -1."""
    event = previous[instance]
    if event < 0:
        return -1
    return 2 * event if node[2 * event] == node[instance] else 2 * event + 1


@njit(cache=True, nogil=True)
def _count(
    node: IntArray, event: int, first_target: int, window: int, change: int, in_window: IntArray
) -> None:
    """Let an event into a window, or out of it."""
    in_window[window, node[2 * event + 1] - first_target] += change
    if first_target == 0:
        in_window[len(WINDOWS) + window, node[2 * event]] += change


@njit(cache=True, nogil=True)
def follow(
    node: IntArray,
    met_before: IntArray,
    first_event: int,
    end_event: int,
    first_target: int,
    last: IntArray,
    count: IntArray,
    last_upon: IntArray,
    last_acted: IntArray,
    last_met: IntArray,
    num_met: IntArray,
    num_came: IntArray,
    in_window: IntArray,
) -> None:
    """Let events count for those who took part in them."""
    for event in range(first_event, end_event):
        last[node[2 * event + 1]] = 2 * event + 1
        last[node[2 * event]] = 2 * event  # after the other, as a self-loop is its source's
        target = node[2 * event + 1] - first_target
        count[target] += 1
        last_upon[target] = event
        if first_target == 0:  # in a one-mode graph who acts is a candidate too
            last_acted[node[2 * event]] = event
        if met_before[2 * event] != NOT_FIRST:
            for instance in (2 * event, 2 * event + 1):
                last_met[node[instance]] = instance
                num_met[node[instance]] += 1
            num_came[target] += 1
        for window in range(len(WINDOWS)):
            _count(node, event, first_target, window, 1, in_window)


@njit(cache=True, nogil=True)
def slide(
    node: IntArray,
    time: FloatArray,
    num_known: int,
    now: float,
    first_target: int,
    in_window: IntArray,
    tail: IntArray,
) -> None:
    """Move the windows so that they end now; `tail` is the oldest event in each."""
    for window in range(len(WINDOWS)):
        while tail[window] < num_known and now - time[tail[window]] >= WINDOWS[window]:
            _count(node, tail[window], first_target, window, -1, in_window)
            tail[window] += 1
        while tail[window] > 0 and now - time[tail[window] - 1] < WINDOWS[window]:
            tail[window] -= 1
            _count(node, tail[window], first_target, window, 1, in_window)


@njit(cache=True, nogil=True)
def _places(last: IntArray) -> Any:
    """How many have a later last event than each; all who have none share the place after."""
    place = np.empty(len(last), np.int64)
    order = np.argsort(-last, kind="mergesort")
    num_seen = 0
    for at in range(len(order)):
        if last[order[at]] >= 0:
            num_seen += 1
        place[order[at]] = min(at, num_seen)
    return place


@njit(cache=True, nogil=True)
def _to_front(which: int, is_first: bool, place: IntArray) -> None:
    """Let one be the latest; with its first event there is one place more."""
    before = place[which]
    for other in range(len(place)):
        if place[other] < before or is_first:
            place[other] += 1
    place[which] = 0


@njit(cache=True, nogil=True)
def _write_activity(
    candidates: IntArray,
    now: float,
    time: FloatArray,
    count: IntArray,
    last_upon: IntArray,
    last_acted: IntArray,
    num_met: IntArray,
    num_came: IntArray,
    in_window: IntArray,
    upon_place: IntArray,
    active_place: IntArray,
    logs: Any,
    nearby: Any,
    facts: Any,
) -> None:
    """HistoryFeatures of candidates, one column each; `logs` has log(1 + n) of every number that occurs."""
    for column in range(len(candidates)):
        candidate = candidates[column]
        if count[candidate] > 0:
            facts[0, column] = np.log1p(now - time[last_upon[candidate]])
            facts[1, column] = 1.0
            facts[4, column] = logs[count[candidate]]
        if last_acted[candidate] >= 0:
            facts[2, column] = np.log1p(now - time[last_acted[candidate]])
            facts[3, column] = 1.0
        facts[11, column] = logs[upon_place[candidate]]
        facts[12, column] = logs[active_place[candidate]]
    # One fact at a time from here on, so that memory is written in order.
    for window in range(2 * len(WINDOWS)):
        for column in range(len(candidates)):
            facts[5 + window, column] = logs[in_window[window, candidates[column]]]
    for column in range(len(candidates)):
        facts[13, column] = logs[num_met[candidates[column]]]
    for column in range(len(candidates)):
        facts[14, column] = logs[num_came[candidates[column]]]
    for kind in range(NUM_NEARBY_FEATURES):
        for column in range(len(candidates)):
            facts[NUM_ACTIVITY_FEATURES + kind, column] = nearby[kind, candidates[column]]


@njit(cache=True, nogil=True)
def _walk_source(
    instance: int,
    now: float,
    node: IntArray,
    previous: IntArray,
    time: FloatArray,
    first_target: int,
    slot: IntArray,
    pair_target: IntArray,
    pair_facts: Any,
    oldest: IntArray,
    facts: Any,
) -> Any:
    """HistoryFeatures of a source and of each of its partners, newest first; returns how many these are.

    `slot` is -1 everywhere before and after.
    """
    end = 0
    step = 0
    newer, newest = -1, -1  # the partners after this event, and at the very end
    if instance >= 0:
        facts[0] = np.log1p(now - time[instance >> 1])
        facts[1] = 1.0
        facts[2] = instance & 1
    while instance >= 0 and step < REMEMBERED:
        partner = node[instance ^ 1] - first_target
        acted = (instance & 1) == 0
        elapsed = now - time[instance >> 1]
        if acted and facts[4] == 0:
            facts[3] = np.log1p(elapsed)
            facts[4] = 1.0
        at = slot[partner]
        if at < 0:
            at = end
            end += 1
            slot[partner] = at
            pair_target[at] = partner
            pair = pair_facts[at]
            pair[:] = 0.0
            pair[0] = np.log1p(elapsed)
            pair[7] = np.log(end)
            pair[8] = 0.0 if acted else 1.0
            pair[13] = elapsed  # of the newest meeting, until the walk is over
            pair[15] = np.log1p(step)
        pair = pair_facts[at]
        side = 1 if acted else 3
        if pair[side + 1] == 0:
            pair[side] = np.log1p(elapsed)
            pair[side + 1] = 1.0
        pair[5 if acted else 6] += 1.0
        # The run of meetings at the end in which the same one acted.
        if (pair[8] == 0.0) == acted and pair[6 if acted else 5] == 0.0:
            pair[9] += 1.0
        for window in range(len(WINDOWS)):
            if elapsed < WINDOWS[window]:
                pair[10 + window] += 1.0
                facts[5 + window if acted else 8 + window] += 1.0
        pair[14] = elapsed  # of the oldest meeting
        oldest[at] = step
        if newest < 0:
            newest = partner
        elif partner == newest:
            pair_facts[slot[newer], 16] += 1.0
        newer = partner
        instance = _before(instance, node, previous)
        step += 1

    followings = 0.0
    for at in range(end):
        followings += pair_facts[at, 16]
    for at in range(end):
        pair = pair_facts[at]
        meetings = pair[5] + pair[6]
        pair[13] = np.log1p((pair[14] - pair[13]) / (meetings - 1)) if meetings > 1 else 0.0
        pair[14] = 1.0 if meetings > 1 else 0.0
        pair[17] = np.log1p(followings)
        for which in (5, 6, 9, 10, 11, 12, 16):
            pair[which] = np.log1p(pair[which])
        if oldest[at] == 0:
            facts[12] = 1.0
        for which in range(len(RECENT_STEPS)):
            if oldest[at] < RECENT_STEPS[which]:
                facts[13 + which] += 1.0 / RECENT_STEPS[which]
        slot[pair_target[at]] = -1
    for which in range(5, 11):
        facts[which] = np.log1p(facts[which])
    facts[11] = np.log1p(step)
    facts[16] = end / (step + 1)
    facts[17] = np.log1p(end)
    return end


@njit(cache=True, nogil=True)
def _reach(found: int, nearby: Any, reached: IntArray, num_reached: int) -> Any:
    """Note a candidate the first time that it is found; returns how many there are."""
    if nearby[0, found] + nearby[1, found] + nearby[2, found] == 0.0:
        reached[num_reached] = found
        num_reached += 1
    return num_reached


@njit(cache=True, nogil=True)
def _look_around(
    source: int,
    query: int,
    num_known: int,
    node: IntArray,
    previous: IntArray,
    following: IntArray,
    last: IntArray,
    first_target: int,
    seen: IntArray,
    nearby: Any,
    reached: IntArray,
) -> Any:
    """Add up in `nearby` who can be reached from the source; returns how many are in `reached`."""
    num_reached = 0
    instance = last[source]
    num_partners = 0
    step = 0
    while instance >= 0 and num_partners < NEAR_PARTNERS and step < NEAR_REMEMBERED:
        partner = node[instance ^ 1]
        if seen[partner] != query:
            seen[partner] = query
            num_partners += 1
            weight = 1.0 / num_partners
            of_partner = last[partner]
            num_events = 0
            while of_partner >= 0 and num_events < NEAR_EVENTS:
                other = of_partner ^ 1
                if node[other] != source:
                    if node[other] >= first_target:
                        found = node[other] - first_target
                        num_reached = _reach(found, nearby, reached, num_reached)
                        nearby[0, found] += weight
                    else:
                        back = _before(other, node, previous)
                        num_steps = 0
                        while back >= 0 and num_steps < NEAR_STEPS:
                            if node[back ^ 1] != partner:
                                found = node[back ^ 1] - first_target
                                num_reached = _reach(found, nearby, reached, num_reached)
                                nearby[0, found] += weight
                            back = _before(back, node, previous)
                            num_steps += 1
                    then = following[other]
                    if then >= 0 and (then >> 1) < num_known and node[then ^ 1] != partner:
                        found = node[then ^ 1] - first_target
                        num_reached = _reach(found, nearby, reached, num_reached)
                        if num_partners == 1:
                            nearby[1, found] += 1.0
                        else:
                            nearby[2, found] += weight
                of_partner = _before(of_partner, node, previous)
                num_events += 1
        instance = _before(instance, node, previous)
        step += 1
    return num_reached


@njit(cache=True, nogil=True)
def _walk(
    source: int,
    node: IntArray,
    met_before: IntArray,
    last_met: IntArray,
    num_met: IntArray,
    choices: Any,
    row: IntArray,
    num_rows: int,
    chance: Any,
    reached: IntArray,
) -> Any:
    """Chances to be at each node after three steps, in `chance[1]`.

    Each step goes to one of a node's latest acquaintances, all equally likely. `chance` is 0
    everywhere before. Acquaintances are copied to `choices` as they are first asked for, so that
    the next walk finds them side by side; row 0 is nobody's, and `num_rows`, which is returned,
    are in use.
    """
    chance[0, source] = 1.0
    reached[0, 0] = source
    num_here = 1
    for step in range(3):
        here, there = step % 2, 1 - step % 2
        before, after = chance[here], chance[there]
        num_there = 0
        for which in range(num_here):
            at = reached[here, which]
            num_choices = min(num_met[at], WALK_CHOICES)
            if row[at] == 0:
                if num_rows == len(choices):
                    row[:] = 0
                    num_rows = 1
                row[at] = num_rows
                num_rows += 1
                instance = last_met[at]
                for choice in range(num_choices):
                    choices[row[at], choice] = node[instance ^ 1]
                    instance = met_before[instance]
            own = choices[row[at], :num_choices]
            share = before[at] / max(num_choices, 1)
            before[at] = 0.0
            if step == 2:  # the loop that takes the time
                for choice in range(num_choices):
                    after[own[choice]] += share
                continue
            for choice in range(num_choices):
                if after[own[choice]] == 0.0:
                    reached[there, num_there] = own[choice]
                    num_there += 1
                after[own[choice]] += share
        num_here = num_there
    return num_rows


@njit(cache=True, nogil=True)
def describe(
    node: IntArray,
    previous: IntArray,
    following: IntArray,
    met_before: IntArray,
    time: FloatArray,
    first_target: int,
    num_known: int,
    source: IntArray,
    now: FloatArray,
    reveals: bool,
    columns: IntArray,
    last: IntArray,
    count: IntArray,
    last_upon: IntArray,
    last_acted: IntArray,
    last_met: IntArray,
    num_met: IntArray,
    num_came: IntArray,
    in_window: IntArray,
    tail: IntArray,
) -> Any:
    """All facts of a block of queries, the first with `num_known` events before it.

    With `reveals`, event `num_known + j` happens between query j and the next. The arrays from
    `last` on are the state, which is changed.
    """
    num_queries, num_targets = len(source), len(count)
    source_facts = np.zeros((num_queries, NUM_SOURCE_FEATURES), np.float32)
    facts = np.zeros((num_queries, NUM_CANDIDATE_FEATURES, len(columns)), np.float32)
    instance = np.empty((num_queries, len(columns)), np.int64)
    source_instance = np.empty(num_queries, np.int64)
    pair_start = np.zeros(num_queries + 1, np.int64)
    pair_target = np.empty(64 * num_queries, np.int64)
    # Wide numbers while counting: elapsed seconds pass through these cells.
    pair_facts = np.empty((min(REMEMBERED, num_targets), NUM_PAIR_FEATURES))
    partners = np.empty(min(REMEMBERED, num_targets), np.int64)
    all_pairs = np.empty((64 * num_queries, NUM_PAIR_FEATURES), np.float32)
    candidate_facts = np.zeros((64 * num_queries, NUM_CANDIDATE_FEATURES), np.float32)

    upon_place = _places(last_upon)
    active_place = _places(last[first_target:])
    most = max(count.max(), in_window.max(), num_met.max(), num_targets) + num_queries
    logs = np.log1p(np.arange(most + 1)).astype(np.float32)
    slot = np.full(num_targets, -1, np.int64)
    oldest = np.empty(num_targets, np.int64)
    seen = np.full(len(last), -1, np.int64)
    nearby = np.zeros((NUM_NEARBY_FEATURES, num_targets))
    reached = np.empty(num_targets, np.int64)
    chance = np.zeros((2, len(last)))
    walked = np.empty((2, len(last)), np.int64)
    choices = np.empty((min(len(last), WALK_ROWS) + 1, WALK_CHOICES), np.int64)
    row = np.zeros(len(last), np.int64)
    num_rows = 1
    for query in range(num_queries):
        known = num_known + query if reveals else num_known
        at = now[query]
        slide(node, time, known, at, first_target, in_window, tail)
        source_instance[query] = last[source[query]]
        num_partners = _walk_source(
            last[source[query]], at, node, previous, time, first_target,
            slot, partners, pair_facts, oldest, source_facts[query],
        )  # fmt: skip
        num_reached = _look_around(
            source[query], query, known, node, previous, following, last, first_target,
            seen, nearby, reached,
        )  # fmt: skip
        for which in range(num_reached):
            for kind in range(NUM_SPARSE_FEATURES):
                nearby[kind, reached[which]] = np.log1p(nearby[kind, reached[which]])
        num_rows = _walk(
            source[query], node, met_before, last_met, num_met,
            choices, row, num_rows, chance, walked,
        )  # fmt: skip
        for target in range(num_targets):
            nearby[3, target] = np.log1p(
                WALK_SCALE * num_targets * chance[1, first_target + target]
            )
        chance[1] = 0.0

        start = pair_start[query]
        end = start + num_partners
        pair_start[query + 1] = end
        if end > len(pair_target):
            room = 2 * end
            pair_target = _grown(pair_target, start, room)
            all_pairs = _grown_table(all_pairs, start, room)
            candidate_facts = _grown_table(candidate_facts, start, room)
        for which in range(num_partners):
            pair_target[start + which] = partners[which]
            all_pairs[start + which] = pair_facts[which]
        _write_activity(
            partners[:num_partners], at, time, count, last_upon, last_acted,
            num_met[first_target:], num_came, in_window, upon_place, active_place,
            logs, nearby, candidate_facts[start:end].T,
        )  # fmt: skip
        _write_activity(
            columns, at, time, count, last_upon, last_acted,
            num_met[first_target:], num_came, in_window, upon_place, active_place,
            logs, nearby, facts[query],
        )  # fmt: skip
        for column in range(len(columns)):
            instance[query, column] = last[first_target + columns[column]]
        for which in range(num_reached):
            nearby[:NUM_SPARSE_FEATURES, reached[which]] = 0.0

        if reveals:
            target = node[2 * known + 1] - first_target
            row[node[2 * known]] = 0  # who may have met somebody new chooses anew
            row[node[2 * known + 1]] = 0
            _to_front(target, last_upon[target] < 0, upon_place)
            if first_target == 0 and node[2 * known] != target:
                actor = node[2 * known]
                _to_front(actor, last[actor] < 0, active_place)
            _to_front(target, last[first_target + target] < 0, active_place)
            follow(
                node, met_before, known, known + 1, first_target,
                last, count, last_upon, last_acted, last_met, num_met, num_came, in_window,
            )  # fmt: skip
    end = pair_start[num_queries]
    return (
        source_facts,
        pair_start,
        pair_target[:end].copy(),
        all_pairs[:end].copy(),
        candidate_facts[:end].copy(),
        facts,
        source_instance,
        instance,
    )


@njit(cache=True, nogil=True)
def _grown(array: Any, used: int, room: int) -> Any:
    larger = np.empty(room, array.dtype)
    larger[:used] = array[:used]
    return larger


@njit(cache=True, nogil=True)
def _grown_table(array: Any, used: int, room: int) -> Any:
    larger = np.zeros((room, array.shape[1]), array.dtype)
    larger[:used] = array[:used]
    return larger
