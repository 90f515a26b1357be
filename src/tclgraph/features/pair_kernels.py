"""The pair features: what the log says about the source and each of its latest neighbors."""

from typing import Any

from tclgraph.arrays import IntArray
from tclgraph.compilation import kernel
from tclgraph.features.columns import MAX_VISITS, WINDOWS, PairColumn
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
    link, time = events.pairs[event], events.time
    last_opposite = link[PairLink.LAST_OPPOSITE]
    age = now - time[event]
    has_opposite = last_opposite >= 0
    opposite_age = now - time[last_opposite] if has_opposite else 0.0
    same, opposite = link[PairLink.NUM_SAME], link[PairLink.NUM_OPPOSITE]
    features[PairColumn.AGE] = age
    features[PairColumn.FORWARD_AGE] = age if is_forward else opposite_age
    features[PairColumn.HAS_FORWARD] = is_forward or has_opposite
    features[PairColumn.BACKWARD_AGE] = opposite_age if is_forward else age
    features[PairColumn.HAS_BACKWARD] = not is_forward or has_opposite
    features[PairColumn.NUM_FORWARD] = same if is_forward else opposite
    features[PairColumn.NUM_BACKWARD] = opposite if is_forward else same
    features[PairColumn.RECENCY_RANK] = rank
    features[PairColumn.LAST_IS_BACKWARD] = not is_forward
    features[PairColumn.RUN_LENGTH] = link[PairLink.RUN_LENGTH]
    _write_windows(event, now, events, features)
    has_gap = same + opposite > 1
    features[PairColumn.HAS_GAP] = has_gap
    features[PairColumn.MEAN_GAP] = 0.0
    if has_gap:
        span = time[event] - time[link[PairLink.FIRST]]
        features[PairColumn.MEAN_GAP] = span / (same + opposite - 1)
    features[PairColumn.EVENTS_SINCE] = num_events - events.totals[instance, Total.EVENTS]


@kernel
def _write_windows(event: int, now: float, events: Events, features: Any) -> None:
    """Write the number of the pair's events in each time window, given the latest event."""
    pairs, time = events.pairs, events.time
    number = num_pair_events(event, events)
    earlier = event  # the latest event before the window
    for window in range(len(WINDOWS)):
        while earlier >= 0 and now - time[earlier] < WINDOWS[window]:
            jump = pairs[earlier, PairLink.JUMP]
            is_far = jump == earlier or now - time[jump] >= WINDOWS[window]
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
    event = events.pairs[latest >> 1, PairLink.PREVIOUS]
    while event >= 0 and num_visits < MAX_VISITS:
        instance = 2 * event if events.node[2 * event] == source else 2 * event + 1
        row = row_of[events.hops[instance, Hop.NEXT_NEIGHBOR] - events.first_target]
        if row >= 0:
            counts[row] += 1.0
        num_visits += 1
        event = events.pairs[event, PairLink.PREVIOUS]
    return num_visits
