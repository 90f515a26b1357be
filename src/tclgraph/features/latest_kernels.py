"""The latest neighbors of a node at any point of the log."""

from typing import Any

import numpy as np

from tclgraph.arrays import IntArray
from tclgraph.compilation import kernel
from tclgraph.features.columns import MAX_EVENTS, MAX_PAIRS
from tclgraph.features.log_arrays import Events, Hop, PairLink, Total

SAMPLED_PAIRS = 64
"""Number of pairs of a query that stand for all of them in training."""
NEAR_PAIRS = 32
"""Number of latest pairs that are among them in any case."""


@kernel
def list_latest(instance: int, num_known: int, events: Events, latest: IntArray) -> int:
    """List a node's latest neighbors, given its last instance among the first `num_known` events.

    Write the latest instance with each neighbor to `latest`, the latest first, and return their
    number. There are at most MAX_PAIRS, all of them among the node's latest MAX_EVENTS events.

    An event with a neighbor is the latest one if the next event of the two is not known yet. Going
    back through all events could take long, so the search ends at the first event with a list: of
    the neighbors in that list, those that came again have been visited on the way.
    """
    hops, pairs, lists = events.hops, events.pairs, events.lists
    first_event = events.totals[instance, Total.EVENTS] - MAX_EVENTS if instance >= 0 else 0
    count = 0
    while instance >= 0 and count < MAX_PAIRS:
        if events.totals[instance, Total.EVENTS] <= first_event:
            break
        start = events.totals[instance, Total.LIST]
        if start >= 0:
            for index in range(start + 1, start + 1 + lists[start]):
                listed = lists[index]
                is_old = events.totals[listed, Total.EVENTS] <= first_event
                if is_old or count == MAX_PAIRS:
                    break
                following = pairs[listed >> 1, PairLink.NEXT]
                if following < 0 or following >= num_known:
                    latest[count] = listed
                    count += 1
            break
        following = pairs[instance >> 1, PairLink.NEXT]
        if following < 0 or following >= num_known:
            latest[count] = instance
            count += 1
        instance = hops[instance, Hop.PREVIOUS]
    return count


@kernel
def sample_rows(count: int, true_row: int, offset: float, rows: IntArray, log_weight: Any) -> int:
    """Choose at most SAMPLED_PAIRS + 1 of a source's pairs to stand for all of them.

    The NEAR_PAIRS latest are always chosen, and so is the row of the true pair, if there is one. Of
    the others an evenly spaced sample is chosen, whose place depends on `offset`, between 0 and 1;
    its weights make it stand for all. Write the rows and the logarithms of their weights, and
    return their number.
    """
    num_near = count if count <= SAMPLED_PAIRS else NEAR_PAIRS
    for row in range(num_near):
        rows[row] = row
        log_weight[row] = 0.0
    if num_near == count:
        return count
    num_far, num_sampled = count - num_near, SAMPLED_PAIRS - num_near
    chosen = num_near
    for index in range(num_sampled):
        row = num_near + int((index + offset) * num_far / num_sampled)
        if row != true_row:
            rows[chosen] = row
            chosen += 1
    is_far = true_row >= num_near
    log_weight[num_near:chosen] = np.log((num_far - is_far) / (chosen - num_near))
    if is_far:
        rows[chosen] = true_row
        log_weight[chosen] = 0.0
        chosen += 1
    return chosen


@kernel
def num_pair_events(event: int, events: Events) -> int:
    """Return the number of events of the same two nodes, up to and including the event."""
    link = events.pairs[event]
    number: int = link[PairLink.NUM_SAME] + link[PairLink.NUM_OPPOSITE]
    return number
