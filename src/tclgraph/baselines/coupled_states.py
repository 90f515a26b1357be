"""Base of JODIE and DeepCoevolve, in which every event updates the vectors of its two nodes.

A node has one vector. In a bipartite graph it is either a source or a target. In a one-mode graph
it is both: an event updates its source's vector with the weights for sources and its target's
vector with the weights for targets, and whatever refers to a node's latest event refers to its
latest event in either role. In a self-loop both updates start from the same vector, and the
source's counts.

Shapes: E events of a range, R roles (source, target), N nodes, T targets, D width, B rows, K inputs
of an event.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from tclgraph.arrays import FloatArray, IntArray, ScoreArray
from tclgraph.dependency_graph.graph import NONE, DependencyGraph
from tclgraph.events.node_space import NodeSpace
from tclgraph.events.stream import EventStream
from tclgraph.layers.node_tables import Side
from tclgraph.models.learned import LearnedModel
from tclgraph.sampling.t_batches import LatestInstances, t_batches

# Number of events by which the state advances in one call. Every t-batch copies the vectors of all
# nodes of the call, so more events per call would not be faster.
_EVENTS_PER_CALL = 1024

Cell: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""Recurrent cell: from the vectors of the sources and targets of events, [2, B, D], and inputs of
both roles, [2, B, K], to the vectors after the events, [2, B, D]. It computes both roles in one
call, because small matrix products cost more to launch than to compute."""


class EventRange(NamedTuple):
    """Consecutive events of a graph, with the latest earlier instance of every node.

    The range is `[first, stop)`. Nodes are numbered as in `NodeSpace`.
    """

    graph: DependencyGraph
    first: int
    stop: int
    latest: LatestInstances

    @property
    def event(self) -> IntArray:
        """Numbers of the events."""
        return np.arange(self.first, self.stop)

    @property
    def nodes(self) -> IntArray:
        """Sources and targets of the events."""
        return self.graph.node[2 * self.first : 2 * self.stop].reshape(-1, 2).T

    @property
    def source(self) -> IntArray:
        """Sources of the events."""
        source: IntArray = self.nodes[0]
        return source

    @property
    def target(self) -> IntArray:
        """Targets of the events."""
        target: IntArray = self.nodes[1]
        return target

    @property
    def time(self) -> FloatArray:
        """Timestamps of the events, in seconds."""
        return self.graph.time[self.first : self.stop]

    @classmethod
    def all_events(cls, graph: DependencyGraph) -> "EventRange":
        """Return the range of all events of a graph."""
        return cls(graph, 0, len(graph), LatestInstances(graph.node))

    def subrange(self, first: int, stop: int) -> "EventRange":
        """Return the events `[first, stop)`; latest instances before `first` remain known."""
        return self._replace(first=first, stop=min(stop, self.stop))


class Trajectory:
    """Vectors of nodes before each event of a range."""

    def __init__(
        self, events: EventRange, node: IntArray, first_ND: Tensor, after_RED: Tensor
    ) -> None:
        """Take the vectors of ascending nodes before the range, and those after each event."""
        self.node = node
        self.after_RED = after_RED
        self._all = torch.cat([first_ND, *after_RED])
        self._events = events

    def before(self, node: IntArray, event: IntArray) -> Tensor:
        """Return the vectors of nodes just before events, [..., D]."""
        first, stop = self._events.first, self._events.stop
        instance = self._events.latest.before(node, event)
        row = np.where(
            instance >= 2 * first,
            len(self.node) + instance % 2 * (stop - first) + instance // 2 - first,
            np.searchsorted(self.node, node),
        )
        return functional.embedding(as_index(row, self._all), self._all)

    def at_end(self) -> tuple[Tensor, IntArray]:
        """Return the vectors and the latest instances of all `node` after the range."""
        stop = np.full(len(self.node), self._events.stop)
        return self.before(self.node, stop), self._events.latest.before(self.node, stop)


