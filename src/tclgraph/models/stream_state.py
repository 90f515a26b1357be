"""The vocabulary that a model knows, and the events it has observed.

A model *has* a `StreamState`; `Model.observe` and `Model.forget` keep it up to date.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

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
    fitted: NodeSpace
    """Numbering of the nodes that the model was fitted with. Those that were added later have
    higher ids."""

    @classmethod
    def of(
        cls,
        kind: GraphKind,
        sources: Identifiers,
        targets: Identifiers,
        fitted: NodeSpace | None = None,
    ) -> StreamState:
        """Return a state without events for this vocabulary."""
        space = NodeSpace(kind=kind, num_sources=len(sources), num_targets=len(targets))
        graph = DependencyGraph(space)
        return cls(sources=sources, targets=targets, graph=graph, fitted=fitted or space)

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
        return StreamState.of(self.space.kind, self.sources, self.targets, self.fitted)

    def copy(self) -> StreamState:
        """Return a state with the same vocabulary and events that grows independently."""
        state = self.without_events()
        state.graph.extend(self.graph.node, self.graph.time)
        return state

    def with_keys(self, sources: pl.Series, targets: pl.Series) -> StreamState:
        """Return a state that also has these keys, and no events; without a new key, this state.

        New keys get ids after all others, in the given order. In a one-mode graph, every key is a
        source and a target, and the sources come first.
        """
        all_sources = self.sources.with_keys(sources)
        if self.space.kind == "one-mode":
            all_sources = all_targets = all_sources.with_keys(targets)
        else:
            all_targets = self.targets.with_keys(targets)
        if all_sources is self.sources and all_targets is self.targets:
            return self
        return StreamState.of(self.space.kind, all_sources, all_targets, self.fitted)

    def has_vocabulary_of(self, events: EventStream) -> bool:
        """Return whether the ids of a stream are those of this state."""
        return (events.sources is self.sources or events.sources == self.sources) and (
            events.targets is self.targets or events.targets == self.targets
        )

    def renumbered(self, events: EventStream) -> EventStream:
        """Return a stream of known nodes in the ids of this state."""
        source = self.sources.ids(events.sources.keys)[events.source]
        target = self.targets.ids(events.targets.keys)[events.target]
        return replace(
            events, source=source, target=target, sources=self.sources, targets=self.targets
        )

    def check_kind(self, events: EventStream) -> None:
        """Refuse events of another graph kind."""
        if events.kind != self.space.kind:
            raise InputError(
                f"these events are of kind {events.kind}, but the model was fitted on a "
                f"{self.space.kind} graph; read the log with kind={self.space.kind!r}"
            )

    def check_log(self, events: EventStream) -> None:
        """Refuse a log that does not begin with the nodes that the model was fitted with."""
        self.check_kind(events)
        for side, fitted, given in (
            ("sources", self.sources.first(self.fitted.num_sources), events.sources),
            ("targets", self.targets.first(self.fitted.num_targets), events.targets),
        ):
            if given.first(min(len(fitted), len(given))) != fitted:
                raise InputError(
                    f"this log does not begin with the {len(fitted):,} {side} of the log that the "
                    "model was fitted on; give that log, or one that continues it, or fit again"
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
