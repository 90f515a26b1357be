"""The distinct partners of nodes in the latest events of a log.

A *position* of the log is a number of events: those before it count. The window of a position is
the `size` latest of these events, whatever their nodes. A pair of nodes counts once if it interacts
in the window, in either direction. Self-loops do not count.

The latest event of a pair before a position represents the pair. So an event represents its pair
from the position after it until the position after the next event of the pair, or until it leaves
the window.
"""

from typing import NamedTuple

import numpy as np

from tclgraph.arrays import IntArray
from tclgraph.dependency_graph.graph import NONE, DependencyGraph, grown
from tclgraph.events.pair_table import PairTable

# No log has so many events.
_ALL_EVENTS = 1 << 62


class Changes(NamedTuple):
    """Partners that nodes gain and lose between two positions, an entry per node and partner."""

    node: IntArray
    partner: IntArray
    sign: IntArray
    """1 for a partner that is gained, -1 for one that is lost."""


class PartnerWindow:
    """Follows a growing graph, and knows which partners come and go as the window moves.

    >>> from tclgraph.events.node_space import NodeSpace
    >>> graph = DependencyGraph(NodeSpace(kind="one-mode", num_sources=4, num_targets=4))
    >>> graph.extend(np.array([0, 1, 2, 3]), np.array([1.0, 2.0]))
    >>> window = PartnerWindow(graph, size=1)
    >>> window.update()
    >>> changes = window.changes(1, 2)  # from the first event to the second
    >>> changes.node.tolist(), changes.partner.tolist(), changes.sign.tolist()
    ([2, 3, 0, 1], [3, 2, 1, 0], [1, 1, -1, -1])
    """

    def __init__(self, graph: DependencyGraph, size: int | None) -> None:
        """Start before the first event of the graph; `size` None: all events."""
        self.graph = graph
        self.size = _ALL_EVENTS if size is None else size
        self._pairs = PairTable()
        self._num_events = 0
        # Latest event of each pair, and of each event the neighboring events of its pair. These
        # arrays double when they are full.
        self._latest = np.empty(0, dtype=np.int64)
        self._previous = np.empty(0, dtype=np.int64)
        self._following = np.empty(0, dtype=np.int64)

    @property
    def following(self) -> IntArray:
        """Next event of the same pair, for every event; NONE if there is none yet."""
        return self._following[: self._num_events]

    def update(self) -> None:
        """Take in the events that the graph has gained."""
        start, stop = self._num_events, len(self.graph)
        if start == stop:
            return
        self._num_events = stop
        parties = self.graph.node[2 * start : 2 * stop].reshape(-1, 2)
        pair = self._pairs.add(parties.min(axis=1), parties.max(axis=1))
        self._reserve()
        order = np.argsort(pair, kind="stable")  # by pair, and by event within a pair
        event, pair = start + order, pair[order]
        is_first = np.append(True, pair[1:] != pair[:-1])
        before = np.append(NONE, event[:-1])
        before[is_first] = self._latest[pair[is_first]]
        is_last = np.append(is_first[1:], True)
        self._latest[pair[is_last]] = event[is_last]
        self._previous[event] = before
        self._following[event] = NONE
        has_previous = before != NONE
        self._following[before[has_previous]] = event[has_previous]

    def _reserve(self) -> None:
        num_pairs, num_events = len(self._latest), len(self._previous)
        if len(self._pairs) > num_pairs:
            self._latest = grown(self._latest, max(len(self._pairs), 2 * num_pairs))
            self._latest[num_pairs:] = NONE
        if self._num_events > num_events:
            size = max(self._num_events, 2 * num_events)
            self._previous = grown(self._previous, size)
            self._following = grown(self._following, size)

    def changes(self, begin: int, end: int) -> Changes:
        """Return the changes from a position to a later one, of which some may cancel out."""
        gained = np.arange(begin, end)
        previous = self._previous[begin:end]
        gained = gained[(previous == NONE) | (previous < gained - self.size)]
        lost = np.arange(max(begin - self.size, 0), max(end - self.size, 0))
        following = self._following[lost]
        lost = lost[(following == NONE) | (following > lost + self.size)]
        event = np.concatenate([gained, lost])
        instance = (2 * event[:, None] + np.arange(2)).ravel()
        node, partner = self.graph.node[instance], self.graph.node[instance ^ 1]
        sign = np.repeat([1, -1], [2 * len(gained), 2 * len(lost)])
        is_pair = node != partner
        return Changes(node[is_pair], partner[is_pair], sign[is_pair])


class PartnerLists:
    """Lists the partners of nodes at any position of a complete graph, for training.

    >>> from tclgraph.events.node_space import NodeSpace
    >>> graph = DependencyGraph(NodeSpace(kind="one-mode", num_sources=4, num_targets=4))
    >>> graph.extend(np.array([0, 1, 0, 2, 1, 0]), np.array([1.0, 2.0, 3.0]))
    >>> lists = PartnerLists(graph, size=2)
    >>> partner, start = lists.before(np.array([0, 2, 0]), np.array([2, 2, 3]))
    >>> [members.tolist() for members in np.split(partner, start[1:])]
    [[1, 2], [0], [2, 1]]
    """

    def __init__(self, graph: DependencyGraph, size: int | None) -> None:
        window = PartnerWindow(graph, size)
        window.update()
        self.graph, self.size, self._following = graph, window.size, window.following
        is_loop = (graph.node[0::2] == graph.node[1::2]).repeat(2)
        instance = np.flatnonzero(~is_loop)
        # (node, event) as one number; the stride leaves room for the position after the last event.
        self._stride = len(graph) + 1
        number = graph.node[instance] * self._stride + instance // 2
        order = np.argsort(number)
        self._number, self._instance = number[order], instance[order]

    def before(self, node: IntArray, position: IntArray) -> tuple[IntArray, IntArray]:
        """Return the partners of each node at its position, and the start of each list."""
        oldest = np.maximum(position - self.size, 0)
        begin, end = (
            np.searchsorted(self._number, node * self._stride + event)
            for event in (oldest, position)
        )
        length = end - begin
        row = np.repeat(np.arange(len(node)), length)
        entry = np.arange(len(row)) + np.repeat(begin - (np.cumsum(length) - length), length)
        instance = self._instance[entry]
        following = self._following[instance // 2]
        is_latest = (following == NONE) | (following >= position[row])
        count = np.bincount(row[is_latest], minlength=len(node))
        return self.graph.node[instance[is_latest] ^ 1], np.cumsum(count) - count