def unroll(
    events: EventRange, node: IntArray, first_ND: Tensor, cell: Cell, input_REK: Tensor
) -> Trajectory:
    """Apply a recurrent cell to all events, with the same result as one event after another.

    `node` are ascending nodes, at least all that have an event in the range, and `first_ND` their
    vectors before the range. Gradients flow through the complete range.
    """
    row_RE = np.searchsorted(node, events.nodes)
    order, start = t_batches(*row_RE)
    # The target's vector of a self-loop is written into a spare row: the source's counts.
    written_RE = row_RE.copy()
    written_RE[1, row_RE[0] == row_RE[1]] = len(node)
    read_RE, write_RE = (
        as_index(row_RE[:, order], first_ND),
        as_index(written_RE[:, order], first_ND),
    )
    input_REK = input_REK.index_select(1, as_index(order, first_ND))
    state_ND = torch.cat([first_ND, torch.zeros_like(first_ND[:1])])
    after = []
    for bounds in pairwise(start.tolist()):
        batch = slice(*bounds)
        vector_RBD = torch.unflatten(
            state_ND.index_select(0, read_RE[:, batch].flatten()), 0, (2, -1)
        )
        new_RBD = cell(vector_RBD, input_REK[:, batch])
        state_ND = state_ND.index_copy(0, write_RE[:, batch].flatten(), new_RBD.flatten(0, 1))
        after.append(new_RBD)
    after_RED = torch.cat(after, dim=1).index_select(1, as_index(np.argsort(order), first_ND))
    return Trajectory(events, node, first_ND, after_RED)


def with_updates(before_BT: ScoreArray, after_BRE: ScoreArray, target_RE: IntArray) -> ScoreArray:
    """Return a value for every row and target, where event j updates the values of its targets.

    `before_BT` holds the values without any update. after_BRE[k, :, j] are the values of event j's
    targets in row k after the event; they apply to the rows after j.

    >>> after = np.array([[[1, 2, 3]]] * 3)
    >>> with_updates(np.zeros((3, 2)), after, np.array([[1, 1, 0]])).tolist()
    [[0.0, 0.0], [0.0, 1.0], [0.0, 2.0]]
    """
    value_BT = before_BT.copy()
    for event, columns in enumerate(target_RE.T.tolist()):
        for role in reversed(range(len(columns))):  # a self-loop has its source's value
            value_BT[event + 1 :, columns[role]] = after_BRE[event + 1 :, role, event]
    return value_BT


def as_index(array: IntArray, like: Tensor) -> Tensor:
    """Return the array as an index tensor on the device of another tensor."""
    # A copy, because the columns of a stream are read-only and torch tensors cannot be.
    return torch.tensor(array, device=like.device)


