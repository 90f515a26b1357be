"""TCL as a model: it trains on windows of events, ranks all targets, and follows the stream.

Shapes: B events or queries, C columns (source, true target, negatives), K candidates, T targets,
D width.
"""

from dataclasses import asdict
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from tclgraph.arrays import FloatArray, IntArray, ScoreArray
from tclgraph.dependency_graph.interval_scaling import IntervalScale
from tclgraph.encoding.node_states import NodeStates, elapsed_seconds
from tclgraph.encoding.training_windows import CandidateRoots, SampledRoots, TrainingWindows
from tclgraph.encoding.two_stream import EncoderInputs
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream
from tclgraph.models.learned import LearnedModel
from tclgraph.models.tcl.config import TCLConfig
from tclgraph.models.tcl.network import TCLNetwork
from tclgraph.objectives.contrastive import contrastive_loss
from tclgraph.sampling.negatives import draw_negatives
from tclgraph.threads import threads_for_parts
from tclgraph.training.trainable import UseOfThreads


class DrawnWindow(NamedTuple):
    """The part of a batch's inputs that does not depend on the network."""

    event: IntArray
    roots: SampledRoots | CandidateRoots
    inputs: list[EncoderInputs]


class TCL(LearnedModel):
    """Transformer-based dynamic graph modelling via contrastive learning (arXiv 2105.07944).

    >>> from tclgraph.events.synthetic import SyntheticConfig, synthesize
    >>> split = synthesize(SyntheticConfig(events=300, sources=8, targets=9)).split(0.6, 0.2)
    >>> model = TCL(epochs=1, width=16, levels=3).fit(split)
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

    # Training

    def prepare(self, split: Split) -> int:
        self.windows = TrainingWindows(split.train, self.config.batch_size)
        self.start(split.events, **asdict(IntervalScale.measure(self.windows.graph)))
        return len(self.windows)

    def build_network(self) -> TCLNetwork:
        return TCLNetwork(self.config, self.graph.space.num_nodes, IntervalScale(**self.measured))

    @property
    def use_of_threads(self) -> UseOfThreads:
        return "parts"

    def draw_batch(self, batch: int, random: np.random.Generator) -> DrawnWindow:
        event = self.windows.events(batch)
        encoder, windows = self.network.encoder, self.windows
        roots: SampledRoots | CandidateRoots
        if self.config.negatives == "all":
            roots = windows.candidate_roots(event, windows.candidates, encoder.absent_node)
        else:
            negatives = self.draw_negatives(event, random)
            roots = windows.sampled_roots(event, negatives, encoder.absent_node)
        return DrawnWindow(event, roots, encoder.inputs(windows.graph, roots.pairs, random))

    def loss(self, batch: int | DrawnWindow, random: np.random.Generator) -> Tensor:
        event, roots, inputs = self.draw_batch(batch, random) if isinstance(batch, int) else batch
        if isinstance(roots, SampledRoots):
            return self.sampled_loss(roots, inputs)
        true_column = np.searchsorted(self.windows.candidates, self.windows.targets(event))
        return self.all_targets_loss(roots, true_column, inputs)

    def draw_negatives(self, event: IntArray, random: np.random.Generator) -> IntArray:
        """Draw target ids that differ from each event's true target, [B, negatives]."""
        count, pool = self.config.negatives, self.config.negative_pool
        assert isinstance(count, int)
        true, candidates = self.windows.targets(event), self.windows.candidates
        return draw_negatives(true, candidates, count, random, pool_size=pool)

    def sampled_loss(
        self, roots: SampledRoots, inputs: list[EncoderInputs] | None = None
    ) -> Tensor:
        """Return the loss of events with given negatives; without inputs there is no dropout."""
        network = self.network
        vectors = self._vectors(roots.pairs, inputs)
        position = torch.from_numpy(roots.position).to(vectors.device)
        vector_BCD = functional.embedding(position, vectors)
        match_BC = network.discriminator(vector_BCD[:, :1], vector_BCD[:, 1:])
        if self.config.objective == "contrastive":
            similarity_BC = functional.softplus(match_BC)
            return contrastive_loss(similarity_BC[:, 0], similarity_BC[:, 1:])
        now = self.windows.graph.time[roots.event][:, None]
        elapsed = elapsed_seconds(self.windows.graph, roots.instance, now)
        return network.intensity_loss(match_BC, elapsed[:, :1], elapsed[:, 1:])

    def all_targets_loss(
        self,
        roots: CandidateRoots,
        true_column: IntArray,
        inputs: list[EncoderInputs] | None = None,
    ) -> Tensor:
        """Return the contrastive loss with all other candidates as negatives."""
        vectors = self._vectors(roots.pairs, inputs)

        def index(array: IntArray) -> Tensor:
            return torch.from_numpy(array).to(vectors.device)

        source_BD = vectors.index_select(0, index(roots.source_position))
        version_ND = vectors.index_select(0, index(roots.version_position))
        match_BK = self.network.match_all(source_BD, version_ND).gather(1, index(roots.version))
        return functional.cross_entropy(functional.softplus(match_BK), index(true_column))

    def _vectors(self, pairs: IntArray, inputs: list[EncoderInputs] | None) -> Tensor:
        encoder = self.network.encoder
        vectors: Tensor = encoder(inputs or encoder.inputs(self.windows.graph, pairs))
        return vectors

    # State and ranking

    def reset_state(self) -> None:
        self._states = NodeStates(self.network.encoder, self.graph)

    @torch.no_grad()
    def score(self, source: IntArray, time: FloatArray) -> ScoreArray:
        self.check_fitted()
        states, targets = self._states, self.graph.space.target_nodes
        source_BD = states.vectors(source)
        product_BT = self.network.discriminator.ranking_key(source_BD) @ states.vectors(targets).T
        source_instance = states.current_instance(source)
        target_instance = states.current_instance(targets)[None]
        return self._scores(product_BT, source_BD, source_instance, target_instance, time)

    @torch.no_grad()
    @threads_for_parts()
    def score_each(self, events: EventStream) -> ScoreArray:
        events = self.admit(events)
        block = self._states.advance(events)
        key_BD = self.network.discriminator.ranking_key(block.source_BD)
        product_BT = block.select(key_BD @ block.before_TD.T, key_BD @ block.after_ID.T)
        return self._scores(
            product_BT, block.source_BD, block.source_instance, block.target_instance, events.time
        )

    def _scores(
        self,
        product_BT: Tensor,
        source_BD: Tensor,
        source_instance: IntArray,
        target_instance: IntArray,
        time: FloatArray,
    ) -> ScoreArray:
        """Return scores that order targets as the objective does.

        `product_BT` omits the source's additive term and the SoftPlus of Sim; neither changes the
        order of targets.
        """
        if self.config.objective == "contrastive":
            return product_BT.cpu().numpy()
        match_BT = product_BT + (source_BD @ self.network.discriminator.additive)[:, None]
        now = time[:, None]
        since_source = elapsed_seconds(self.graph, source_instance[:, None], now)
        since_target = elapsed_seconds(self.graph, target_instance, now)
        return self.network.intensity_scores(match_BT, since_source, since_target).cpu().numpy()

    def state_tensors(self) -> dict[str, Tensor]:
        return self._states.to_tensors()

    def load_state_tensors(self, tensors: dict[str, Tensor]) -> None:
        self._states.load_tensors(tensors)

    def vectors(self, node: IntArray, time: float) -> ScoreArray:  # noqa: ARG002
        """Return the predictive vectors, which do not depend on time and suit a search index."""
        return self._states.vectors(node).cpu().numpy()

    def display_scores(self, source: int, scores: ScoreArray) -> ScoreArray:
        """Return the paper's Sim: add the source's term and apply SoftPlus; the order stays."""
        if self.config.objective != "contrastive":
            return scores
        source_D = self._states.vectors(np.array([source]))[0]
        additive = source_D @ self.network.discriminator.additive
        similarity: ScoreArray = np.logaddexp(0.0, scores + additive.item())
        return similarity
