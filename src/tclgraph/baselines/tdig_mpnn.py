"""TDIG-MPNN: an LSTM over the dependency graph, trained as a point process (Chang et al., 2020).

The equations are those of "Deep Interaction Processes for Time-Evolving Graphs" by the same
authors. An event is encoded once for both of its parties: an LSTM runs up the dependency tree of
each party, after a selection layer has compared the two trees. A node's vector is made from the
states of both parties of its last event and holds until its next event.

Shapes: N rows, I inputs, R trees (see `dependency_lstm`), B events or queries, C columns (the true
target and the negatives), T targets, D width.
"""

import math
from dataclasses import asdict, dataclass
from typing import Literal, NamedTuple

import numpy as np
import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor, nn
from torch.nn import functional

from tclgraph.arrays import BoolArray, FloatArray, IntArray, ScoreArray
from tclgraph.dependency_graph.graph import DependencyGraph
from tclgraph.dependency_graph.interval_scaling import IntervalScale
from tclgraph.encoding.node_states import NodeStates
from tclgraph.encoding.training_windows import SampledRoots, TrainingWindows
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream
from tclgraph.layers.dependency_lstm import DependencyEncoder, LocalAttention
from tclgraph.layers.node_tables import NodeEmbedding
from tclgraph.layers.projection import Discriminator, PairIntensity
from tclgraph.models.learned import LearnedModel
from tclgraph.objectives.point_process import (
    integrated_intensity,
    log_intensity,
    point_process_loss,
)
from tclgraph.sampling.dependency_trees import DependencyTrees, unroll
from tclgraph.sampling.negatives import uniform_negatives
from tclgraph.training.config import TrainingConfig

# Larger than in other models: products of small vectors give almost no gradient.
_INPUT_DEVIATION = 0.5


@dataclass(frozen=True, kw_only=True)
class TDIGMPNNConfig(TrainingConfig):
    """Published search space: 1 to 4 levels and layers, at most 50 epochs, patience 5."""

    epochs: PositiveInt = 10
    batch_size: PositiveInt = 256
    learning_rate: PositiveFloat = 5e-3
    patience: PositiveInt | None = 3

    width: PositiveInt = 64
    """Size of node embeddings, states and vectors."""
    levels: PositiveInt = 5
    """Number of levels of a tree, its root included; k in the paper."""
    layers: PositiveInt = 1
    """Number of stacked LSTM layers."""
    negatives: PositiveInt = 5
    """Number of targets per event that did not happen, in the survival term."""
    selection: bool = True
    """Whether co-attention and gates select the inputs of every layer."""
    local_attention: bool = False
    """Whether inputs first attend to the nodes around them (TDIG-HGAN)."""
    personalized: bool = True
    """Whether the vectors of source and target are also multiplied. False: the intensity is linear
    in the states, as printed, so that all sources prefer the same targets but for times."""
    rank_by: Literal["density", "intensity"] = "intensity"
    """What targets are ranked by: the likelihood that the pair interacts now (as published), or the
    rate, which does a little better on validation events, and much better with the published weight
    of the survival term."""
    survival_weight: PositiveFloat | None = None
    """Weight of a negative in the survival term, where the true pair has 1. None: the number of
    targets a negative stands for, so that the few that are drawn weigh as much as all. Published:
    1."""


class Waits(NamedTuple):
    """Time since the last event of nodes, or since the first event of all if they have none."""

    length: FloatArray
    has_event: BoolArray
    """Whether the node has an event from which the intensity can count."""


