"""The arrays of a log and of its nodes that the kernels of this package read and write.

What an event adds to the arrays of a log describes the log up to that event and stays valid, so it
serves queries at any later point, and drawing a window late in a log costs as much as early. Only
links to the next event are set later, so a query must not follow one past the events that it knows.
The arrays of nodes describe one point of the log and move along with it (see `state`).

An instance is one side of an event, as in the dependency graph: instance 2e is the source of event
e and 2e + 1 its target. A self-loop counts as an event of its source, so its target's instance is
not an instance of its own. An event, an instance or a node that does not exist is -1.

Shapes: E events, N nodes, T targets. Numbers that are used together are columns of one table, so
that a kernel finds them in adjacent memory.
"""

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from tclgraph.arrays import FloatArray, IntArray
from tclgraph.features.columns import NUM_WINDOWS
from tclgraph.features.time_scale import TimeScale

EVENTS_PER_LIST = 64
"""Every node gets a list of its latest neighbors after each further 64 events."""
NUM_EARLIER_TARGETS = 5
"""Number of earlier targets that each event of a bipartite graph lists."""


class Hop(IntEnum):
    """Where one can go from an instance."""

    NEIGHBOR = 0
    """Node on the other side of the event."""
    PREVIOUS = 1
    """Instance of the same node in its previous event."""
    NEXT = 2
    """Instance of the same node in its next event."""
    NEXT_NEIGHBOR = 3
    """Node on the other side of the next event."""


class PairLink(IntEnum):
    """What the log says about the two nodes of an event, up to and including the event."""

    PREVIOUS = 0
    """Previous event of the same two nodes."""
    NEXT = 1
    """Next event of the same two nodes; the only column that changes later."""
    FIRST = 2
    """First event of the same two nodes."""
    LAST_OPPOSITE = 3
    """Last event of the two nodes in the opposite direction."""
    NUM_SAME = 4
    """Number of their events in the same direction."""
    NUM_OPPOSITE = 5
    """Number of their events in the opposite direction."""
    RUN_LENGTH = 6
    """Number of their latest events that have the same direction."""
    JUMP = 7
    """An earlier event of the two nodes, or the event itself if it is their first; jumps reach any
    earlier event in few steps."""
    SOURCE = 8
    """Source of the event."""
    TARGET = 9
    """Target of the event."""
    EVENTS_OF_SOURCE = 10
    """Number of the source's events."""
    EVENTS_OF_TARGET = 11
    """Number of the target's events."""


class PairTime(IntEnum):
    """Times stored beside the links of an event, in the same cache line."""

    EVENT = 6
    """Time of the event."""
    FIRST = 7
    """Time of the first event of the same two nodes."""


NUM_PAIR_LINKS = 16
"""Number of columns of `Events.pairs`: the links, and two for each time."""


class Total(IntEnum):
    """Numbers of a node up to and including the event of an instance."""

    EVENTS = 0
    """Number of its events."""
    NEIGHBORS = 1
    """Number of its neighbors in its latest MAX_EVENTS events; a self-loop makes it its own
    neighbor."""
    LIST = 2
    """Position in `Events.lists` of its latest neighbors, if they are listed there."""
    OLDEST = 3
    """Instance of the node in the oldest of its latest MAX_EVENTS events."""


class Latest(IntEnum):
    """What a list of a node's latest neighbors says about each."""

    INSTANCE = 0
    """The node's latest instance with the neighbor."""
    TARGET = 1
    """The neighbor as a target."""
    FIRST_COUNTED = 2
    """First event of the two among the node's latest MAX_EVENTS events when it was listed; -1 if it
    has not been searched yet."""


NUM_LATEST = len(Latest)
"""Number of columns of a list; kernels cannot ask an enumeration for its length."""


