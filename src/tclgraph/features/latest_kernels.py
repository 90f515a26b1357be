"""The latest neighbors of a node at any point of the log."""

from typing import Any

import numpy as np

from tclgraph.arrays import IntArray
from tclgraph.compilation import kernel
from tclgraph.features.columns import MAX_PAIRS
from tclgraph.features.log_arrays import Events, Hop, PairLink, Total

SAMPLED_PAIRS = 64
"""Number of pairs of a query that stand for all of them in training."""
NEAR_PAIRS = 32
"""Number of latest pairs that are among them in any case."""


@kernel
def list_latest(instance: int, num_known: int, events: Events, latest: IntArray) -> int:
    """List a node's latest neighbors, given its last instance among the first `num_known` events.

    Write the latest instance with each neighbor to `latest`, the latest first, and return their
    number, at most MAX_PAIRS.

    An event with a neighbor is the latest one if the next event of the two is not known yet. Going
    back through all events could take long, so the search ends at the first event with a list: of
    the neighbors in that list, those that came again have been visited on the way.
    """
    hops, pairs, lists = events.hops, events.pairs, events.lists
    count = 0
    while instance >= 0 and count < MAX_PAIRS:
        start = events.totals[instance, Total.LIST]
        if start >= 0:
            for index in range(start + 1, start + 1 + lists[start]):
                following = pairs[lists[index] >> 1, PairLink.NEXT]
                if (following < 0 or following >= num_known) and count < MAX_PAIRS:
                    latest[count] = lists[index]
                    count += 1
            break
        following = pairs[instance >> 1, PairLink.NEXT]
        if following < 0 or following >= num_known:
            latest[count] = instance
            count += 1
        instance = hops[instance, Hop.PREVIOUS]
    return count


@kernel
def sample_rows(
    latest: IntArray,
    true_row: int,
    offset: float,
    events: Events,
    chance: Any,
    rows: IntArray,
    log_weight: Any,
) -> int:
    """Choose about SAMPLED_PAIRS of a source's pairs, listed in `latest`, to stand for all of them.

    The NEAR_PAIRS latest are always chosen, and so is the row of the true pair, if there is one.
    The chance of another row grows with its number of events and falls with its rank, as the chance
    that it comes next does; a row that is chosen with chance p stands for 1/p rows. Rows are chosen
    at even steps of the sum of chances, beginning at `offset`, between 0 and 1. Write the rows and
    the logarithms of their weights, and return their number, at most SAMPLED_PAIRS + 2. `chance`
    is memory for as many numbers as there are rows.
    """
    count = len(latest)
    num_near = count if count <= SAMPLED_PAIRS else NEAR_PAIRS
    for row in range(num_near):
        rows[row] = row
        log_weight[row] = 0.0
    total = 0.0
    for row in range(num_near, count):
        chance[row] = num_pair_events(latest[row] >> 1, events) / (row + 1)
        total += chance[row]
    chosen = num_near
    step = offset
    for row in range(num_near, count):
        chance_of_row = min(chance[row] * (SAMPLED_PAIRS - NEAR_PAIRS) / total, 1.0)
        step += chance_of_row
        if step >= 1.0 or row == true_row:
            rows[chosen] = row
            log_weight[chosen] = 0.0 if row == true_row else -np.log(chance_of_row)
            chosen += 1
        if step >= 1.0:
            step -= 1.0
    return chosen


@kernel
def num_pair_events(event: int, events: Events) -> int:
    """Return the number of events of the same two nodes, up to and including the event."""
    link = events.pairs[event]
    number: int = link[PairLink.NUM_SAME] + link[PairLink.NUM_OPPOSITE]
    return number
