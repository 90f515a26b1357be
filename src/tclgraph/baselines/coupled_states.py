"""What JODIE and DeepCoevolve have in common: every event updates its source's and target's vector.

A node has one vector as a source and another as a target, in one-mode graphs too: both models have
weights of their own for either role, and compare a source's vector with those of targets. With one
vector for both roles a node would be its own best target.

Shapes: E events of a stretch, N nodes, S sources, T targets, D width, B rows.
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

# Events that the state follows at once. Each of their groups copies the vectors of all their nodes,
# so that more at once would not be faster.
_EVENTS_AT_ONCE = 1024

Cell: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""From the vectors of both parties of events, [2, B, D], and something that is given of either,
[2, B, K], to their vectors after. Both roles at once, as small products cost more to call than to
compute."""


class Stretch(NamedTuple):
    """Consecutive events of a graph, and which one each node had before any of them."""

    graph: DependencyGraph
    first: int
    stop: int
    as_source: LatestEvents
    as_target: LatestEvents

    @property
    def event(self) -> IntArray:
        return np.arange(self.first, self.stop)

    @property
    def source(self) -> IntArray:
        return self.graph.node[2 * self.first : 2 * self.stop : 2]

    @property
    def target(self) -> IntArray:
        target: IntArray = self.graph.node[2 * self.first + 1 : 2 * self.stop : 2]
        return target - self.graph.space.first_target

    @property
    def time(self) -> FloatArray:
        return self.graph.time[self.first : self.stop]

    @classmethod
    def whole(cls, graph: DependencyGraph) -> "Stretch":
        """All events that there are."""
        target = graph.node[1::2] - graph.space.first_target
        return cls(graph, 0, len(graph), LatestEvents(graph.node[0::2]), LatestEvents(target))

    def part(self, first: int, stop: int) -> "Stretch":
        """Some of these events, which know all that were before them."""
        return self._replace(first=first, stop=min(stop, self.stop))


class Trajectory:
    """Vectors of some nodes in one role, before any event of a stretch."""

    def __init__(
        self, node: IntArray, first_ND: Tensor, after_ED: Tensor, first: int, latest: LatestEvents
    ) -> None:
        """From vectors of ascending nodes before event `first`, and those after each event."""
        self.node = node
        self.after_ED = after_ED
        self._all = torch.cat([first_ND, after_ED])
        self.latest = latest
        self._first = first

    def before(self, node: IntArray, event: IntArray) -> Tensor:
        """Vectors of nodes just before events, [..., D]."""
        latest = self.latest.before(node, event)
        place = np.where(
            latest >= self._first,
            len(self.node) + latest - self._first,
            np.searchsorted(self.node, node),
        )
        return functional.embedding(as_index(place, self._all), self._all)


def roll(
    stretch: Stretch,
    sources: tuple[IntArray, Tensor],
    targets: tuple[IntArray, Tensor],
    cell: Cell,
    given_2EK: Tensor,
) -> tuple[Trajectory, Trajectory]:
    """Let both parties of every event update each other, as if one event came after the other.

    Of either role are given: ascending nodes, among them all that have an event, and their vectors
    before the stretch. Gradients flow through all of it.
    """
    (source_node, source_ND), (target_node, target_ND) = sources, targets
    source = np.searchsorted(source_node, stretch.source)
    target = np.searchsorted(target_node, stretch.target) + len(source_node)
    order, start = t_batches(source, target)
    place_2E = as_index(np.stack([source[order], target[order]]), source_ND)
    given_2EK = given_2EK.index_select(1, as_index(order, source_ND))
    now_ND = torch.cat([source_ND, target_ND])
    after = []
    for group in pairwise(start.tolist()):
        place, given_2BK = place_2E[:, slice(*group)].flatten(), given_2EK[:, slice(*group)]
        new_2BD = cell(torch.unflatten(now_ND.index_select(0, place), 0, (2, -1)), given_2BK)
        now_ND = now_ND.index_copy(0, place, new_2BD.flatten(0, 1))
        after.append(new_2BD)
    after_2ED = torch.cat(after, dim=1).index_select(1, as_index(np.argsort(order), source_ND))
    return (
        Trajectory(source_node, source_ND, after_2ED[0], stretch.first, stretch.as_source),
        Trajectory(target_node, target_ND, after_2ED[1], stretch.first, stretch.as_target),
    )


def revealed(before_BT: ScoreArray, after_BE: ScoreArray, target: IntArray) -> ScoreArray:
    """Row by row what holds of every target, where row j reveals something of target j.

    `before` holds until then, and after[k, j] says what holds in row k of target j.

    >>> revealed(np.zeros((3, 2)), np.array([[1, 2, 3]] * 3), np.array([1, 1, 0])).tolist()
    [[0.0, 0.0], [0.0, 1.0], [0.0, 2.0]]
    """
    found = before_BT.copy()
    for row, one in enumerate(target.tolist()):
        found[row + 1 :, one] = after_BE[row + 1 :, row]
    return found


def as_index(array: IntArray, like: Tensor) -> Tensor:
    # A copy: a stream's columns are read-only, which torch cannot promise to keep.
    return torch.tensor(array, device=like.device)


def times_of(event: IntArray, graph: DependencyGraph, start: float) -> FloatArray:
    """When events were; `start` in place of NONE, and for those before it."""
    time = np.full(event.shape, start)
    time[event >= 0] = graph.time[event[event >= 0]]
    later: FloatArray = np.maximum(time, start)
    return later


