"""Base class of models whose vectors are computed once, after training, and never change."""

from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor

from tclgraph.arrays import FloatArray, IntArray, ScoreArray
from tclgraph.baselines.own_target import rank_own_target_last
from tclgraph.events.stream import EventStream
from tclgraph.models.learned import LearnedModel
from tclgraph.models.stream_state import StreamState


class FrozenModel(LearnedModel):
    """Scores a target by the dot product of its vector with the vector of the source.

    The vectors come from the training events only; events observed later do not change them. All
    nodes that are added after training have the same vector. `measured` has the figures of
    `measure_own_targets`.
    """

    streams = False
    _vectors: Tensor | None = None

    @abstractmethod
    def make_vectors(self) -> Tensor:
        """Return the vectors of the nodes of the training events, [nodes, width].

        It makes no random draw.
        """

    @abstractmethod
    def unseen_vector(self) -> Tensor:
        """Return the vector of a node that is absent from the training events, [width]."""

    def start(self, events: EventStream, **measured: Any) -> None:
        self._vectors = None
        super().start(events, **measured)

    @torch.no_grad()
    def extend(self, state: StreamState) -> None:
        """Take over a larger vocabulary; compute the vectors, if they are not there yet."""
        known, before = self._all_vectors, self.graph.space
        unseen = self.unseen_vector()
        super().extend(state)
        space = self.graph.space
        vectors = unseen.expand(space.num_nodes, -1).clone()
        vectors[torch.from_numpy(before.numbers_in(space)).to(known.device)] = known
        self._vectors = vectors

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
        score_BT = (query_BD @ vectors[self.graph.space.first_target :].T).cpu().numpy()
        return rank_own_target_last(score_BT, source, self.measured)

    def score_each(self, events: EventStream) -> ScoreArray:
        """Score all events in one call, because no event changes a score."""
        events = self.admit(events)
        self.observe(events)
        return self.score(events.source, events.time)

    def vectors(self, node: IntArray, time: float) -> ScoreArray:
        vectors = self._all_vectors
        return vectors[torch.tensor(node, device=vectors.device)].cpu().numpy()

    def state_tensors(self) -> dict[str, Tensor]:
        return {"vectors": self._all_vectors}

    def load_state_tensors(self, tensors: dict[str, Tensor]) -> None:
        # A copy, because BLAS may round in another way if an array begins elsewhere in memory.
        self._vectors = tensors["vectors"].to(self.config.device, copy=True)
