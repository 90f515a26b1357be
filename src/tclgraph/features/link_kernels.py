"""The links that every new event adds to a log."""

from typing import Any

import numpy as np

from tclgraph.arrays import IntArray
from tclgraph.compilation import BORROWING, INLINED, kernel
from tclgraph.features.columns import MAX_EVENTS, MAX_PAIRS
from tclgraph.features.latest_kernels import first_counted, list_latest, num_pair_events
from tclgraph.features.log_arrays import (
    EVENTS_PER_LIST,
    NUM_EARLIER_TARGETS,
    Events,
    Hop,
    Latest,
    NodeLinks,
    PairLink,
    PairTime,
    Total,
)

_MIN_ROOM = 4


@kernel(**BORROWING)
def link_events(
    event: int,
    entry: IntArray,
    last_of_pair: IntArray,
    links: NodeLinks,
    sizes: IntArray,
    events: Events,
) -> int:
    """Write the links of all events from this one on, while there is room; return the next event.

    `entry` has the pair number of each of the log's last len(entry) events, and `last_of_pair` the
    last event of every pair. `sizes` are the lengths of `Events.lists` and `Events.neighbors` that
    are in use. All arrays but the first are read and updated.
    """
    node, last_instance = events.node, links.last_instance
    num_events = len(events.time)
    while event < num_events and _has_room(event, links, sizes, events):
        pair = entry[len(entry) - num_events + event]
        _link_pair(event, last_of_pair[pair], events)
        last_of_pair[pair] = event
        source, target = 2 * event, 2 * event + 1
        is_loop = node[source] == node[target]
        if len(events.earlier_targets):
            _list_earlier_targets(event, last_instance[node[source]], events)
        # Both sides of a self-loop follow the same event.
        for instance in (target, source):
            _link_node(instance, last_instance[node[instance]], events)
        for instance in (target, source):
            last_instance[node[instance]] = instance
            if instance == source or not is_loop:
                _count_neighbors(instance, events)
        events.pairs[event, PairLink.EVENTS_OF_SOURCE] = events.totals[source, Total.EVENTS]
        events.pairs[event, PairLink.EVENTS_OF_TARGET] = events.totals[target, Total.EVENTS]
        if is_new_pair(event, events):
            for instance in (source, target):
                _add_neighbor(node[instance], node[instance ^ 1], links, sizes, events)
        sizes[0] = _list_neighbors(source, sizes[0], links, events)
        # In a bipartite graph a target is never the source of a query.
        if events.first_target == 0 and not is_loop:
            sizes[0] = _list_neighbors(target, sizes[0], links, events)
        event += 1
    return event


@kernel(**INLINED)
def is_new_pair(event: int, events: Events) -> Any:
    """Return whether two different nodes interact for the first time."""
    is_first = events.pairs[event, PairLink.PREVIOUS] < 0
    return is_first and events.node[2 * event] != events.node[2 * event + 1]


@kernel(**BORROWING)
def _has_room(event: int, links: NodeLinks, sizes: IntArray, events: Events) -> Any:
    """Return whether the lists and neighbors that an event may add fit in the arrays."""
    source, target = events.node[2 * event], events.node[2 * event + 1]
    most = 2 * (links.room[source] + links.room[target] + 2 * _MIN_ROOM)
    has_lists = len(events.lists) - sizes[0] >= 2 * (MAX_PAIRS + 1)
    return has_lists and len(events.neighbors) - sizes[1] >= most


@kernel(**BORROWING)
def _add_neighbor(
    node: int, neighbor: int, links: NodeLinks, sizes: IntArray, events: Events
) -> None:
    """Append a neighbor to those of a node, which move to a larger place if need be."""
    number, start = links.num_neighbors[node], events.neighbor_start[node]
    if number == links.room[node]:
        links.room[node] = max(2 * number, _MIN_ROOM)
        events.neighbor_start[node] = sizes[1]
        for index in range(number):
            events.neighbors[sizes[1] + index] = events.neighbors[start + index]
        start = sizes[1]
        sizes[1] += links.room[node]
    events.neighbors[start + number] = neighbor
    links.num_neighbors[node] = number + 1


@kernel(**BORROWING)
def _list_neighbors(instance: int, num_listed: int, links: NodeLinks, events: Events) -> Any:
    """List the latest neighbors if it is time to; return the length of `Events.lists` in use."""
    if events.totals[instance, Total.EVENTS] % EVENTS_PER_LIST != 0:
        return num_listed
    latest = events.lists[num_listed + 1 :]
    length = list_latest(instance, events, links.row_of, latest)
    oldest = events.totals[instance, Total.OLDEST] >> 1
    for row in range(length):
        links.row_of[latest[row, Latest.TARGET]] = -1
        event, listed = latest[row, Latest.INSTANCE] >> 1, latest[row, Latest.FIRST_COUNTED]
        latest[row, Latest.FIRST_COUNTED] = first_counted(event, listed, oldest, events)
    events.lists[num_listed, 0] = length
    events.totals[instance, Total.LIST] = num_listed
    return num_listed + 1 + length


