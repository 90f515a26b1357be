"""The contract between a model and everything that uses one: evaluation, training, serving.

A model has what it *learned* (from `fit`, kept for good) and a *state* (from the events it has
observed, which grows with every `observe` and is dropped by `forget`). Scores depend on these two
and the query, so nothing a model was not shown can reach them.
"""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar, Self

import numpy as np

from tclgraph.arrays import FloatArray, IntArray, ScoreArray
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream


class Model(ABC):
    """Ranks all targets for a source at a time, and follows the stream."""

    name: ClassVar[str]
    """As in the registry."""
    streams: ClassVar[bool] = True
    """Whether events that are observed after `fit` can change a score."""
    saved_as: ClassVar[str] = "model.safetensors"

    @abstractmethod
    def fit(self, split: Split) -> Self:
        """Learn from train, choose by valid, never look at test; the state ends with train."""

    @abstractmethod
    def score(self, source: IntArray, time: FloatArray) -> ScoreArray:
        """One row per query, one column per target id; higher is likelier. State stays."""

    @abstractmethod
    def observe(self, events: EventStream) -> None:
        """Let the state follow these events, which come after all observed so far."""

    @abstractmethod
    def forget(self) -> None:
        """Drop the state, keep what was learned: as before the first event."""

    @abstractmethod
    def save(self, folder: str | Path) -> None:
        """Write what was learned and the state into a folder, whole or not at all."""

    @classmethod
    @abstractmethod
    def load(cls, folder: str | Path) -> Self:
        """What `save` wrote, with identical scores."""

    def score_each(self, events: EventStream) -> ScoreArray:
        """Score every event as if it were next, then observe it: row j knows events before j only.

        This loop is the definition. A model may override it with something faster that gives the
        same rows.
        """
        rows = []
        for event in range(len(events)):
            one = events[event : event + 1]
            rows.append(self.score(one.source, one.time))
            self.observe(one)
        return np.concatenate(rows)
