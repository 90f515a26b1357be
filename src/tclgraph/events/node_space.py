"""One numbering for all nodes of a stream, whichever side they are on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tclgraph.arrays import IntArray
from tclgraph.events.stream import EventStream, GraphKind


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSpace:
    """One numbering for all nodes: sources first, then the targets of a bipartite graph."""

    kind: GraphKind
    num_sources: int
    num_targets: int

    @classmethod
    def of(cls, events: EventStream) -> NodeSpace:
        return cls(kind=events.kind, num_sources=events.num_sources, num_targets=events.num_targets)

    @property
    def first_target(self) -> int:
        """The node that target id 0 is; in a one-mode graph both sides are the same nodes."""
        return 0 if self.kind == "one-mode" else self.num_sources

    @property
    def num_nodes(self) -> int:
        return self.first_target + self.num_targets

    @property
    def target_nodes(self) -> IntArray:
        return np.arange(self.first_target, self.num_nodes)

    def nodes(self, events: EventStream) -> IntArray:
        """The node of every instance."""
        both = np.empty(2 * len(events), dtype=np.int64)
        both[0::2] = events.source
        both[1::2] = events.target + self.first_target
        return both