class TDIGMPNNNetwork(nn.Module):
    """All learned parts of TDIG-MPNN."""

    max_events_at_once = 512

    def __init__(
        self, config: TDIGMPNNConfig, num_nodes: int, num_others: int, scale: IntervalScale
    ) -> None:
        super().__init__()
        self.config, self.scale = config, scale
        # Paper: 1. Here: what the sample stands for. Because: most events come soon after another
        # of the same source, and in so short a time few negatives of so little weight cost nothing.
        self.survival_weight = config.survival_weight or max(num_others, 1) / config.negatives
        self.width = width = config.width
        # The extra row is the absent node: the partner of a node without events.
        self.node = NodeEmbedding(num_nodes + 1, width, deviation=_INPUT_DEVIATION)
        if config.local_attention:
            self.local = LocalAttention(width, 3)
        self.encoder = DependencyEncoder(width, config.layers, selects=config.selection)
        self.mix = nn.Linear(2 * width, width)
        self.discriminator = Discriminator(width)
        self.intensity = PairIntensity()
        nn.init.normal_(self.node.weight, std=_INPUT_DEVIATION)
        # All pairs of a source together begin with about one event per mean interval.
        rate = 1 / (1 + self.survival_weight * config.negatives)
        nn.init.constant_(self.intensity.bias, math.log(math.expm1(rate)))
        if not config.personalized:
            nn.init.zeros_(self.discriminator.multiplicative).requires_grad_(False)

    @property
    def absent_node(self) -> int:
        """Node that stands for the missing partner of a node without events."""
        return len(self.node.weight) - 1

    @property
    def weight(self) -> Tensor:
        """A parameter that gives the precision and the device of vectors."""
        return self.node.weight

    def encode(self, graph: DependencyGraph, pairs: IntArray) -> Tensor:
        """Return the vectors of both roots of every pair, [2 · pairs, D]."""
        vectors: Tensor = self(unroll(graph, pairs, self.config.levels))
        return vectors

    def forward(self, trees: DependencyTrees) -> Tensor:
        """Return the vectors of both parties of every event, [R, D]."""
        interval_I = self.numbers(self.scale.scaled(trees.interval, "log"))
        state_RD = self.encoder(
            self._inputs(trees, interval_I),
            interval_I,
            self.index(trees.row_instance),
            self.index(trees.tree),
            self.index(trees.rows_by_tree()),
            [self.index(children) for children in trees.children],
        )
        partner_RD = state_RD.unflatten(0, (-1, 2)).flip(1).flatten(0, 1)
        # Paper: the intensity reads the states of both parties. Here: one vector is made of them,
        # own state first. Because: then ranking all targets is one matrix product.
        vector_RD: Tensor = self.mix(torch.cat([state_RD, partner_RD], dim=1))
        return vector_RD

    def _inputs(self, trees: DependencyTrees, interval_I: Tensor) -> Tensor:
        input_ID: Tensor = self.node(self.index(trees.node))
        if self.config.local_attention:
            neighbor_IK = self.index(trees.neighbors)
            neighbor_IKD = self.node(neighbor_IK.clamp_min(0))
            input_ID = self.local(input_ID, neighbor_IKD, neighbor_IK >= 0, interval_I)
        return input_ID

    def match_all(self, source_BD: Tensor, target_ND: Tensor) -> Tensor:
        """Return the match of all pairs of a source and a target, [B, N]."""
        product_BN = self.discriminator.ranking_key(source_BD) @ target_ND.T
        return product_BN + (source_BD @ self.discriminator.additive)[:, None]

    def lines(
        self, match: Tensor, source: Waits, target: Waits
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the line whose SoftPlus is the intensity, now and at the start; slope and span."""
        source_wait, target_wait = (
            self.numbers(self.scale.scaled(waits.length, "linear")) for waits in (source, target)
        )
        source_counts, target_counts = (self.index(waits.has_event) for waits in (source, target))
        slopes = self.intensity.slopes
        slope = slopes[0] * source_counts + slopes[1] * target_counts
        span = torch.minimum(source_wait, target_wait)
        line = self.intensity.line(match, source_wait * source_counts, target_wait * target_counts)
        return line, line - slope * span, slope, span

    def scores(self, match: Tensor, source: Waits, target: Waits) -> ScoreArray:
        """Return the log-density of pairs interacting now, or their log-intensity."""
        line, start, slope, span = self.lines(match, source, target)
        score = log_intensity(line)
        if self.config.rank_by == "density":
            score = score - integrated_intensity(start, slope, span)
        return score.cpu().numpy()

    def numbers(self, array: FloatArray) -> Tensor:
        """Convert an array to a tensor of the network's precision, on its device."""
        return torch.from_numpy(array).to(self.weight.dtype).to(self.weight.device)

    def index(self, array: IntArray | BoolArray) -> Tensor:
        """Convert an array of indices; a copy, because a stream's columns are read-only."""
        return torch.tensor(array, device=self.weight.device)


class TDIGMPNN(LearnedModel):
    """Message passing on the dependency graph.

    >>> from tclgraph.events.synthetic import SyntheticConfig, synthesize
    >>> split = synthesize(SyntheticConfig(events=300, sources=8, targets=9)).split(0.6, 0.2)
    >>> model = TDIGMPNN(epochs=1, width=16, levels=3).fit(split)
    >>> len(model.recommend(0, top=5)), model.embed([0, 1]).shape
    (5, (2, 16))
    """

    name = "tdig-mpnn"
    config_type = TDIGMPNNConfig
    config: TDIGMPNNConfig
    network: TDIGMPNNNetwork

    # Training

    def prepare(self, split: Split) -> int:
        self.windows = TrainingWindows(split.train, self.config.batch_size)
        scale = IntervalScale.measure(self.windows.graph)
        num_others = len(self.windows.candidates) - 1
        self.start(split.events, num_others=num_others, scale=asdict(scale))
        return len(self.windows)

    def build_network(self) -> TDIGMPNNNetwork:
        scale = IntervalScale(**self.measured["scale"])
        num_nodes, num_others = self.graph.space.num_nodes, self.measured["num_others"]
        return TDIGMPNNNetwork(self.config, num_nodes, num_others, scale)

    def loss(self, batch: int, random: np.random.Generator) -> Tensor:
        event = self.windows.events(batch)
        negatives = uniform_negatives(
            self.windows.targets(event), self.windows.candidates, self.config.negatives, random
        )
        return self.sampled_loss(
            self.windows.sampled_roots(event, negatives, self.network.absent_node)
        )

    def sampled_loss(self, roots: SampledRoots) -> Tensor:
        """Return the loss of training events with given negatives."""
        network, graph = self.network, self.windows.graph
        vectors = network.encode(graph, roots.pairs)
        vector_BCD = functional.embedding(network.index(roots.position), vectors)
        match_BC = network.discriminator(vector_BCD[:, :1], vector_BCD[:, 1:])
        now = graph.time[roots.event][:, None]
        source, target = (
            _waits(graph, instance, now) for instance in np.split(roots.instance, [1], axis=1)
        )
        line_BC, start_BC, slope_BC, span_BC = network.lines(match_BC, source, target)
        # The true pair did not interact before the event either.
        survival_B = integrated_intensity(start_BC[:, 0], slope_BC[:, 0], span_BC[:, 0])
        return survival_B.mean() + point_process_loss(
            line_BC[:, 0], start_BC[:, 1:], slope_BC[:, 1:], span_BC[:, 1:], network.survival_weight
        )

    # State and ranking

    def reset_state(self) -> None:
        self._states = NodeStates(self.network, self.graph)

    @torch.no_grad()
    def score(self, source: IntArray, time: FloatArray) -> ScoreArray:
        self.check_fitted()
        states, targets = self._states, self.graph.space.target_nodes
        match_BT = self.network.match_all(states.vectors(source), states.vectors(targets))
        source_instance = states.current_instance(source)
        target_instance = states.current_instance(targets)[None]
        return self._scores(match_BT, source_instance, target_instance, time)

    @torch.no_grad()
    def score_each(self, events: EventStream) -> ScoreArray:
        events = self.admit(events)
        block = self._states.advance(events)
        match_BT = block.select(
            self.network.match_all(block.source_BD, block.before_TD),
            self.network.match_all(block.source_BD, block.after_ID),
        )
        return self._scores(match_BT, block.source_instance, block.target_instance, events.time)

    def _scores(
        self,
        match_BT: Tensor,
        source_instance: IntArray,
        target_instance: IntArray,
        time: FloatArray,
    ) -> ScoreArray:
        source = _waits(self.graph, source_instance[:, None], time[:, None])
        target = _waits(self.graph, target_instance, time[:, None])
        return self.network.scores(match_BT, source, target)

    def state_tensors(self) -> dict[str, Tensor]:
        return self._states.to_tensors()

    def load_state_tensors(self, tensors: dict[str, Tensor]) -> None:
        self._states.load_tensors(tensors)

    def vectors(self, node: IntArray, time: float) -> ScoreArray:
        """Return the vectors, which do not depend on time until a node's next event."""
        return self._states.vectors(node).cpu().numpy()


def _waits(graph: DependencyGraph, instance: IntArray, now: FloatArray) -> Waits:
    """Return the time since these instances, for a singleton since the first event of all.

    With 0 for nodes without events the survival term would not count them, and their intensity
    could grow without cost.
    """
    if not len(graph):
        return Waits(np.zeros(np.broadcast(instance, now).shape), instance >= 0)
    return Waits(now - graph.time[np.maximum(instance, 0) // 2], instance >= 0)
