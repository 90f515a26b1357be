"""What TCL trains on: windows of consecutive events, each with negatives and everybody's past."""

from dataclasses import dataclass

import numpy as np

from tclgraph.arrays import FloatArray, IntArray
from tclgraph.dependency_graph.graph import DependencyGraph, NodeSpace
from tclgraph.events.stream import EventStream
from tclgraph.models.tcl.config import TCLConfig
from tclgraph.models.tcl.state import roots_of
from tclgraph.sampling.dependency_subgraphs import PackedSubgraphs, pack
from tclgraph.sampling.last_instances import LastInstances
from tclgraph.sampling.negatives import pooled_negatives, uniform_negatives


@dataclass(frozen=True, slots=True)
class Window:
    """Events by row; columns are the source, the true target, and the negatives."""

    packed: PackedSubgraphs
    position: IntArray
    """Where each one's vector is among those of the packed roots."""
    elapsed: FloatArray
    """Seconds since each one's last event, 0 without one."""


class TrainingWindows:
    """The training stream cut into windows of a batch each.

    A batch of neighbours in time shares most of its past, which is then encoded once.
    """

    def __init__(self, train: EventStream, config: TCLConfig) -> None:
        self._config = config
        self._space = NodeSpace.of(train)
        self.graph = DependencyGraph(self._space)
        self.graph.append(train)
        self._last = LastInstances(self.graph)
        self._candidates = np.unique(train.target)
        if len(self._candidates) == 1:  # nothing else was ever met, so anything else will do
            self._candidates = np.arange(train.num_targets)

    def __len__(self) -> int:
        return -(-len(self.graph) // self._config.batch_size)

    def draw(self, window: int, random: np.random.Generator) -> Window:
        """A window with fresh negatives."""
        size = self._config.batch_size
        event = np.arange(window * size, min((window + 1) * size, len(self.graph)))
        both = self.graph.node[2 * event[0] : 2 * (event[-1] + 1)].reshape(-1, 2)
        first_target = self._space.first_target
        true = both[:, 1] - first_target
        candidates, count = self._candidates, self._config.negatives
        pool = self._config.negative_pool
        negatives = (
            uniform_negatives(true, candidates, count, random)
            if pool is None
            else pooled_negatives(true, candidates, count, pool, random)
        )
        node = np.concatenate([both, negatives + first_target], axis=1)
        instance = self._last.before(node, event[:, None])
        pairs, position = roots_of(instance.ravel(), self._space.num_nodes)
        now = self.graph.time[event][:, None]
        return Window(
            packed=pack(self.graph, pairs, self._config.levels),
            position=position.reshape(node.shape),
            elapsed=np.where(
                instance >= 0, now - self.graph.time[np.maximum(instance, 0) // 2], 0.0
            ),
        )
