"""What models have in common whose vectors are made once, of the training graph, and then stay."""

from abc import abstractmethod

import torch
from torch import Tensor

from tclgraph.arrays import FloatArray, IntArray, ScoreArray
from tclgraph.events.stream import EventStream
from tclgraph.models.learned import LearnedModel


class FrozenModel(LearnedModel):
    """Ranks by the product of two vectors, whatever has happened since training."""

    streams = False

    @abstractmethod
    def make_vectors(self) -> Tensor:
        """Of all nodes, [nodes, width], by the network as it is; without randomness."""

    def reset_state(self) -> None:
        self._vectors: Tensor | None = None

    @property
    def _all_vectors(self) -> Tensor:
        self.check_fitted()
        if self._vectors is None:
            with torch.no_grad():
                self._vectors = self.make_vectors()
        return self._vectors

    def score(self, source: IntArray, time: FloatArray) -> ScoreArray:
        vectors = self._all_vectors
        asking_BD = vectors[torch.tensor(source, device=vectors.device)]
        return (asking_BD @ vectors[self.graph.space.first_target :].T).cpu().numpy()

    def score_each(self, events: EventStream) -> ScoreArray:
        """All at once, since no event changes a score."""
        self.observe(events)
        return self.score(events.source, events.time)

    def vectors(self, node: IntArray, time: float) -> ScoreArray:
        vectors = self._all_vectors
        return vectors[torch.tensor(node, device=vectors.device)].cpu().numpy()

    def state_tensors(self) -> dict[str, Tensor]:
        return {"vectors": self._all_vectors}

    def load_state_tensors(self, tensors: dict[str, Tensor]) -> None:
        self._vectors = tensors["vectors"].to(self.config.device)
