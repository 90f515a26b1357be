"""What TCL trains on: windows of consecutive events, each with negatives and everybody's past."""

from dataclasses import dataclass

import numpy as np

from tclgraph.arrays import FloatArray, IntArray
from tclgraph.dependency_graph.graph import DependencyGraph
from tclgraph.events.node_space import NodeSpace
from tclgraph.events.stream import EventStream
from tclgraph.features.block import HistoryFeatures
from tclgraph.features.interactions import InteractionLog
from tclgraph.features.state import HistoryState
from tclgraph.models.tcl.config import TCLConfig
from tclgraph.models.tcl.state import roots_of
from tclgraph.sampling.dependency_subgraphs import PackedSubgraphs, pack
from tclgraph.sampling.last_instances import LastInstances
from tclgraph.sampling.negatives import pooled_negatives, uniform_negatives

# Windows, and at most so many targets, whose facts say what is usual.
_FACT_WINDOWS = 8
_FACT_COLUMNS = 2048
# Instead of minus infinity, of which a softmax would make NaN.
_NOT_THERE = -1e9


@dataclass(frozen=True, slots=True)
class Window:
    """Events by row; columns are the source, the true target, and the negatives."""

    packed: PackedSubgraphs
    position: IntArray
    """Where each one's vector is among those of the packed roots."""
    elapsed: FloatArray
    """Seconds since each one's last event, 0 without one."""


@dataclass(frozen=True, slots=True)
class FullWindow:
    """Events by row; columns are all targets, or a sample of them with the true ones."""

    packed: PackedSubgraphs
    source_position: IntArray
    """Where each source's vector is among those of the packed roots."""
    state_position: IntArray
    """The same of the K columns as the window begins, then of both parties of its events."""
    state: IntArray
    """Which of these states each column is in before each event, [B, K]."""
    facts: HistoryFeatures
    column_of: IntArray
    true_column: IntArray
    weight: FloatArray | None
    """Where columns are a sample: the log of how many targets each stands for, [B, K]."""


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
        self._log = InteractionLog(self.graph)
        self._candidates = np.unique(train.target)
        if len(self._candidates) == 1:  # nothing else was ever met, so anything else will do
            self._candidates = np.arange(train.num_targets)

    def __len__(self) -> int:
        return -(-len(self.graph) // self._config.batch_size)

    def _events(self, window: int) -> IntArray:
        size = self._config.batch_size
        return np.arange(window * size, min((window + 1) * size, len(self.graph)))

    def draw(self, window: int, random: np.random.Generator) -> Window:
        """A window with fresh negatives."""
        event = self._events(window)
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

    def draw_full(self, window: int, random: np.random.Generator) -> FullWindow:
        """A window in which all targets are contrasted, or as many as there may be."""
        event = self._events(window)
        true = self.graph.node[2 * event + 1] - self._space.first_target
        num_targets, limit = self._space.num_targets, self._config.contrast_limit
        columns, weight = np.arange(num_targets), None
        if num_targets > limit:
            sample = np.sort(random.choice(num_targets, size=limit, replace=False))
            columns = np.union1d(sample, true)
            weight = _sample_weights(columns, sample, true, num_targets)
        column_of = np.full(num_targets, -1)
        column_of[columns] = np.arange(len(columns))

        facts = self.facts(event, columns)
        instance = self._instances_before(event, columns, column_of)
        source = self.graph.node[2 * event]
        first, last = 2 * event[0], 2 * event[-1] + 2
        roots = np.concatenate(
            [
                self._last.before(source, event),
                instance[0],
                np.arange(first, last),
            ]
        )
        pairs, position = roots_of(roots, self._space.num_nodes)
        changed = instance >= first
        return FullWindow(
            packed=pack(self.graph, pairs, self._config.levels),
            source_position=position[: len(event)],
            state_position=position[len(event) :],
            state=np.where(changed, len(columns) + instance - first, np.arange(len(columns))),
            facts=facts,
            column_of=column_of,
            true_column=column_of[true],
            weight=weight,
        )

    def _instances_before(
        self, event: IntArray, columns: IntArray, column_of: IntArray
    ) -> IntArray:
        """Return the latest instance (or singleton) of every column before each event, [B, K]."""
        first_target = self._space.first_target
        at_start = self._last.before(columns + first_target, event[:1])
        instance = np.repeat(at_start[None], len(event), axis=0)
        for row in range(len(event) - 1):
            # The source comes last: a self-loop counts as its source's.
            for changed in (2 * event[row] + 1, 2 * event[row]):
                target = self.graph.node[changed] - first_target
                if target >= 0 and column_of[target] >= 0:
                    instance[row + 1 :, column_of[target]] = changed
        return instance

    def facts(self, event: IntArray, columns: IntArray | None = None) -> HistoryFeatures:
        """What was known before each of these consecutive events."""
        present = HistoryState(self._log, int(event[0]))
        return present.features(
            self.graph.node[2 * event], self.graph.time[event], columns, reveal=True
        )

    def sample_of_facts(self) -> list[HistoryFeatures]:
        """From windows spread over the stream; the first ones, when little was known, left out."""
        where = _spread(len(self) // 4, len(self) - 1, _FACT_WINDOWS)
        columns = _spread(0, self._space.num_targets - 1, _FACT_COLUMNS)
        return [self.facts(self._events(window), columns) for window in where.tolist()]


def _spread(first: int, last: int, most: int) -> IntArray:
    """So many numbers at most, evenly from the first to the last.

    >>> _spread(2, 9, 3).tolist(), _spread(2, 4, 99).tolist()
    ([2, 5, 9], [2, 3, 4])
    """
    return np.unique(np.linspace(first, last, most).astype(np.int64))


def _sample_weights(
    columns: IntArray, sample: IntArray, true: IntArray, num_targets: int
) -> FloatArray:
    """The true target stands for itself and the rest of the sample for all others.

    Targets that are there only because other events have them stand for nothing.
    """
    is_sampled = np.isin(columns, sample)
    is_true = columns == true[:, None]
    others = is_sampled & ~is_true
    each = np.log((num_targets - 1) / np.maximum(others.sum(axis=1, keepdims=True), 1))
    return np.where(is_true, 0.0, np.where(others, each, _NOT_THERE))