class RoleState(NamedTuple):
    """Where all nodes stand in one role."""

    vector: Tensor
    event: IntArray
    """The last event that each one had, or NONE."""

    @classmethod
    def first(cls, vector_ND: Tensor) -> "RoleState":
        return cls(vector_ND.contiguous(), np.full(len(vector_ND), NONE))

    def of(self, node: IntArray) -> tuple[IntArray, Tensor]:
        """Some nodes, and their vectors."""
        return node, self.vector[as_index(node, self.vector)]

    def moved(self, along: Trajectory, stop: int) -> "RoleState":
        """As it is before event `stop`; this one stays as it was."""
        node, until = along.node, np.full(len(along.node), stop)
        event = self.event.copy()
        event[node] = along.latest.before(node, until)
        place = as_index(node, self.vector)
        return RoleState(self.vector.index_copy(0, place, along.before(node, until)), event)


class CoupledModel(LearnedModel):
    """A model whose state is a vector for every source and every target."""

    @property
    def memory(self) -> int | None:
        """How many events the state follows at least, from the first vectors on; None: all.

        Otherwise it begins again after every so many, and follows the last so many once more. So it
        depends on the number of events alone, and never on how they were handed over.
        """
        return None

    @abstractmethod
    def first_states(self) -> tuple[Tensor, Tensor]:
        """Vectors that sources, and targets, have before their first event, [S, D] and [T, D]."""

    @abstractmethod
    def roll(
        self, stretch: Stretch, sources: tuple[IntArray, Tensor], targets: tuple[IntArray, Tensor]
    ) -> tuple[Trajectory, Trajectory]:
        """Let these events update the vectors that their parties have before the stretch."""

    @abstractmethod
    def scores_before(
        self, stretch: Stretch, sources: Trajectory, targets: Trajectory, standing: RoleState
    ) -> ScoreArray:
        """Of all targets, for each event's source just before the event.

        Where targets stood before the whole stretch is given last.
        """

    def needed_targets(self, stretch: Stretch) -> IntArray:
        """Those whose vectors are asked for while the stretch goes on, ascending."""
        return np.unique(stretch.target)

    def numbers(self, array: FloatArray) -> Tensor:
        """In the network's precision, where the network is."""
        weight = next(self.network.parameters())
        return torch.from_numpy(array).to(weight.dtype).to(weight.device)

    def source_vectors(self, source: IntArray, time: float) -> Tensor:
        """As of a time; they need not depend on it."""
        return self._sources.of(source)[1]

    @torch.no_grad()
    def vectors(self, node: IntArray, time: float) -> ScoreArray:
        """In its role; a node of a one-mode graph has both, one beside the other."""
        space = self.graph.space
        if space.kind == "one-mode":
            target_BD = self._targets.of(node)[1]
            return torch.cat([self.source_vectors(node, time), target_BD], dim=1).cpu().numpy()
        found = np.empty((len(node), self._sources.vector.shape[1]), dtype=np.float32)
        is_source = node < space.first_target
        found[is_source] = self.source_vectors(node[is_source], time).cpu().numpy()
        target_BD = self._targets.of(node[~is_source] - space.first_target)[1]
        found[~is_source] = target_BD.cpu().numpy()
        return found

    # Following the stream

    @torch.no_grad()
    def reset_state(self) -> None:
        self._sources, self._targets = (RoleState.first(one) for one in self.first_states())

    def update_state(self, events: EventStream) -> None:
        for first, stop in self._pieces(len(self.graph) - len(events)):
            self._advance(first, stop)
            self._restart(stop)

    @torch.no_grad()
    def score_each(self, events: EventStream) -> ScoreArray:
        self.check_events(events)
        start = len(self.graph)
        self.graph.append(events)
        blocks = [self.score(events.source[:0], events.time[:0])]
        for first, stop in self._pieces(start):
            standing = self._targets
            blocks.append(self.scores_before(*self._advance(first, stop), standing))
            self._restart(stop)
        return np.concatenate(blocks)

    def _pieces(self, start: int) -> Iterator[tuple[int, int]]:
        """The events from this one on, in parts within which the state does not begin again."""
        size = self.memory or _EVENTS_AT_ONCE
        while start < len(self.graph):
            stop = min((start // size + 1) * size, start + _EVENTS_AT_ONCE, len(self.graph))
            yield start, stop
            start = stop

    def _restart(self, stop: int) -> None:
        if self.memory and stop % self.memory == 0:
            self.reset_state()
            for first in range(stop - self.memory, stop, _EVENTS_AT_ONCE):
                self._advance(first, min(first + _EVENTS_AT_ONCE, stop))

    @torch.no_grad()
    def _advance(self, first: int, stop: int) -> tuple[Stretch, Trajectory, Trajectory]:
        """Take events of the graph into the state."""
        node = self.graph.node[2 * first : 2 * stop]
        stretch = Stretch(
            self.graph,
            first,
            stop,
            LatestEvents(node[0::2], first, self._sources.event),
            LatestEvents(node[1::2] - self.graph.space.first_target, first, self._targets.event),
        )
        sources, targets = self.roll(
            stretch,
            self._sources.of(np.unique(stretch.source)),
            self._targets.of(self.needed_targets(stretch)),
        )
        self._sources = self._sources.moved(sources, stop)
        self._targets = self._targets.moved(targets, stop)
        return stretch, sources, targets

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
