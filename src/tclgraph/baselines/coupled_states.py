"""Base of JODIE and DeepCoevolve, in which every event updates its source's and target's vector.

A node has one vector as a source and another as a target, in one-mode graphs too. Both models have
separate weights for the two roles, and compare a source's vector with the vectors of targets. If
a node had one vector for both roles, it would be its own best target.

Shapes: E events of a range, N nodes, S sources, T targets, D width, B rows, K inputs of an event.
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
from tclgraph.events.stream import EventStream
from tclgraph.sampling.t_batches import LatestEvents, t_batches
from tclgraph.models.learned import LearnedModel

# Number of events by which the state advances in one call. Every t-batch copies the vectors of all
# nodes of the call, so more events per call would not be faster.
_EVENTS_PER_CALL = 1024

Cell: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""Recurrent cell: from the vectors of the sources and targets of events, [2, B, D], and inputs of
both roles, [2, B, K], to the vectors after the events, [2, B, D]. It computes both roles in one
call, because small matrix products cost more to launch than to compute."""


class EventRange(NamedTuple):
    """Consecutive events of a graph, with the latest earlier event of every node.

    The range is `[first, stop)`.
    """

    graph: DependencyGraph
    first: int
    stop: int
    latest_as_source: LatestEvents
    latest_as_target: LatestEvents

    @property
    def event(self) -> IntArray:
        """Numbers of the events."""
        return np.arange(self.first, self.stop)

    @property
    def source(self) -> IntArray:
        """Source ids of the events."""
        return self.graph.node[2 * self.first : 2 * self.stop : 2]

    @property
    def target(self) -> IntArray:
        """Target ids of the events."""
        target: IntArray = self.graph.node[2 * self.first + 1 : 2 * self.stop : 2]
        return target - self.graph.space.first_target

    @property
    def time(self) -> FloatArray:
        """Timestamps of the events, in seconds."""
        return self.graph.time[self.first : self.stop]

    @classmethod
    def all_events(cls, graph: DependencyGraph) -> "EventRange":
        """Return the range of all events of a graph."""
        target = graph.node[1::2] - graph.space.first_target
        return cls(graph, 0, len(graph), LatestEvents(graph.node[0::2]), LatestEvents(target))

    def subrange(self, first: int, stop: int) -> "EventRange":
        """Return the events `[first, stop)`; latest events before `first` remain known."""
        return self._replace(first=first, stop=min(stop, self.stop))


class Trajectory:
    """Vectors of nodes in one role, before each event of a range."""

    def __init__(
        self, node: IntArray, first_ND: Tensor, after_ED: Tensor, first: int, latest: LatestEvents
    ) -> None:
        """Take the vectors of ascending nodes before event `first`, and those after each event."""
        self.node = node
        self.after_ED = after_ED
        self._all = torch.cat([first_ND, after_ED])
        self.latest = latest
        self._first = first

    def before(self, node: IntArray, event: IntArray) -> Tensor:
        """Return the vectors of nodes just before events, [..., D]."""
        latest = self.latest.before(node, event)
        row = np.where(
            latest >= self._first,
            len(self.node) + latest - self._first,
            np.searchsorted(self.node, node),
        )
        return functional.embedding(as_index(row, self._all), self._all)