class Events(NamedTuple):
    """The events of a log and the links between them."""

    first_target: int
    """Node of target 0: 0 in a one-mode graph, the number of sources in a bipartite graph."""
    time: FloatArray
    """[E] Time of every event."""
    node: IntArray
    """[2E] Node of every instance."""
    hops: IntArray
    """[2E, Hop]"""
    pairs: IntArray
    """[E, NUM_PAIR_LINKS] See `PairLink`."""
    pair_times: FloatArray
    """[E, NUM_PAIR_LINKS / 2] The same memory as `pairs`, see `PairTime`."""
    totals: IntArray
    """[2E, Total]"""
    is_new: Any
    """[2E] Bit n (0 for the latest, up to 63) is 1 if the node's n-th latest event was a new pair:
    one with a node that it had no event with in its MAX_EVENTS - 1 events before."""
    neighbor_start: IntArray
    """[N] Position in `neighbors` of each node's first neighbor."""
    neighbors: IntArray
    """Neighbors of every node but itself, in the order in which it gained them. The first n of them
    are those that it had when it had n."""
    earlier_targets: IntArray
    """[E, NUM_EARLIER_TARGETS] Targets of the source before the event, the latest first. Without
    rows in a one-mode graph."""
    lists: IntArray
    """[*, Latest] Lists of latest neighbors: a row with the length, then a row per neighbor."""
    num_choices: int
    """Number of targets among which a uniform choice gives the unit of the walk feature."""
    inverse_unit: float
    """Factor of ages and gaps before the logarithm: 1 / unit, see `TimeScale`."""
    windows: FloatArray
    """[time windows] Length of each time window."""

    @classmethod
    def empty(
        cls, first_target: int, num_nodes: int, num_choices: int, time_scale: TimeScale
    ) -> "Events":
        """Return the arrays of a log without events."""
        return cls(
            first_target=first_target,
            time=np.empty(0),
            node=np.empty(0, np.int64),
            hops=np.empty((0, len(Hop)), np.int32),
            pairs=np.empty((0, NUM_PAIR_LINKS), np.int32),
            pair_times=np.empty((0, NUM_PAIR_LINKS // 2)),
            totals=np.empty((0, len(Total)), np.int32),
            is_new=np.empty(0, np.uint64),
            neighbor_start=np.zeros(num_nodes, np.int64),
            neighbors=np.empty(0, np.int32),
            earlier_targets=np.empty((0, NUM_EARLIER_TARGETS), np.int32),
            lists=np.empty((0, NUM_LATEST), np.int32),
            num_choices=num_choices,
            inverse_unit=1.0 / time_scale.unit if time_scale.unit else 0.0,
            windows=np.array(time_scale.windows),
        )


class NodeLinks(NamedTuple):
    """What linking the next event needs to know about every node."""

    last_instance: IntArray
    """[N]"""
    num_neighbors: IntArray
    """[N] Number of its neighbors but itself."""
    room: IntArray
    """[N] Number of neighbors that fit where `Events.neighbor_start` says."""
    row_of: IntArray
    """[T] Memory for `list_latest`; -1 between its calls."""

    @classmethod
    def empty(cls, num_nodes: int, num_targets: int) -> "NodeLinks":
        """Return the arrays of a log without events."""
        none, zero = np.full(num_nodes, -1), np.zeros(num_nodes, np.int64)
        return cls(none, zero, zero.copy(), np.full(num_targets, -1))


class NodeColumn(IntEnum):
    """What is known about a node at a point of the log."""

    LAST_INSTANCE = 0
    LAST_AS_TARGET = 1
    """Last event with it as the target."""
    LAST_AS_SOURCE = 2
    """Last event with it as the source."""
    NUM_AS_TARGET = 3
    NUM_NEIGHBORS = 4
    """Number of its neighbors other than itself."""
    NUM_FIRST_AS_TARGET = 5
    """Number of neighbors whose first event with it had it as the target."""
    AS_TARGET_SHORT = 6
    """Events with it as the target in the short window, then in the other time windows."""
    AS_SOURCE_SHORT = 9
    """The same with it as the source."""
    LOOPS_SHORT = 12
    """The same with it as both."""


NUM_NODE_COLUMNS = NodeColumn.LOOPS_SHORT + NUM_WINDOWS


class Nodes(NamedTuple):
    """All nodes at a point of the log."""

    table: Any
    """[N, NUM_NODE_COLUMNS] See `NodeColumn`."""
    window_start: IntArray
    """[time windows] Oldest event in each time window."""

    @classmethod
    def empty(cls, num_nodes: int) -> "Nodes":
        """Return the arrays before the first event."""
        table = np.zeros((num_nodes, NUM_NODE_COLUMNS), np.int32)
        for column in (
            NodeColumn.LAST_INSTANCE,
            NodeColumn.LAST_AS_TARGET,
            NodeColumn.LAST_AS_SOURCE,
        ):
            table[:, column] = -1
        return cls(table, np.zeros(NUM_WINDOWS, np.int64))

    def copy(self) -> "Nodes":
        """Return a copy that kernels may change."""
        return Nodes(self.table.copy(), self.window_start.copy())