def instance_times(instance: IntArray, graph: DependencyGraph, start: float) -> FloatArray:
    """Return the timestamps of instances, but at least `start`; `start` also in place of NONE."""
    time = np.full(instance.shape, start)
    time[instance >= 0] = graph.time[instance[instance >= 0] // 2]
    not_before_start: FloatArray = np.maximum(time, start)
    return not_before_start


GROUP_SIDES: dict[str, Side] = {"source": "sources", "target": "targets", "node": "nodes"}
"""Side of the nodes in each group of `vector_groups`."""


def vector_groups(space: NodeSpace) -> dict[str, int]:
    """Return the names and sizes of the groups of nodes whose first vectors are learned together.

    >>> vector_groups(NodeSpace(kind="bipartite", num_sources=2, num_targets=3))
    {'source': 2, 'target': 3}
    >>> vector_groups(NodeSpace(kind="one-mode", num_sources=3, num_targets=3))
    {'node': 3}
    """
    if space.kind == "one-mode":
        return {"node": space.num_nodes}
    return {"source": space.num_sources, "target": space.num_targets}


class NodeVectors(NamedTuple):
    """Vectors and latest instances of all nodes."""

    vector: Tensor
    instance: IntArray
    """Latest instance of each node, or NONE."""

    @classmethod
    def initial(cls, vector_ND: Tensor) -> "NodeVectors":
        """Return the state before the first event."""
        return cls(vector_ND.contiguous(), np.full(len(vector_ND), NONE))

    def select(self, node: IntArray) -> Tensor:
        """Return the vectors of these nodes."""
        return self.vector[as_index(node, self.vector)]

    def advanced(self, trajectory: Trajectory) -> "NodeVectors":
        """Return a new state, that after the range of a trajectory."""
        vector, latest = trajectory.at_end()
        instance = self.instance.copy()
        instance[trajectory.node] = latest
        row = as_index(trajectory.node, self.vector)
        return NodeVectors(self.vector.index_copy(0, row, vector), instance)


class CoupledModel(LearnedModel):
    """Base class of models whose state is a vector of every node."""

    @property
    def memory(self) -> int | None:
        """Smallest number of latest events that the state depends on; None: all events.

        After every `memory` events the state starts again from the initial vectors and follows the
        latest `memory` events once more. So the state depends on the events alone, and not on the
        blocks in which they were observed.
        """
        return None

    @abstractmethod
    def initial_vectors(self) -> Tensor:
        """Return the vectors of all nodes before their first event, [N, D].

        A model may add rows for what is not a node.
        """

    @abstractmethod
    def unroll(self, events: EventRange, node: IntArray, first_ND: Tensor) -> Trajectory:
        """Update the vectors of nodes by the events of a range."""

    @abstractmethod
    def scores_before(
        self, events: EventRange, trajectory: Trajectory, old: NodeVectors
    ) -> ScoreArray:
        """Return the scores of all targets for each event's source, just before the event.

        `old` is the state before the range.
        """

    def needed_nodes(self, events: EventRange) -> IntArray:
        """Return, ascending, the nodes whose vectors are needed during the range."""
        return np.unique(events.nodes)

    def as_tensor(self, array: FloatArray) -> Tensor:
        """Return the array with the data type and device of the network."""
        weight = next(self.network.parameters())
        return torch.from_numpy(array).to(weight.dtype).to(weight.device)

    def source_vectors(self, source: IntArray, time: float) -> Tensor:
        """Return the vectors of sources at a time; a model may ignore the time."""
        return self._nodes.select(source)

    @torch.no_grad()
    def vectors(self, node: IntArray, time: float) -> ScoreArray:
        """Return the vectors of nodes; in a one-mode graph all nodes are sources."""
        vectors = np.empty((len(node), self._nodes.vector.shape[1]), dtype=np.float32)
        is_source = node < self.graph.space.num_sources
        vectors[is_source] = self.source_vectors(node[is_source], time).cpu().numpy()
        vectors[~is_source] = self._nodes.select(node[~is_source]).cpu().numpy()
        return vectors

    # Following the stream

    @torch.no_grad()
    def reset_state(self) -> None:
        self._nodes = NodeVectors.initial(self.initial_vectors())

    def update_state(self, events: EventStream) -> None:
        for first, stop in self._ranges(len(self.graph) - len(events)):
            self._advance(first, stop)
            self._restart(stop)

    @torch.no_grad()
    def score_each(self, events: EventStream) -> ScoreArray:
        events = self.admit(events)
        start = len(self.graph)
        self.graph.append(events)
        blocks = [self.score(events.source[:0], events.time[:0])]
        for first, stop in self._ranges(start):
            old = self._nodes
            blocks.append(self.scores_before(*self._advance(first, stop), old))
            self._restart(stop)
        return np.concatenate(blocks)

    @property
    def target_rows(self) -> slice:
        """Rows of the targets in arrays that have a row for every node."""
        return slice(self.graph.space.first_target, self.graph.space.num_nodes)

    def updated_targets(
        self, events: EventRange, trajectory: Trajectory
    ) -> tuple[IntArray, Tensor]:
        """Return the target ids whose vectors the events update, [R, E], and the vectors after.

        In a bipartite graph these are the events' targets, R = 1. In a one-mode graph a source is
        a target too, R = 2.
        """
        space = self.graph.space
        roles = slice(0 if space.kind == "one-mode" else 1, 2)
        return events.nodes[roles] - space.first_target, trajectory.after_RED[roles]

    def _ranges(self, start: int) -> Iterator[tuple[int, int]]:
        """Divide the events from `start` on into ranges within which the state does not restart."""
        size = self.memory or _EVENTS_PER_CALL
        while start < len(self.graph):
            stop = min((start // size + 1) * size, start + _EVENTS_PER_CALL, len(self.graph))
            yield start, stop
            start = stop

    def _restart(self, stop: int) -> None:
        """Rebuild the state from the latest events if event `stop` is a multiple of `memory`."""
        if self.memory and stop % self.memory == 0:
            self.reset_state()
            for first in range(stop - self.memory, stop, _EVENTS_PER_CALL):
                self._advance(first, min(first + _EVENTS_PER_CALL, stop))

    @torch.no_grad()
    def _advance(self, first: int, stop: int) -> tuple[EventRange, Trajectory]:
        """Update the state by the events `[first, stop)` of the graph."""
        latest = LatestInstances(
            self.graph.node[2 * first : 2 * stop], 2 * first, self._nodes.instance
        )
        events = EventRange(self.graph, first, stop, latest)
        node = self.needed_nodes(events)
        trajectory = self.unroll(events, node, self._nodes.select(node))
        self._nodes = self._nodes.advanced(trajectory)
        return events, trajectory

    def state_tensors(self) -> dict[str, Tensor]:
        return {"vector": self._nodes.vector, "instance": torch.from_numpy(self._nodes.instance)}

    def load_state_tensors(self, tensors: dict[str, Tensor]) -> None:
        vector = tensors["vector"].to(self.config.device)
        self._nodes = NodeVectors(vector, tensors["instance"].numpy())