def unroll(
    events: EventRange,
    sources: tuple[IntArray, Tensor],
    targets: tuple[IntArray, Tensor],
    cell: Cell,
    input_2EK: Tensor,
) -> tuple[Trajectory, Trajectory]:
    """Apply a recurrent cell to all events, with the same result as one event after another.

    `sources` and `targets` are ascending nodes, at least all that have an event in the range, and
    their vectors before the range. Gradients flow through the complete range.
    """
    (source_node, source_ND), (target_node, target_ND) = sources, targets
    source = np.searchsorted(source_node, events.source)
    target = np.searchsorted(target_node, events.target) + len(source_node)
    order, start = t_batches(source, target)
    row_2E = as_index(np.stack([source[order], target[order]]), source_ND)
    input_2EK = input_2EK.index_select(1, as_index(order, source_ND))
    state_ND = torch.cat([source_ND, target_ND])
    after = []
    for bounds in pairwise(start.tolist()):
        row, input_2BK = row_2E[:, slice(*bounds)].flatten(), input_2EK[:, slice(*bounds)]
        new_2BD = cell(torch.unflatten(state_ND.index_select(0, row), 0, (2, -1)), input_2BK)
        state_ND = state_ND.index_copy(0, row, new_2BD.flatten(0, 1))
        after.append(new_2BD)
    after_2ED = torch.cat(after, dim=1).index_select(1, as_index(np.argsort(order), source_ND))
    return (
        Trajectory(source_node, source_ND, after_2ED[0], events.first, events.latest_as_source),
        Trajectory(target_node, target_ND, after_2ED[1], events.first, events.latest_as_target),
    )


def with_updates(before_BT: ScoreArray, after_BE: ScoreArray, target: IntArray) -> ScoreArray:
    """Return a value for every row and target, where event j updates the value of its target.

    `before_BT` holds the values without any update. after_BE[k, j] is the value of event j's target
    in row k after the event; it applies to the rows after j.

    >>> with_updates(np.zeros((3, 2)), np.array([[1, 2, 3]] * 3), np.array([1, 1, 0])).tolist()
    [[0.0, 0.0], [0.0, 1.0], [0.0, 2.0]]
    """
    value_BT = before_BT.copy()
    for event, column in enumerate(target.tolist()):
        value_BT[event + 1 :, column] = after_BE[event + 1 :, event]
    return value_BT


def as_index(array: IntArray, like: Tensor) -> Tensor:
    """Return the array as an index tensor on the device of another tensor."""
    # A copy, because the columns of a stream are read-only and torch tensors cannot be.
    return torch.tensor(array, device=like.device)


def event_times(event: IntArray, graph: DependencyGraph, start: float) -> FloatArray:
    """Return the timestamps of events, but at least `start`; `start` also in place of NONE."""
    time = np.full(event.shape, start)
    time[event >= 0] = graph.time[event[event >= 0]]
    not_before_start: FloatArray = np.maximum(time, start)
    return not_before_start


class RoleState(NamedTuple):
    """Vectors and latest events of all nodes in one role."""

    vector: Tensor
    event: IntArray
    """Latest event of each node in this role, or NONE."""

    @classmethod
    def initial(cls, vector_ND: Tensor) -> "RoleState":
        """Return the state before the first event."""
        return cls(vector_ND.contiguous(), np.full(len(vector_ND), NONE))

    def select(self, node: IntArray) -> tuple[IntArray, Tensor]:
        """Return these nodes and their vectors."""
        return node, self.vector[as_index(node, self.vector)]

    def advanced(self, trajectory: Trajectory, stop: int) -> "RoleState":
        """Return a new state, that before event `stop`."""
        node, until = trajectory.node, np.full(len(trajectory.node), stop)
        event = self.event.copy()
        event[node] = trajectory.latest.before(node, until)
        row = as_index(node, self.vector)
        return RoleState(self.vector.index_copy(0, row, trajectory.before(node, until)), event)


