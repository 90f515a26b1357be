"""The pair features: what the log says about the source and each of its latest neighbors."""

from typing import Any

from tclgraph.arrays import IntArray
from tclgraph.compilation import BORROWING, INLINED, kernel
from tclgraph.features.columns import (
    MAX_LATEST_EVENTS,
    NUM_AFTER_FEATURES,
    NUM_WINDOWS,
    PairColumn,
)
from tclgraph.features.latest_kernels import num_pair_events
from tclgraph.features.log_arrays import Events, Hop, PairLink, PairTime, Total


@kernel(**INLINED)
def write_pair(
    instance: int, rank: int, first: int, last: int, now: float, events: Events, features: Any
) -> None:
    """Write the features of a pair, given the source's latest instance with the neighbor.

    They are written before the logarithm. The pair has this rank among the source's pairs, 0 for
    the latest, and `first` is its first event that counts. `last` is the source's last instance.
    The features that depend on the latest pair are not written.
    """
    event = instance >> 1
    is_forward = (instance & 1) == 0
    pairs, times = events.pairs, events.pair_times
    link, time = pairs[event], times[event, PairTime.EVENT]
    same, opposite = link[PairLink.NUM_SAME], link[PairLink.NUM_OPPOSITE]
    first_time, last_opposite = times[event, PairTime.FIRST], link[PairLink.LAST_OPPOSITE]
    if first > link[PairLink.FIRST]:
        start, first_time = pairs[first], times[first, PairTime.EVENT]
        is_turned = start[PairLink.SOURCE] != link[PairLink.SOURCE]
        same -= start[PairLink.NUM_OPPOSITE] if is_turned else start[PairLink.NUM_SAME] - 1
        opposite -= start[PairLink.NUM_SAME] - 1 if is_turned else start[PairLink.NUM_OPPOSITE]
        if last_opposite < first:
            last_opposite = -1
    age, has_opposite = (now - time) * events.inverse_unit, last_opposite >= 0
    opposite_age = 0.0
    if has_opposite:
        opposite_age = (now - times[last_opposite, PairTime.EVENT]) * events.inverse_unit
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
    _write_windows(event, first, same + opposite, now, events, features)
    has_gap = same + opposite > 1
    features[PairColumn.HAS_GAP] = has_gap
    features[PairColumn.MEAN_GAP] = 0.0
    if has_gap:
        mean_gap = (time - first_time) / (same + opposite - 1)
        features[PairColumn.MEAN_GAP] = mean_gap * events.inverse_unit
    number = link[PairLink.EVENTS_OF_SOURCE if is_forward else PairLink.EVENTS_OF_TARGET]
    features[PairColumn.EVENTS_SINCE] = events.totals[last, Total.EVENTS] - number


@kernel(**INLINED)
def _write_windows(
    event: int, first: int, num_counted: int, now: float, events: Events, features: Any
) -> None:
    """Write the number of the pair's events in each time window, from its first to its latest."""
    pairs, times = events.pairs, events.pair_times
    number = num_pair_events(event, events)
    earlier = event  # the latest event before the window
    for window in range(NUM_WINDOWS):
        length = events.windows[window]
        while earlier >= first and now - times[earlier, PairTime.EVENT] < length:
            jump = pairs[earlier, PairLink.JUMP]
            is_far = jump == earlier or jump < first
            is_far = is_far or now - times[jump, PairTime.EVENT] >= length
            earlier = pairs[earlier, PairLink.PREVIOUS] if is_far else jump
        in_window = number - num_pair_events(earlier, events) if earlier >= first else num_counted
        features[PairColumn.IN_SHORT + window] = in_window


@kernel(**BORROWING)
def count_after_latest(
    source: int, last: int, row_of: IntArray, events: Events, counts: Any
) -> int:
    """Count for each pair how often it came next after an event with the latest neighbor.

    `last` is the source's last instance, and `row_of` has the row of `counts` of every target, -1
    if it has none. The columns of `counts` are the features from NEXT_AFTER_LATEST on. Only
    MAX_LATEST_EVENTS events count. Return their number.
    """
    num_visits = 0
    hops = events.hops
    oldest = events.totals[last, Total.OLDEST] >> 1
    event = events.pairs[last >> 1, PairLink.PREVIOUS]
    while event >= oldest and num_visits < MAX_LATEST_EVENTS:
        instance = 2 * event if events.pairs[event, PairLink.SOURCE] == source else 2 * event + 1
        row = row_of[hops[instance, Hop.NEXT_NEIGHBOR] - events.first_target]
        num_visits += 1
        if row >= 0:
            count = counts[row]
            count[0] += 1.0
            count[1] += 1.0 / num_visits
            # Go back from the event and from the last one, as long as the neighbors are the same.
            before, latest, column = instance, last, 2
            while column < NUM_AFTER_FEATURES:
                before, latest = hops[before, Hop.PREVIOUS], hops[latest, Hop.PREVIOUS]
                if before < 0 or (before >> 1) < oldest:
                    break
                if hops[before, Hop.NEIGHBOR] != hops[latest, Hop.NEIGHBOR]:
                    break
                count[column] += 1.0
                column += 1
        event = events.pairs[event, PairLink.PREVIOUS]
    return num_visits
