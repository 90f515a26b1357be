"""The pair features: what the log says about the source and each of its latest neighbors."""

from typing import Any

from tclgraph.arrays import IntArray
from tclgraph.compilation import kernel
from tclgraph.features.columns import MAX_EVENTS, WINDOWS, PairColumn
from tclgraph.features.latest_kernels import num_pair_events
from tclgraph.features.log_arrays import Events, Hop, PairLink, Total


@kernel
def write_pair(
    instance: int, rank: int, num_events: int, now: float, events: Events, features: Any
) -> None:
    """Write the features of a pair before the logarithm, given its latest instance of the source.

    The pair has this rank among the source's pairs, 0 for the latest, and the source has
    `num_events` events. The features that depend on the latest pair are not written.
    """
    event = instance >> 1
    is_forward = (instance & 1) == 0
    pairs, time = events.pairs, events.time
    link = pairs[event]
    same, opposite = link[PairLink.NUM_SAME], link[PairLink.NUM_OPPOSITE]
    first, last_opposite = link[PairLink.FIRST], link[PairLink.LAST_OPPOSITE]
    uncounted = _last_uncounted(instance, num_events - MAX_EVENTS, events)
    if uncounted >= 0:
        first = pairs[uncounted, PairLink.NEXT]
        is_turned = events.node[2 * uncounted] != events.node[2 * event]
        same -= pairs[uncounted, PairLink.NUM_OPPOSITE if is_turned else PairLink.NUM_SAME]
        opposite -= pairs[uncounted, PairLink.NUM_SAME if is_turned else PairLink.NUM_OPPOSITE]
        if last_opposite <= uncounted:
            last_opposite = -1
    age = now - time[event]
    has_opposite = last_opposite >= 0
    opposite_age = now - time[last_opposite] if has_opposite else 0.0
    features[PairColumn.AGE] = age
    features[PairColumn.FORWARD_AGE] = age if is_forward else opposite_age
    features[PairColumn.HAS_FORWARD] = is_forward or has_opposite
    features[PairColumn.BACKWARD_AGE] = opposite_age if is_forward else age
    features[PairColumn.HAS_BACKWARD] = not is_forward or has_opposite
    features[PairColumn.NUM_FORWARD] = same if is_forward else opposite
    features[PairColumn.NUM_BACKWARD] = opposite if is_forward else same
    features[PairColumn.RECENCY_RANK] = rank
    features[PairColumn.LAST_IS_BACKWARD] = not is_forward
    features[PairColumn.RUN_LENGTH] = min(link[PairLink.RUN_LENGTH], same)
    _write_windows(event, uncounted, now, events, features)
    has_gap = same + opposite > 1
    features[PairColumn.HAS_GAP] = has_gap
    features[PairColumn.MEAN_GAP] = 0.0
    if has_gap:
        features[PairColumn.MEAN_GAP] = (time[event] - time[first]) / (same + opposite - 1)
    features[PairColumn.EVENTS_SINCE] = num_events - events.totals[instance, Total.EVENTS]


@kernel
def _last_uncounted(instance: int, number: int, events: Events) -> int:
    """Return the pair's last event among the first `number` events of the source, or -1."""
    pairs, node = events.pairs, events.node
    earlier = instance >> 1
    if number <= 0:
        return -1
    while earlier >= 0 and _event_number(earlier, node[instance], events) > number:
        jump = pairs[earlier, PairLink.JUMP]
        is_far = jump == earlier or _event_number(jump, node[instance], events) <= number
        earlier = pairs[earlier, PairLink.PREVIOUS] if is_far else jump
    return earlier


@kernel
def _event_number(event: int, node: int, events: Events) -> int:
    """Return the position of an event among the events of one of its nodes, from 1 on."""
    instance = 2 * event if events.node[2 * event] == node else 2 * event + 1
    number: int = events.totals[instance, Total.EVENTS]
    return number


@kernel
def _write_windows(event: int, uncounted: int, now: float, events: Events, features: Any) -> None:
    """Write the number of the pair's events in each time window, given the latest event.

    Events up to `uncounted` do not count.
    """
    pairs, time = events.pairs, events.time
    number = num_pair_events(event, events)
    earlier = event  # the latest event before the window
    for window in range(len(WINDOWS)):
        while earlier > uncounted and now - time[earlier] < WINDOWS[window]:
            jump = pairs[earlier, PairLink.JUMP]
            is_far = jump == earlier or jump < uncounted or now - time[jump] >= WINDOWS[window]
            earlier = pairs[earlier, PairLink.PREVIOUS] if is_far else jump
        before = num_pair_events(earlier, events) if earlier >= 0 else 0
        features[PairColumn.IN_HOUR + window] = number - before


@kernel
def count_after_latest(
    source: int, latest: int, row_of: IntArray, events: Events, counts: Any
) -> int:
    """Count for each pair how often it came next after an event with the latest neighbor.

    `latest` is the source's last instance, and `row_of` has the row of `counts` of every target, -1
    if it has none. Return the number of events that were followed by another.
    """
    num_visits = 0
    first_number = events.totals[latest, Total.EVENTS] - MAX_EVENTS + 1
    event = events.pairs[latest >> 1, PairLink.PREVIOUS]
    while event >= 0:
        instance = 2 * event if events.node[2 * event] == source else 2 * event + 1
        if events.totals[instance, Total.EVENTS] < first_number:
            break
        row = row_of[events.hops[instance, Hop.NEXT_NEIGHBOR] - events.first_target]
        if row >= 0:
            counts[row] += 1.0
        num_visits += 1
        event = events.pairs[event, PairLink.PREVIOUS]
    return num_visits
