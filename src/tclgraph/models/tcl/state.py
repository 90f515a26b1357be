"""Where every node stands: its last instance, and the predictive vector that came of it.

A node's vector changes only when the node has an event, so vectors are kept and only those of
nodes that have moved on are encoded anew. An event is encoded once for both of its parties.
"""

import numpy as np
import torch
from torch import Tensor

from tclgraph.arrays import IntArray
from tclgraph.dependency_graph.graph import DependencyGraph
from tclgraph.features.interactions import InteractionLog
from tclgraph.features.state import HistoryState
from tclgraph.models.tcl.network import TCLNetwork
from tclgraph.sampling.dependency_subgraphs import pack, singleton

# Events encoded at once: enough to share much, few enough to keep memory small.
_EVENTS_AT_ONCE = 1024


def roots_of(instance: IntArray, absent: int) -> tuple[IntArray, IntArray]:
    """The pairs of roots to encode for these instances, and where each instance's own is.

    Singletons are paired with the absent partner. Positions count roots: the vector of `instance`
    is row `position` of what encoding the pairs gives.

    >>> pairs, position = roots_of(np.array([5, 4, -1, 5]), absent=9)
    >>> pairs.tolist(), position.tolist()
    ([[-1, -10], [4, 5]], [3, 2, 0, 3])
    """
    is_real = instance >= 0
    first, which = np.unique(np.where(is_real, instance & ~1, instance), return_inverse=True)
    pairs = np.stack([first, np.where(first >= 0, first | 1, singleton(absent))], axis=1)
    return pairs, 2 * which + np.where(is_real, instance & 1, 0)


@torch.no_grad()
def encode(network: TCLNetwork, graph: DependencyGraph, instance: IntArray) -> Tensor:
    """Predictive vectors after these instances (or of these singletons), one row each."""
    pairs, position = roots_of(instance, network.absent)
    parts = [
        network(pack(graph, pairs[start : start + _EVENTS_AT_ONCE], network.config.levels))
        for start in range(0, len(pairs), _EVENTS_AT_ONCE)
    ]
    if not parts:
        return network.node.weight.new_empty(0, network.config.width)
    return torch.cat(parts).index_select(0, torch.from_numpy(position).to(network.device))


class NodeStates:
    """Vectors of all nodes as of the last event of a growing graph."""

    def __init__(self, network: TCLNetwork, graph: DependencyGraph) -> None:
        self.graph = graph
        self._network = network
        self._present = HistoryState(InteractionLog(graph))
        num_nodes = graph.space.num_nodes
        self._vector = network.node.weight.new_zeros(num_nodes, network.config.width)
        # The instance that each vector came of; -1 - node is that node's singleton, and a number
        # that no instance has says that there is no vector yet.
        self._came_of = np.full(num_nodes, np.iinfo(np.int64).min)

    @property
    def present(self) -> HistoryState:
        """What facts are read off from, by the graph as it is now."""
        self._present.update()
        return self._present

    def vectors(self, node: IntArray) -> Tensor:
        """Of these nodes, by the graph as it is now."""
        now = self.graph.last_instance[node]
        wanted = np.where(now >= 0, now, singleton(node))
        stale = np.unique(node[self._came_of[node] != wanted])
        if len(stale):
            now = self.graph.last_instance[stale]
            instance = np.where(now >= 0, now, singleton(stale))
            found = encode(self._network, self.graph, instance)
            self._vector[torch.from_numpy(stale).to(found.device)] = found
            self._came_of[stale] = instance
        # A copy of the ids: a stream's columns are read-only, which torch cannot promise to keep.
        return self._vector[torch.tensor(node, device=self._vector.device)]

    def set_vectors(self, instance: IntArray, vectors: Tensor) -> None:
        """Take over vectors that were encoded elsewhere, of each node's present instance."""
        node = self.graph.node[instance]
        self._vector[torch.from_numpy(node).to(vectors.device)] = vectors
        self._came_of[node] = instance

    def to_tensors(self) -> dict[str, Tensor]:
        """For saving: re-encoding in another batch could differ in the last digit."""
        return {"vector": self._vector, "came_of": torch.from_numpy(self._came_of)}

    def take_tensors(self, tensors: dict[str, Tensor]) -> None:
        self._vector = tensors["vector"].to(self._vector.device)
        self._came_of = tensors["came_of"].numpy()