class CoupledModel(LearnedModel):
    """Base class of models whose state is a vector of every source and of every target."""

    @property
    def memory(self) -> int | None:
        """Smallest number of latest events that the state depends on; None: all events.

        After every `memory` events the state starts again from the initial vectors and follows the
        latest `memory` events once more. So the state depends on the events alone, and not on the
        blocks in which they were observed.
        """
        return None

    @abstractmethod
    def initial_states(self) -> tuple[Tensor, Tensor]:
        """Return the vectors before the first event of sources, [S, D], and targets, [T, D]."""

    @abstractmethod
    def unroll(
        self, events: EventRange, sources: tuple[IntArray, Tensor], targets: tuple[IntArray, Tensor]
    ) -> tuple[Trajectory, Trajectory]:
        """Update the vectors of sources and targets by the events of a range."""

    @abstractmethod
    def scores_before(
        self, events: EventRange, sources: Trajectory, targets: Trajectory, old_targets: RoleState
    ) -> ScoreArray:
        """Return the scores of all targets for each event's source, just before the event.

        `old_targets` is the state of all targets before the range.
        """

    def needed_targets(self, events: EventRange) -> IntArray:
        """Return, ascending, the targets whose vectors are needed during the range."""
        return np.unique(events.target)

    def as_tensor(self, array: FloatArray) -> Tensor:
        """Return the array with the data type and device of the network."""
        weight = next(self.network.parameters())
        return torch.from_numpy(array).to(weight.dtype).to(weight.device)

    def source_vectors(self, source: IntArray, time: float) -> Tensor:
        """Return the vectors of sources at a time; a model may ignore the time."""
        return self._sources.select(source)[1]

    @torch.no_grad()
    def vectors(self, node: IntArray, time: float) -> ScoreArray:
        """Return the vectors of nodes in their role.

        In a one-mode graph the vectors of both roles are concatenated, that of the source first.
        """
        space = self.graph.space
        if space.kind == "one-mode":
            target_BD = self._targets.select(node)[1]
            return torch.cat([self.source_vectors(node, time), target_BD], dim=1).cpu().numpy()
        vectors = np.empty((len(node), self._sources.vector.shape[1]), dtype=np.float32)
        is_source = node < space.first_target
        vectors[is_source] = self.source_vectors(node[is_source], time).cpu().numpy()
        target_BD = self._targets.select(node[~is_source] - space.first_target)[1]
        vectors[~is_source] = target_BD.cpu().numpy()
        return vectors

    # Following the stream

    @torch.no_grad()
    def reset_state(self) -> None:
        self._sources, self._targets = map(RoleState.initial, self.initial_states())

    def update_state(self, events: EventStream) -> None:
        for first, stop in self._ranges(len(self.graph) - len(events)):
            self._advance(first, stop)
            self._restart(stop)

    @torch.no_grad()
    def score_each(self, events: EventStream) -> ScoreArray:
        self.check_events(events)
        start = len(self.graph)
        self.graph.append(events)
        blocks = [self.score(events.source[:0], events.time[:0])]
        for first, stop in self._ranges(start):
            old_targets = self._targets
            blocks.append(self.scores_before(*self._advance(first, stop), old_targets))
            self._restart(stop)
        return np.concatenate(blocks)

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
    def _advance(self, first: int, stop: int) -> tuple[EventRange, Trajectory, Trajectory]:
        """Update the state by the events `[first, stop)` of the graph."""
        node = self.graph.node[2 * first : 2 * stop]
        events = EventRange(
            self.graph,
            first,
            stop,
            LatestEvents(node[0::2], first, self._sources.event),
            LatestEvents(node[1::2] - self.graph.space.first_target, first, self._targets.event),
        )
        sources, targets = self.unroll(
            events,
            self._sources.select(np.unique(events.source)),
            self._targets.select(self.needed_targets(events)),
        )
        self._sources = self._sources.advanced(sources, stop)
        self._targets = self._targets.advanced(targets, stop)
        return events, sources, targets

    def state_tensors(self) -> dict[str, Tensor]:
        return {
            "source": self._sources.vector,
            "source_event": torch.from_numpy(self._sources.event),
            "target": self._targets.vector,
            "target_event": torch.from_numpy(self._targets.event),
        }

    def load_state_tensors(self, tensors: dict[str, Tensor]) -> None:
        self._sources, self._targets = (
            RoleState(tensors[role].to(self.config.device), tensors[f"{role}_event"].numpy())
            for role in ("source", "target")
        )
