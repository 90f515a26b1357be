"""The training stream cut into windows of consecutive events.

Events that are close in time share most of their past, so a window encodes much of it once.

Shapes: B events, R of them compared with candidates, C = 2 + negatives columns, K candidates.
"""

from dataclasses import dataclass

import numpy as np

from tclgraph.arrays import IntArray
from tclgraph.dependency_graph.graph import DependencyGraph
from tclgraph.encoding.kernels import column_versions
from tclgraph.encoding.roots import root_pairs
from tclgraph.events.node_space import NodeSpace
from tclgraph.events.stream import EventStream
from tclgraph.sampling.last_instances import LastInstances


@dataclass(frozen=True, slots=True)
class SampledRoots:
    """Roots of a window in which every event has a few negatives."""

    event: IntArray
    """Number of each event in the training stream, [B]."""
    instance: IntArray
    """Latest instance of the source, the true target and the negatives before the event, [B, C]."""
    pairs: IntArray
    """Pairs of roots to encode."""
    position: IntArray
    """Row of each instance's vector among the encoded roots, [B, C]."""


@dataclass(frozen=True, slots=True)
class CandidateRoots:
    """Roots of a window in which R events are compared with the same candidates."""

    pairs: IntArray
    """Pairs of roots to encode."""
    source_position: IntArray
    """Row of each source's vector among the encoded roots, [R]."""
    version_position: IntArray
    """Rows of the candidate versions that the events are compared with."""
    version: IntArray
    """The version each candidate has before each event, [R, K]."""


class TrainingWindows:
    """Windows over the training stream, and the roots each one needs."""

    def __init__(self, train: EventStream, batch_size: int) -> None:
        self.space = NodeSpace.of(train)
        self.graph = DependencyGraph(self.space)
        self.graph.append(train)
        self._batch_size = batch_size
        self._last = LastInstances(self.graph)
        self.candidates = np.unique(train.target)
        """Targets of the training stream, from which negatives are drawn."""
        if len(self.candidates) == 1:  # any other target serves as a negative then
            self.candidates = np.arange(train.num_targets)

    def __len__(self) -> int:
        return -(-len(self.graph) // self._batch_size)

    def events(self, window: int) -> IntArray:
        """Return the numbers of the window's events."""
        size = self._batch_size
        return np.arange(window * size, min((window + 1) * size, len(self.graph)))

    def sources(self, event: IntArray) -> IntArray:
        """Return the source ids of events."""
        return self.graph.node[2 * event]

    def targets(self, event: IntArray) -> IntArray:
        """Return the target ids of events."""
        node: IntArray = self.graph.node[2 * event + 1]
        return node - self.space.first_target

    def sampled_roots(self, event: IntArray, negatives: IntArray, absent_node: int) -> SampledRoots:
        """Return the roots of events with these negatives (target ids, [B, negatives])."""
        parties = self.graph.node.reshape(-1, 2)[event]
        node = np.concatenate([parties, negatives + self.space.first_target], axis=1)
        instance = self._last.before(node, event[:, None])
        pairs, position = root_pairs(instance.ravel(), absent_node)
        return SampledRoots(event, instance, pairs, position.reshape(node.shape))

    def candidate_roots(
        self,
        event: IntArray,
        candidates: IntArray,
        absent_node: int,
        compared: IntArray | None = None,
    ) -> CandidateRoots:
        """Return the roots of consecutive events that share these candidates (target ids).

        `compared` has the positions of the events that are compared with candidates; None means
        all events.
        """
        first, stop = int(event[0]), int(event[-1]) + 1
        block = np.arange(2 * first, 2 * stop)
        column_of = np.full(self.space.num_nodes, -1)
        column_of[candidates + self.space.first_target] = np.arange(len(candidates))
        version = column_versions(column_of[self.graph.node[block]], len(candidates))
        if compared is not None:
            event, version = event[compared], version[compared]
        before = self._last.before(candidates + self.space.first_target, np.array([first]))
        all_versions = np.concatenate([before, block])
        is_read = np.zeros(len(all_versions), dtype=bool)
        is_read[version] = True
        sources = self._last.before(self.sources(event), event)
        pairs, position = root_pairs(np.concatenate([sources, all_versions[is_read]]), absent_node)
        return CandidateRoots(
            pairs=pairs,
            source_position=position[: len(event)],
            version_position=position[len(event) :],
            version=(np.cumsum(is_read) - 1)[version],
        )
