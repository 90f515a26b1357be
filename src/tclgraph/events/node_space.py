"""Node numbers that cover the sources and the targets of a stream."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tclgraph.arrays import IntArray
from tclgraph.events.stream import EventStream, GraphKind


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSpace:
    """Numbers all nodes of a stream: the sources first, then the targets of a bipartite graph.

    In a one-mode graph sources and targets are the same nodes and share their numbers.
    """

    kind: GraphKind
    num_sources: int
    num_targets: int

    @classmethod
    def of(cls, events: EventStream) -> NodeSpace:
        return cls(kind=events.kind, num_sources=events.num_sources, num_targets=events.num_targets)

    @property
    def first_target(self) -> int:
        """Node number of target id 0."""
        return 0 if self.kind == "one-mode" else self.num_sources

    @property
    def num_nodes(self) -> int:
        return self.first_target + self.num_targets

    @property
    def target_nodes(self) -> IntArray:
        return np.arange(self.first_target, self.num_nodes)

    def numbers_in(self, larger: NodeSpace) -> IntArray:
        """Return the number of each node in a space that has further sources or targets."""
        numbers = np.arange(self.num_nodes)
        numbers[self.first_target :] += larger.first_target - self.first_target
        return numbers

    def nodes(self, events: EventStream) -> IntArray:
        """Return the node of every instance: source and target of each event in turn."""
        nodes = np.empty(2 * len(events), dtype=np.int64)
        nodes[0::2] = events.source
        nodes[1::2] = events.target + self.first_target
        return nodes
