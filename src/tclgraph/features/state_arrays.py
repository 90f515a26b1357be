"""The arrays that the kernels of this room read and write, grouped by what they describe.

Shapes: E events, N nodes, T targets, W time windows. An instance is one side of an event, as in the
dependency graph: instance 2e is the source of event e and 2e + 1 its target. An event or instance
that does not exist is -1.
"""

from typing import NamedTuple

import numpy as np

from tclgraph.arrays import FloatArray, IntArray
from tclgraph.features.columns import WINDOWS

NOT_NEW = -2
"""Stands for a link to the previous neighbor where an event adds no neighbor."""


class Events(NamedTuple):
    """The events of a log, and for each instance the events of its node before and after."""

    node: IntArray
    """[2E] Node of every instance."""
    time: FloatArray
    """[E] Time of every event."""
    previous: IntArray
    """[2E] Previous event of the instance's node, or -1."""
    following: IntArray
    """[2E] Instance of the same node in its next event, or -1. After a self-loop, which counts
    as an event of its source, the target's instance has none."""
    previous_neighbor: IntArray
    """[2E] Instance at which the node gained its previous neighbor, or -1; NOT_NEW unless the
    event is a new pair. Following these links lists a node's neighbors, the newest first."""
    first_target: int
    """Node of target 0: 0 in a one-mode graph, the number of sources in a bipartite graph."""


class Activity(NamedTuple):
    """How active every node has been."""

    last_instance: IntArray
    """[N] Latest instance of every node, or -1. A self-loop counts as its source's."""
    num_as_target: IntArray
    """[T] Number of events with this target."""
    last_as_target: IntArray
    """[T] Last event with this target, or -1."""
    last_as_source: IntArray
    """[T] Last event with this node as its source, or -1; always -1 in a bipartite graph."""
    in_window: IntArray
    """[2W, T] Number of events in each time window: W rows as target, then W rows as source."""
    window_start: IntArray
    """[W] Oldest event in each time window."""

    @classmethod
    def empty(cls, num_nodes: int, num_targets: int) -> "Activity":
        """Return the arrays before the first event."""
        return cls(
            last_instance=np.full(num_nodes, -1),
            num_as_target=np.zeros(num_targets, dtype=np.int64),
            last_as_target=np.full(num_targets, -1),
            last_as_source=np.full(num_targets, -1),
            in_window=np.zeros((2 * len(WINDOWS), num_targets), dtype=np.int64),
            window_start=np.zeros(len(WINDOWS), dtype=np.int64),
        )

    def copy(self) -> "Activity":
        """Return a copy that kernels may change."""
        return Activity(*(array.copy() for array in self))


class Neighbors(NamedTuple):
    """Who has interacted with whom."""

    newest: IntArray
    """[N] Instance at which every node gained its newest neighbor, or -1."""
    num_neighbors: IntArray
    """[N] Number of neighbors of every node."""
    num_first_as_target: IntArray
    """[T] Number of neighbors whose first event with the target had it as the target."""

    @classmethod
    def empty(cls, num_nodes: int, num_targets: int) -> "Neighbors":
        """Return the arrays before the first event."""
        return cls(
            newest=np.full(num_nodes, -1),
            num_neighbors=np.zeros(num_nodes, dtype=np.int64),
            num_first_as_target=np.zeros(num_targets, dtype=np.int64),
        )

    def copy(self) -> "Neighbors":
        """Return a copy that kernels may change."""
        return Neighbors(*(array.copy() for array in self))