@kernel(**BORROWING)
def _link_pair(event: int, previous: int, events: Events) -> None:
    """Write the links of an event to earlier events of its two nodes."""
    pairs, times = events.pairs, events.pair_times
    link = pairs[event]
    link[PairLink.SOURCE] = events.node[2 * event]
    link[PairLink.TARGET] = events.node[2 * event + 1]
    times[event, PairTime.EVENT] = times[event, PairTime.FIRST] = events.time[event]
    link[PairLink.PREVIOUS] = previous
    link[PairLink.NEXT] = -1
    link[PairLink.FIRST] = event
    link[PairLink.LAST_OPPOSITE] = -1
    link[PairLink.NUM_SAME] = 1
    link[PairLink.NUM_OPPOSITE] = 0
    link[PairLink.RUN_LENGTH] = 1
    link[PairLink.JUMP] = event
    if previous < 0:
        return
    before = pairs[previous]
    before[PairLink.NEXT] = event
    link[PairLink.FIRST] = before[PairLink.FIRST]
    times[event, PairTime.FIRST] = times[previous, PairTime.FIRST]
    if before[PairLink.SOURCE] == link[PairLink.SOURCE]:
        link[PairLink.LAST_OPPOSITE] = before[PairLink.LAST_OPPOSITE]
        link[PairLink.NUM_SAME] = before[PairLink.NUM_SAME] + 1
        link[PairLink.NUM_OPPOSITE] = before[PairLink.NUM_OPPOSITE]
        link[PairLink.RUN_LENGTH] = before[PairLink.RUN_LENGTH] + 1
    else:
        link[PairLink.LAST_OPPOSITE] = previous
        link[PairLink.NUM_SAME] = before[PairLink.NUM_OPPOSITE] + 1
        link[PairLink.NUM_OPPOSITE] = before[PairLink.NUM_SAME]
    # Two jumps of equal length become one, so that jumps double in length (Myers' skew-binary
    # numbers): any earlier event is reached in about 2 · log2(distance) steps.
    jump = before[PairLink.JUMP]
    further = pairs[jump, PairLink.JUMP]
    number = num_pair_events(previous, events)
    middle = num_pair_events(jump, events)
    is_equal = number - middle == middle - num_pair_events(further, events)
    link[PairLink.JUMP] = further if is_equal else previous


@kernel(**BORROWING)
def _link_node(instance: int, previous: int, events: Events) -> None:
    """Write the links of an instance to the previous instance of its node."""
    hops, node = events.hops, events.node
    hops[instance, Hop.NEIGHBOR] = node[instance ^ 1]
    hops[instance, Hop.PREVIOUS] = previous
    hops[instance, Hop.NEXT] = -1
    hops[instance, Hop.NEXT_NEIGHBOR] = -1
    events.totals[instance, Total.EVENTS] = 1
    events.totals[instance, Total.NEIGHBORS] = 0
    events.totals[instance, Total.LIST] = -1
    events.totals[instance, Total.OLDEST] = instance
    events.is_new[instance] = np.uint64(0)
    if previous >= 0:
        events.totals[instance, Total.EVENTS] += events.totals[previous, Total.EVENTS]
        events.totals[instance, Total.OLDEST] = events.totals[previous, Total.OLDEST]
        # The source's instance of a self-loop is linked last, so it becomes the next one.
        hops[previous, Hop.NEXT] = instance
        hops[previous, Hop.NEXT_NEIGHBOR] = node[instance ^ 1]


@kernel(**BORROWING)
def _count_neighbors(instance: int, events: Events) -> None:
    """Count the neighbors in the node's latest MAX_EVENTS events, which begin at the oldest."""
    hops, pairs, totals = events.hops, events.pairs, events.totals
    event, previous = instance >> 1, hops[instance, Hop.PREVIOUS]
    number = totals[previous, Total.NEIGHBORS] if previous >= 0 else 0
    oldest = totals[instance, Total.OLDEST]
    if totals[instance, Total.EVENTS] - totals[oldest, Total.EVENTS] == MAX_EVENTS:
        following = pairs[oldest >> 1, PairLink.NEXT]
        number -= following < 0 or following == event
        oldest = hops[oldest, Hop.NEXT]
        totals[instance, Total.OLDEST] = oldest
    is_new = pairs[event, PairLink.PREVIOUS] < (oldest >> 1)
    totals[instance, Total.NEIGHBORS] = number + is_new
    before = events.is_new[previous] << np.uint64(1) if previous >= 0 else np.uint64(0)
    events.is_new[instance] = before | np.uint64(is_new)


@kernel(**BORROWING)
def _list_earlier_targets(event: int, previous: int, events: Events) -> None:
    """List the latest targets of the source, whose previous instance is given."""
    earlier = events.earlier_targets[event]
    earlier[:] = -1
    if previous >= 0:
        earlier[0] = events.node[previous ^ 1] - events.first_target
        for index in range(1, NUM_EARLIER_TARGETS):
            earlier[index] = events.earlier_targets[previous >> 1, index - 1]
