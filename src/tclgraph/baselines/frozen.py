"""Base class of models whose vectors are computed once, after training, and never change."""

from abc import abstractmethod

import torch
from torch import Tensor

from tclgraph.arrays import FloatArray, IntArray, ScoreArray
from tclgraph.events.stream import EventStream
from tclgraph.models.learned import LearnedModel


class FrozenModel(LearnedModel):
    """Scores a target by the dot product of its vector with the vector of the source.

    The vectors come from the training events only; events observed later do not change them.
    """

    streams = False

    @abstractmethod
    def make_vectors(self) -> Tensor:
        """Return the vectors of all nodes, [nodes, width], without any random draw."""

    def reset_state(self) -> None:
        self._vectors: Tensor | None = None

    @property
    def _all_vectors(self) -> Tensor:
        """Vectors of all nodes, computed at the first use."""
        self.check_fitted()
        if self._vectors is None:
            with torch.no_grad():
                self._vectors = self.make_vectors()
        return self._vectors

    def score(self, source: IntArray, time: FloatArray) -> ScoreArray:
        vectors = self._all_vectors
        query_BD = vectors[torch.tensor(source, device=vectors.device)]
        return (query_BD @ vectors[self.graph.space.first_target :].T).cpu().numpy()

    def score_each(self, events: EventStream) -> ScoreArray:
        """Score all events in one call, because no event changes a score."""
        self.observe(events)
        return self.score(events.source, events.time)

    def vectors(self, node: IntArray, time: float) -> ScoreArray:
        vectors = self._all_vectors
        return vectors[torch.tensor(node, device=vectors.device)].cpu().numpy()

    def state_tensors(self) -> dict[str, Tensor]:
        return {"vectors": self._all_vectors}

    def load_state_tensors(self, tensors: dict[str, Tensor]) -> None:
        self._vectors = tensors["vectors"].to(self.config.device)
