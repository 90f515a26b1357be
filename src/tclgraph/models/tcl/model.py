"""TCL as a model: it trains on windows of events, ranks all targets, and follows the stream."""

from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from tclgraph.arrays import FloatArray, IntArray, ScoreArray
from tclgraph.dependency_graph.time_units import TimeUnits
from tclgraph.errors import InputError, did_you_mean
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream
from tclgraph.models.tcl import ranking
from tclgraph.models.tcl.config import PRESETS, TCLConfig
from tclgraph.models.tcl.network import TCLNetwork
from tclgraph.models.tcl.state import NodeStates
from tclgraph.models.tcl.terms import Choice
from tclgraph.models.tcl.windows import FullWindow, TrainingWindows, Window
from tclgraph.objectives.contrastive import contrastive_loss
from tclgraph.objectives.point_process import point_process_loss
from tclgraph.training.learned import LearnedModel


class TCL(LearnedModel):
    """Transformer-based dynamic graph modelling via contrastive learning.

    >>> from tclgraph.events.synthetic import SyntheticConfig, synthesize
    >>> split = synthesize(SyntheticConfig(events=300, sources=8, targets=9)).split(0.6, 0.2)
    >>> model = TCL(preset="paper", epochs=1, width=16, levels=3).fit(split)
    >>> len(model.recommend(0, top=5)), model.embed([0, 1]).shape
    (5, (2, 16))
    """

    name = "tcl"
    config_type = TCLConfig
    search_space = {  # noqa: RUF012  # a ClassVar of the base
        "learning_rate": (5e-4, 1e-3, 2e-3, 5e-3),
        "input_dropout": (0.1, 0.3, 0.6),
        "levels": (3, 4, 5),
        "width": (32, 64, 128),
    }
    config: TCLConfig
    network: TCLNetwork

    def __init__(self, preset: str = "default", **settings: Any) -> None:
        if preset not in PRESETS:
            raise InputError(f"unknown preset {preset!r}; {did_you_mean(preset, PRESETS)}")
        super().__init__(**{**PRESETS[preset], **settings})

    # Learning

    def prepare(self, split: Split) -> int:
        self._windows = TrainingWindows(split.train, self.config)
        self.start(split.events, **asdict(TimeUnits.of(self._windows.graph)))
        if self.network.terms:
            self.network.terms.measure(self._windows.sample_of_facts())
        return len(self._windows)

    def build_network(self) -> TCLNetwork:
        return TCLNetwork(self.config, self.graph.space.num_nodes, TimeUnits(**self.measured))

    def parameter_groups(self) -> list[dict[str, Any]]:
        groups = super().parameter_groups()
        if self.network.terms:
            terms = list(self.network.terms.parameters())
            in_terms = {id(one) for one in terms}
            encoder = [one for one in groups[0]["params"] if id(one) not in in_terms]
            rate = self.config.learning_rate * self.config.term_rate
            groups = [{"params": encoder}, {"params": terms, "lr": rate}]
        return groups

    def loss(self, batch: int, random: np.random.Generator) -> Tensor:
        if self.config.contrast == "full":
            return self.full_loss_of(self._windows.draw_full(batch, random), random)
        return self.loss_of(self._windows.draw(batch, random), random)

    def full_loss_of(self, window: FullWindow, random: np.random.Generator | None = None) -> Tensor:
        """Mean of -log p of what happened; without a generator nothing is dropped out."""
        network = self.network
        assert network.terms is not None

        def on_device(array: IntArray) -> Tensor:
            return torch.from_numpy(array).to(network.device)

        match_BK = network.node.weight.new_zeros(window.state.shape)
        if self.config.embeddings:
            vectors = network(window.packed, random)
            asking_BD = vectors.index_select(0, on_device(window.source_position))
            states_ID = vectors.index_select(0, on_device(window.state_position))
            match = network.ranking_key(asking_BD, learning=True) @ states_ID.T
            match_BK = match.gather(1, on_device(window.state))
        weight = None if window.weight is None else network.numbers(window.weight)
        found_BK: Tensor = network.terms(window.facts, match_BK, Choice(window.column_of, weight))
        return -found_BK.gather(1, on_device(window.true_column)[:, None]).mean()

    def loss_of(self, window: Window, random: np.random.Generator | None = None) -> Tensor:
        """Of given events and negatives; without a generator nothing is dropped out."""
        network = self.network
        position = torch.from_numpy(window.position).to(network.device)
        vector_BCD = functional.embedding(position, network(window.packed, random))
        match_BC = network.discriminator(vector_BCD[:, :1], vector_BCD[:, 1:])
        if self.config.objective == "contrastive":
            similarity_BC = functional.softplus(match_BC)
            return contrastive_loss(similarity_BC[:, 0], similarity_BC[:, 1:])
        intensity = network.intensity
        elapsed_BC = network.numbers(window.elapsed / network.units.mean)
        since_source_BC, since_target_BC = elapsed_BC[:, :1], elapsed_BC[:, 1:]
        line_BC = intensity.line(match_BC, since_source_BC, since_target_BC)
        span_BC = torch.minimum(since_source_BC, since_target_BC)
        return point_process_loss(
            line_BC[:, 0],
            line_BC - intensity.slope * span_BC,
            intensity.slope,
            span_BC,
            self.config.survival_weight,
        )

    # Following and ranking

    def begin(self) -> None:
        self._states = NodeStates(self.network, self.graph)

    def score(self, source: IntArray, time: FloatArray) -> ScoreArray:
        self.check_fitted()
        return ranking.score_present(self.network, self._states, source, time)

    def score_each(self, events: EventStream) -> ScoreArray:
        self.check_nodes(events)
        return ranking.score_each(self.network, self._states, events)

    def state_tensors(self) -> dict[str, Tensor]:
        return self._states.to_tensors()

    def take_state_tensors(self, tensors: dict[str, Tensor]) -> None:
        self._states.take_tensors(tensors)

    def vectors(self, node: IntArray, time: float) -> ScoreArray:  # noqa: ARG002  # the same ever
        """Predictive ones: scores are made of these, so they are what a search index needs."""
        if not self.config.embeddings:
            raise InputError("this model was fitted with embeddings=False and has no vectors")
        return self._states.vectors(node).cpu().numpy()

    def shown_scores(self, node: int, scores: ScoreArray) -> ScoreArray:
        if self.config.contrast == "full":
            likely: ScoreArray = np.exp(scores)
            return likely
        if self.config.objective == "contrastive":
            # What ranking leaves out, so that the figures are the paper's Sim.
            asking_D = self._states.vectors(np.array([node]))[0]
            additive = asking_D @ self.network.discriminator.additive
            similarity: ScoreArray = np.logaddexp(0.0, scores + additive.item())
            return similarity
        return scores
