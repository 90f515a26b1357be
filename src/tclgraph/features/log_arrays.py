"""The arrays of a log and of its nodes that the kernels of this room read and write.

The arrays of a log only ever grow: what an event adds describes the log up to that event, so it
serves queries at any later point, and drawing a window late in a log costs as much as early. The
arrays of nodes describe one point of the log and move along with it (see `state`).

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
from tclgraph.features.columns import WINDOWS

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
    """An earlier event of the two nodes; the jumps reach any earlier event in few steps."""


class Total(IntEnum):
    """Numbers of a node up to and including the event of an instance."""

    EVENTS = 0
    """Number of its events."""
    NEIGHBORS = 1
    """Number of its neighbors in its latest MAX_EVENTS events; after a self-loop it is its own."""
    LIST = 2
    """Position in `Events.lists` of its latest neighbors, if they are listed there."""


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
    """[E, PairLink]"""
    totals: IntArray
    """[2E, Total]"""
    is_new: Any
    """[2E] Bit n says whether the node's n-th latest event was with a node that it had no event
    with among the MAX_EVENTS - 1 before, for 64 events."""
    neighbor_start: IntArray
    """[N] Position in `neighbors` of each node's first neighbor."""
    neighbors: IntArray
    """Neighbors of every node but itself, in the order in which it gained them. The first n of them
    are those that it had when it had n."""
    earlier_targets: IntArray
    """[E, NUM_EARLIER_TARGETS] Targets of the source before the event, the latest first. Without
    rows in a one-mode graph."""
    lists: IntArray
    """Lists of latest neighbors: a length, then the latest instance with each neighbor."""

    @classmethod
    def empty(cls, first_target: int, num_nodes: int) -> "Events":
        """Return the arrays of a log without events."""
        return cls(
            first_target=first_target,
            time=np.empty(0),
            node=np.empty(0, np.int64),
            hops=np.empty((0, len(Hop)), np.int32),
            pairs=np.empty((0, len(PairLink)), np.int32),
            totals=np.empty((0, len(Total)), np.int32),
            is_new=np.empty(0, np.uint64),
            neighbor_start=np.zeros(num_nodes, np.int64),
            neighbors=np.empty(0, np.int32),
            earlier_targets=np.empty((0, NUM_EARLIER_TARGETS), np.int32),
            lists=np.empty(0, np.int32),
        )


class NodeLinks(NamedTuple):
    """What linking the next event needs to know about every node."""

    last_instance: IntArray
    """[N]"""
    oldest_instance: IntArray
    """[N] Oldest of its latest MAX_EVENTS events."""
    num_neighbors: IntArray
    """[N] Number of its neighbors but itself."""
    room: IntArray
    """[N] Number of neighbors that fit where `Events.neighbor_start` says."""

    @classmethod
    def empty(cls, num_nodes: int) -> "NodeLinks":
        """Return the arrays of a log without events."""
        none, zero = np.full(num_nodes, -1), np.zeros(num_nodes, np.int64)
        return cls(none, none.copy(), zero, zero.copy())


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
    AS_TARGET_HOUR = 6
    """Events with it as the target in the last hour, then in the other time windows."""
    AS_SOURCE_HOUR = 9
    """The same with it as the source."""
    LOOPS_HOUR = 12
    """The same with it as both."""


NUM_NODE_COLUMNS = NodeColumn.LOOPS_HOUR + len(WINDOWS)


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
        return cls(table, np.zeros(len(WINDOWS), np.int64))

    def copy(self) -> "Nodes":
        """Return a copy that kernels may change."""
        return Nodes(self.table.copy(), self.window_start.copy())
