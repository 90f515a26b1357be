"""The latest neighbors of a node at any point of the log."""

from typing import Any

import numpy as np

from tclgraph.arrays import IntArray
from tclgraph.compilation import BORROWING, INLINED, kernel
from tclgraph.features.columns import MAX_PAIRS
from tclgraph.features.log_arrays import EVENTS_PER_LIST, Events, Hop, Latest, PairLink, Total

SAMPLED_PAIRS = 64
"""Number of pairs of a query that stand for all of them in training."""
LATEST_PAIRS = 32
"""Number of latest pairs that are among them in any case."""


@kernel(**BORROWING)
def list_latest(instance: int, events: Events, row_of: IntArray, latest: IntArray) -> int:
    """List a node's latest neighbors, given its last instance.

    Write them to the rows of `latest`, the latest first, and return their number. `row_of` must be
    -1 everywhere; afterwards it has the row of each neighbor, and the caller resets it. There are
    at most MAX_PAIRS neighbors, all of them among the node's latest MAX_EVENTS events.

    Going back through all events could take long, so the search ends at the first event with a
    list. A listed neighbor that also occurs in a later event already has a row.
    """
    if instance < 0:
        return 0
    hops, totals, lists = events.hops, events.totals, events.lists
    oldest = totals[instance, Total.OLDEST] >> 1
    count = 0
    num_steps = totals[instance, Total.EVENTS] % EVENTS_PER_LIST
    if num_steps == 0 and totals[instance, Total.LIST] < 0:  # its own list is yet to be written
        num_steps = EVENTS_PER_LIST
    for _ in range(num_steps):
        if (instance >> 1) < oldest:
            return count
        target = hops[instance, Hop.NEIGHBOR] - events.first_target
        if row_of[target] < 0:
            _add(instance, target, -1, count, row_of, latest)
            count += 1
        instance = hops[instance, Hop.PREVIOUS]
    start = totals[instance, Total.LIST] if instance >= 0 else -1
    if start < 0:
        return count
    for index in range(start + 1, start + 1 + lists[start, 0]):
        listed, target = lists[index, Latest.INSTANCE], lists[index, Latest.TARGET]
        first, row = lists[index, Latest.FIRST_COUNTED], row_of[target]
        if row >= 0:
            latest[row, Latest.FIRST_COUNTED] = first
        elif count < MAX_PAIRS and (listed >> 1) >= oldest:
            _add(listed, target, first, count, row_of, latest)
            count += 1
    return count


@kernel(**INLINED)
def _add(
    instance: int, target: int, first: int, row: int, row_of: IntArray, latest: IntArray
) -> None:
    """Write a row of a list of latest neighbors."""
    row_of[target] = row
    latest[row, Latest.INSTANCE] = instance
    latest[row, Latest.TARGET] = target
    latest[row, Latest.FIRST_COUNTED] = first


@kernel(**INLINED)
def first_counted(event: int, listed: int, oldest: int, events: Events) -> int:
    """Return the pair's first event among the source's counted events, which begin at `oldest`.

    `event` is the pair's latest event. `listed` is the result of an earlier call, from which the
    search continues, or -1.
    """
    pairs = events.pairs
    first = listed if listed >= 0 else pairs[event, PairLink.FIRST]
    if first >= oldest:
        return first
    if listed >= 0:
        while first < oldest:
            first = pairs[first, PairLink.NEXT]
        return first
    while pairs[event, PairLink.PREVIOUS] >= oldest:
        jump = pairs[event, PairLink.JUMP]
        event = jump if jump >= oldest else pairs[event, PairLink.PREVIOUS]
    return event


@kernel(**BORROWING)
def sample_rows(count: int, true_row: int, offset: float, rows: IntArray, log_weight: Any) -> int:
    """Choose at most SAMPLED_PAIRS + 1 of a source's pairs to stand for all of them.

    The LATEST_PAIRS latest are always chosen, and so is the row of the true pair, if there is one.
    Of the others an evenly spaced sample is chosen, whose place depends on `offset`, between 0 and
    1; its weights make it stand for all. Write the rows and the logarithms of their weights, and
    return their number.
    """
    num_latest = count if count <= SAMPLED_PAIRS else LATEST_PAIRS
    for row in range(num_latest):
        rows[row] = row
        log_weight[row] = 0.0
    if num_latest == count:
        return count
    num_older, num_sampled = count - num_latest, SAMPLED_PAIRS - num_latest
    chosen = num_latest
    for index in range(num_sampled):
        # The last row at most: an offset just below 1 may be rounded up.
        row = min(num_latest + int((index + offset) * num_older / num_sampled), count - 1)
        if row != true_row:
            rows[chosen] = row
            chosen += 1
    is_older = true_row >= num_latest
    log_weight[num_latest:chosen] = np.log((num_older - is_older) / (chosen - num_latest))
    if is_older:
        rows[chosen] = true_row
        log_weight[chosen] = 0.0
        chosen += 1
    return chosen


@kernel(**INLINED)
def num_pair_events(event: int, events: Events) -> int:
    """Return the number of events of the same two nodes, up to and including the event."""
    link = events.pairs[event]
    number: int = link[PairLink.NUM_SAME] + link[PairLink.NUM_OPPOSITE]
    return number
