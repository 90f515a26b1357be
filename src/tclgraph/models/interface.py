"""The contract between a model and what uses it: evaluation, training, answers, serving.

A model has what it *learned* (in `fit`, fixed afterwards) and a *state* (from the events it has
observed; it grows with every `observe` and is dropped by `forget`). Scores depend on these two and
on the query only, so events the model has not observed cannot influence them.

A model of your own subclasses `Model` and implements `fit`, `score`, `reset_state` and
`update_state`, plus `settings`, `tensors` and `load_tensors` if it has anything to save.
`tclgraph.testing` checks it against this contract.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl
from torch import Tensor

from tclgraph.answers.recommendations import Recommendation, recommend
from tclgraph.answers.vectors import Side, SimilarNode, embed, embeddings, similar
from tclgraph.arrays import FloatArray, IntArray, ScoreArray
from tclgraph.errors import InputError
from tclgraph.events.identifiers import Key, key_column
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream
from tclgraph.models.saving import SavedModel, read_model, write_model
from tclgraph.models.stream_state import StreamState


class Model(ABC):
    """Ranks all targets for a source at a time, and follows the stream."""

    name: ClassVar[str]
    """Name of the model in the registry."""
    streams: ClassVar[bool] = True
    """Whether events observed after `fit` can change a score."""

    state: StreamState
    """Vocabulary and observed events; exists after `fit` or `load`."""
    measured: dict[str, Any]
    """Figures measured on the training data, saved as JSON; exists after `fit` or `load`."""

    # Learning and scoring

    @abstractmethod
    def fit(self, split: Split) -> Self:
        """Learn from train, select by valid, never look at test; the state ends with train."""

    @abstractmethod
    def score(self, source: IntArray, time: FloatArray) -> ScoreArray:
        """Return one row per query and one column per target id; higher is likelier.

        The state does not change.
        """

    def score_each(self, events: EventStream) -> ScoreArray:
        """Score every event as if it were next, then observe it: row j knows events before j only.

        Nodes that are new to the model are added first, so all rows have the same targets.

        This loop is the definition. A model may override it with something faster that returns the
        same rows.
        """
        events = self.admit(events)
        rows = []
        for number in range(len(events)):
            event = events[number : number + 1]
            rows.append(self.score(event.source, event.time))
            self.observe(event)
        return np.concatenate(rows)

    # Following the stream

    def start_state(self, events: EventStream, **measured: Any) -> None:
        """Take over the vocabulary of a stream, with no events observed; for use in `fit`.

        `measured` are figures of the training data that the model needs later.
        """
        self.state, self.measured = StreamState.for_stream(events), measured
        self.reset_state()

    def observe(self, events: EventStream) -> None:
        """Update the state with these events, which follow all events observed so far.

        Their nodes are known by their keys. Nodes that are new to the model are added first.
        """
        events = self.admit(events)
        self.state.graph.append(events)
        self.update_state(events)

    def admit(self, events: EventStream) -> EventStream:
        """Return events in the ids of the model, after adding the nodes that are new to it."""
        self.check_fitted()
        self.state.check_kind(events)
        if self.state.has_vocabulary_of(events):
            return events
        events = events.compact()  # in order of first appearance, without nodes of later events
        self._grow(self.state.with_keys(events.sources.keys, events.targets.keys))
        return self.state.renumbered(events)

    def add_nodes(self, sources: Sequence[Key] = (), targets: Sequence[Key] = ()) -> None:
        """Add nodes without events; keys that the model knows already are ignored.

        New nodes get ids after all others, and what was learned stays. All observed events are
        replayed, so add many nodes at once.
        """
        self.check_fitted()
        self._grow(self.state.with_keys(key_column(sources), key_column(targets)))

    def _grow(self, larger: StreamState) -> None:
        """Take over a larger vocabulary, and replay the observed events."""
        if larger is not self.state:
            observed = self.state.events()
            self.extend(larger)
            self.observe(larger.renumbered(observed))

    def extend(self, state: StreamState) -> None:
        """Take over a state without events, whose vocabulary begins with that of the model.

        What was learned stays, and does not depend on the added nodes. A model that learns
        something for each node overrides this, to define it for the added ones.
        """
        self.state = state
        self.reset_state()

    def without_events(self) -> Self:
        """Return a copy that has observed no events; the two share what was learned."""
        model = copy(self)
        model.forget()
        return model

    def forget(self) -> None:
        """Drop all observed events and keep what was learned."""
        if self.is_fitted:
            # A new object, so that a copy of the model keeps the old state.
            self.state = self.state.without_events()
            self.reset_state()

    @abstractmethod
    def reset_state(self) -> None:
        """Reset the model's own state to that before the first event."""

    @abstractmethod
    def update_state(self, events: EventStream) -> None:
        """Update the model's own state; `self.state` has the events already."""

    @property
    def is_fitted(self) -> bool:
        """Whether the model was fitted or loaded."""
        return hasattr(self, "state")

    def check_fitted(self) -> None:
        """Refuse to work with a model that was neither fitted nor loaded."""
        if not self.is_fitted:
            raise InputError("this model is not fitted yet; call fit, or load a saved model")

    # Answers in the keys of the log

    def recommend(
        self,
        source: Key,
        *,
        top: int = 10,
        at: float | None = None,
        exclude_seen: bool = False,
        candidates: Sequence[Key] | None = None,
    ) -> list[Recommendation]:
        """Return the most likely next targets of a source, best first.

        `at` (seconds, as in the log) uses only events strictly before that time; by default all
        observed events count. `exclude_seen` leaves out targets the source has interacted with.
        `candidates` restricts the ranking to these targets. A source or candidate that the model
        does not know counts as a node without events; this replays the observed events, so ask for
        many new sources at once.
        """
        many = self.recommend_many(
            [source], top=top, at=at, exclude_seen=exclude_seen, candidates=candidates
        )
        return many[source]

    def recommend_many(
        self,
        sources: Sequence[Key],
        *,
        top: int = 10,
        at: float | None = None,
        exclude_seen: bool = False,
        candidates: Sequence[Key] | None = None,
    ) -> dict[Key, list[Recommendation]]:
        """Return the recommendations of several sources, by source; see `recommend`."""
        return recommend(
            self, sources, top=top, at=at, exclude_seen=exclude_seen, candidates=candidates
        )

    def similar(
        self, key: Key, *, top: int = 10, side: Side = "source", at: float | None = None
    ) -> list[SimilarNode]:
        """Return the nodes of one side whose vectors have the highest cosine with a node's."""
        return similar(self, key, top=top, side=side, at=at)

    def embed(
        self, keys: Sequence[Key] | None = None, *, side: Side = "source", at: float | None = None
    ) -> ScoreArray:
        """Return one vector per key, or of all nodes of a side; `at` is as in `recommend`."""
        return embed(self, keys, side=side, at=at)

    def embeddings(self, *, at: float | None = None) -> pl.DataFrame:
        """Return all vectors as a table: side ("both" in a one-mode graph), key, vector."""
        return embeddings(self, at=at)

    def vectors(self, node: IntArray, time: float) -> ScoreArray:  # noqa: ARG002
        """Return the vectors of nodes (not ids, see `NodeSpace`) as of a time."""
        raise InputError(f"{self.name} has no vectors; use a model that learns them, such as tcl")

    def display_scores(self, source: int, scores: ScoreArray) -> ScoreArray:  # noqa: ARG002
        """Return the scores of one source as people should see them, in the same order."""
        return scores

    # Saving

    def save(self, folder: str | Path) -> None:
        """Write the model and its state into a folder, completely or not at all."""
        self.check_fitted()
        saved = SavedModel(
            model=self.name,
            settings=self.settings(),
            measured=self.measured,
            state=self.state,
            tensors=self.tensors(),
        )
        write_model(folder, saved)

    @classmethod
    def load(cls, folder: str | Path, *, device: str | None = None) -> Self:
        """Read what `save` wrote; scores are identical.

        `device` overrides the device of the settings, for a machine that does not have it.
        """
        return cls.from_saved(read_model(folder), device=device)

    @classmethod
    def from_saved(cls, saved: SavedModel, *, device: str | None = None) -> Self:  # noqa: ARG003
        """Build the model from the content of its file; a model without a network has no device."""
        model = cls(**saved.settings)
        model.state, model.measured = saved.state, saved.measured
        model.reset_state()
        model.load_tensors(saved.tensors)
        return model

    def settings(self) -> dict[str, Any]:
        """Return all settings as JSON values; the constructor takes them back."""
        return {}

    def tensors(self) -> dict[str, Tensor]:
        """Return what scores depend on besides the settings and the observed events."""
        return {}

    def load_tensors(self, tensors: dict[str, Tensor]) -> None:
        """Restore what `tensors` returned.

        Without tensors of its own, a model derives its state from the observed events.
        """
        if not tensors:
            self.update_state(self.state.events())
