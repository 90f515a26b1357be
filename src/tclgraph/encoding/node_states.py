"""The vector of every node as of the last observed event.

A node's vector changes only when the node has an event, so vectors are cached, and only those of
nodes with newer events are encoded again.

Shapes: B events or queries, T targets, I instances of a block (two per event), D width.
"""

from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from tclgraph.arrays import FloatArray, IntArray
from tclgraph.dependency_graph.graph import DependencyGraph
from tclgraph.encoding.kernels import column_versions
from tclgraph.encoding.roots import or_singleton, root_pairs
from tclgraph.events.stream import EventStream

# No instance has this number, so a vector with this origin does not exist yet.
_NEVER_ENCODED = np.iinfo(np.int64).min


class EventEncoder(Protocol):
    """A network that encodes past events, both parties at once."""

    width: int
    """Size of a vector."""
    max_events_at_once: int
    """Number of events to encode in one call: enough to share work, few enough to bound memory."""

    @property
    def absent_node(self) -> int:
        """Node that stands for the missing partner of a node without events."""

    @property
    def weight(self) -> Tensor:
        """Any parameter: vectors have its precision and live on its device."""

    def encode(self, graph: DependencyGraph, pairs: IntArray) -> Tensor:
        """Return the vectors of all roots of these pairs, [2 · pairs, D]."""


@torch.no_grad()
def encode_instances(encoder: EventEncoder, graph: DependencyGraph, instance: IntArray) -> Tensor:
    """Return the vectors that nodes have after these instances (or as singletons), one row each."""
    pairs, position = root_pairs(instance, encoder.absent_node)
    size = encoder.max_events_at_once
    parts = [
        encoder.encode(graph, pairs[start : start + size]) for start in range(0, len(pairs), size)
    ]
    if not parts:
        return encoder.weight.new_empty(0, encoder.width)
    return torch.cat(parts).index_select(0, torch.from_numpy(position).to(encoder.weight.device))


class Block(NamedTuple):
    """Vectors of sources and targets just before each event of a block of events."""

    source_BD: Tensor
    """Vector of each event's source."""
    before_TD: Tensor
    """Vectors of all targets before the block."""
    after_ID: Tensor
    """Vectors of both parties after each event of the block."""
    version_BT: IntArray
    """The vector each target has before each event: below T a row of `before_TD`, else T plus a row
    of `after_ID`."""
    source_instance: IntArray
    """Latest instance of each event's source, a singleton if it has none, [B]."""
    target_instance: IntArray
    """The same for all targets, [B, T]."""

    def select(self, before_BT: Tensor, after_BI: Tensor) -> Tensor:
        """Pick for each event and target the value that belongs to the target's current vector."""
        version = torch.from_numpy(self.version_BT).to(before_BT.device)
        return torch.cat([before_BT, after_BI], dim=1).gather(1, version)


class NodeStates:
    """Cached vectors of all nodes of a growing graph."""

    def __init__(self, encoder: EventEncoder, graph: DependencyGraph) -> None:
        self.graph = graph
        self._encoder = encoder
        num_nodes = graph.space.num_nodes
        self._vector = encoder.weight.detach().new_zeros(num_nodes, encoder.width)
        # The instance (or singleton) that each cached vector was encoded from.
        self._origin = np.full(num_nodes, _NEVER_ENCODED)

    def current_instance(self, node: IntArray) -> IntArray:
        """Return each node's latest instance, a singleton if it has none."""
        return or_singleton(self.graph.last_instance[node], node)

    def vectors(self, node: IntArray) -> Tensor:
        """Return the vectors of these nodes as of the graph's last event."""
        stale = np.unique(node[self._origin[node] != self.current_instance(node)])
        if len(stale):
            instance = self.current_instance(stale)
            self._store(stale, instance, encode_instances(self._encoder, self.graph, instance))
        # A copy of the ids: a stream's columns are read-only, which torch does not support.
        return self._vector[torch.tensor(node, device=self._vector.device)]

    def _store(self, node: IntArray, instance: IntArray, vectors: Tensor) -> None:
        self._vector[torch.from_numpy(node).to(vectors.device)] = vectors
        self._origin[node] = instance

    @torch.no_grad()
    def advance(self, events: EventStream) -> Block:
        """Append a block of events, and return the vectors just before each of them.

        `Block.version_BT` gives the vector that is valid for each target before each event.
        """
        graph, space = self.graph, self.graph.space
        start, targets = len(graph), space.target_nodes
        before_TD, source_BD = self.vectors(targets), self.vectors(events.source)
        target_instance = self.current_instance(targets)
        source_instance = self.current_instance(events.source)

        graph.append(events)
        after_ID = encode_instances(self._encoder, graph, np.arange(2 * start, 2 * len(graph)))
        previous = graph.previous[2 * start :: 2]
        is_later = np.flatnonzero(previous >= start)  # the source has an earlier event in the block
        own = 2 * previous[is_later]
        own += graph.node[own] != events.source[is_later]
        source_instance[is_later] = own
        index, row = (torch.from_numpy(rows) for rows in (is_later, own - 2 * start))
        source_BD[index.to(source_BD.device)] = after_ID[row.to(after_ID.device)]

        column_of = np.full(space.num_nodes, -1)
        column_of[targets] = np.arange(len(targets))
        version = column_versions(column_of[graph.node[2 * start :]], len(targets))
        node = np.unique(graph.node[2 * start :])
        latest = graph.last_instance[node]
        rows = torch.from_numpy(latest - 2 * start).to(after_ID.device)
        self._store(node, latest, after_ID[rows])
        return Block(
            source_BD=source_BD,
            before_TD=before_TD,
            after_ID=after_ID,
            version_BT=version,
            source_instance=source_instance,
            target_instance=np.where(
                version < len(targets), target_instance, 2 * start + version - len(targets)
            ),
        )

    def to_tensors(self) -> dict[str, Tensor]:
        """Return the cache for saving: encoding in another batch could differ in the last digit."""
        return {"vector": self._vector, "origin": torch.from_numpy(self._origin)}

    def load_tensors(self, tensors: dict[str, Tensor]) -> None:
        """Restore the cache that `to_tensors` returned."""
        self._vector = tensors["vector"].to(self._vector.device)
        self._origin = tensors["origin"].numpy()


def elapsed_seconds(graph: DependencyGraph, instance: IntArray, now: FloatArray) -> FloatArray:
    """Return the seconds from instances until `now`, 0 for a singleton."""
    if not len(graph):
        return np.zeros(np.broadcast(instance, now).shape)
    return np.where(instance >= 0, now - graph.time[np.maximum(instance, 0) // 2], 0.0)
