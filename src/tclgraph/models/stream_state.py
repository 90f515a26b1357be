"""The vocabulary that a model knows, and the events it has observed.

A model *has* a `StreamState`; `Model.observe` and `Model.forget` keep it up to date.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tclgraph.dependency_graph.graph import DependencyGraph
from tclgraph.errors import InputError
from tclgraph.events.identifiers import Identifiers
from tclgraph.events.node_space import NodeSpace
from tclgraph.events.stream import EventStream, GraphKind
from tclgraph.layers.node_tables import AddedNodes, Growth


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamState:
    """Keys and ids of all nodes, and the dependency graph of all observed events."""

    sources: Identifiers
    targets: Identifiers
    """The same object as `sources` in a one-mode graph."""
    graph: DependencyGraph

    @classmethod
    def of(cls, kind: GraphKind, sources: Identifiers, targets: Identifiers) -> StreamState:
        """Return a state without events for this vocabulary."""
        space = NodeSpace(kind=kind, num_sources=len(sources), num_targets=len(targets))
        return cls(sources=sources, targets=targets, graph=DependencyGraph(space))

    @classmethod
    def for_stream(cls, events: EventStream) -> StreamState:
        """Return a state without events for the vocabulary of a stream."""
        return cls.of(events.kind, events.sources, events.targets)

    @property
    def space(self) -> NodeSpace:
        """The numbering of nodes."""
        return self.graph.space

    @property
    def last_time(self) -> float:
        """Time of the last observed event, 0 if there is none."""
        return float(self.graph.time[-1]) if len(self.graph) else 0.0

    def growth_since(self, before: StreamState, seed: int) -> Growth:
        """Return the nodes that this state has and an earlier one, with fewer keys, has not.

        The seeds of their random numbers depend on `seed`, the side and the key.
        """
        old, space = before.space, self.space
        assert before.sources == self.sources.first(old.num_sources), "known sources keep their ids"
        assert before.targets == self.targets.first(old.num_targets), "known targets keep their ids"
        sources = AddedNodes(
            np.arange(old.num_sources),
            np.arange(old.num_sources, space.num_sources),
            self.sources.seeds(old.num_sources, f"{seed} source"),
        )
        targets = AddedNodes(
            np.arange(old.num_targets),
            np.arange(old.num_targets, space.num_targets),
            self.targets.seeds(old.num_targets, f"{seed} target"),
        )
        nodes = sources
        if space.kind == "bipartite":
            nodes = AddedNodes(
                old.numbers_in(space),
                np.concatenate([sources.new, space.first_target + targets.new]),
                np.concatenate([sources.seed, targets.seed]),
            )
        return {"sources": sources, "targets": targets, "nodes": nodes}

    def without_events(self) -> StreamState:
        """Return a state with the same vocabulary and no events."""
        return StreamState.of(self.space.kind, self.sources, self.targets)

    def copy(self) -> StreamState:
        """Return a state with the same vocabulary and events that grows independently."""
        state = self.without_events()
        state.graph.extend(self.graph.node, self.graph.time)
        return state

    def check_vocabulary(self, events: EventStream) -> None:
        """Refuse events whose nodes are not the ones the model was fitted on."""
        space = self.space
        is_same = (events.sources is self.sources or events.sources == self.sources) and (
            events.targets is self.targets or events.targets == self.targets
        )
        if not is_same or events.kind != space.kind:
            raise InputError(
                "these events have other nodes than those the model was fitted on "
                f"({events.num_sources} sources and {events.num_targets} targets, fitted on "
                f"{space.num_sources} and {space.num_targets}); "
                "give the same log with the same split, or fit again"
            )

    def events(self) -> EventStream:
        """Return all observed events as a stream."""
        return self._first(len(self.graph))

    def events_before(self, time: float) -> EventStream:
        """Return the observed events strictly before a time."""
        return self._first(int(np.searchsorted(self.graph.time, time, side="left")))

    def _first(self, num_events: int) -> EventStream:
        node = self.graph.node[: 2 * num_events]
        return EventStream(
            source=node[0::2].copy(),
            target=node[1::2] - self.space.first_target,
            time=self.graph.time[:num_events].copy(),
            sources=self.sources,
            targets=self.targets,
            kind=self.space.kind,
        )
