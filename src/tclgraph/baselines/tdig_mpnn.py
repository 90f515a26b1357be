"""TDIG-MPNN: an LSTM over the dependency graph, trained as a point process (Chang et al., 2020).

The equations are those of "Deep Interaction Processes for Time-Evolving Graphs" by the same
authors. An event is encoded once, for both of its parties: an LSTM runs up the tree of what either
one depends on, having selected what the two trees have in common. A node's vector comes of the
states of both parties of its last event and holds until its next.

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
from tclgraph.dependency_graph.time_units import TimeUnits
from tclgraph.events.node_space import NodeSpace
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream
from tclgraph.layers.dependency_lstm import DependencyEncoder, LocalAttention
from tclgraph.layers.projection import Discriminator, PairIntensity
from tclgraph.objectives.point_process import (
    integrated_intensity,
    log_intensity,
    point_process_loss,
)
from tclgraph.sampling.dependency_subgraphs import singleton
from tclgraph.sampling.dependency_trees import DependencyTrees, pairs_of, unroll
from tclgraph.sampling.last_instances import LastInstances
from tclgraph.sampling.negatives import uniform_negatives
from tclgraph.training.config import TrainingConfig
from tclgraph.training.learned import LearnedModel

# Large beside what other models begin with: products of small vectors teach each other little.
_INPUT_DEVIATION = 0.5
# Events encoded at once when nothing is learned: few enough to keep memory small.
_EVENTS_AT_ONCE = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class TDIGMPNNConfig(TrainingConfig):
    """Published search space: k and layers 1 to 4, at most 50 epochs with a patience of 5."""

    epochs: PositiveInt = 10
    batch_size: PositiveInt = 256
    learning_rate: PositiveFloat = 5e-3
    patience: PositiveInt | None = 3

    width: PositiveInt = 64
    """Of node embeddings, states and vectors."""
    levels: PositiveInt = 5
    """Of a tree with its root, k in the paper."""
    layers: PositiveInt = 1
    """Of LSTM, one on top of the other."""
    negatives: PositiveInt = 5
    """Targets per event that did not happen, in the survival term."""
    selection: bool = True
    """Co-attention and gates before every layer; False: everything counts."""
    local_attention: bool = False
    """Inputs first look at the nodes around them (TDIG-HGAN)."""
    personalized: bool = True
    """False: the intensity is linear in the states, as printed, so that all sources prefer the same
    targets but for times. True: source and target are multiplied as well."""
    rank_by: Literal["density", "intensity"] = "intensity"
    """The likelihood of now being the time (as published), or the rate, which does a little better
    on validation events, and much better with the published weight of the survival term."""
    survival_weight: PositiveFloat | None = None
    """Of a negative in the survival term, where the true pair has 1; None: as many targets as a
    negative stands for, so that the few that are drawn weigh as much as all. Published: 1."""


class Waits(NamedTuple):
    """How long nodes have not acted, in seconds; who never did has waited since the first event."""

    seconds: FloatArray
    acted: BoolArray
    """Whether there is a last event that the intensity can count from."""


class TDIGMPNNNetwork(nn.Module):
    """Everything that is learned."""

    def __init__(
        self, config: TDIGMPNNConfig, num_nodes: int, num_others: int, units: TimeUnits
    ) -> None:
        super().__init__()
        self.config, self.units = config, units
        # Paper: 1. Here: what the sample stands for. Because: most events come soon after another
        # of the same source, and in so short a time few negatives of so little weight cost nothing.
        self.survival_weight = config.survival_weight or max(num_others, 1) / config.negatives
        width = config.width
        # One row more than there are nodes: the absent partner of a node without a past.
        self.node = nn.Embedding(num_nodes + 1, width)
        if config.local_attention:
            self.local = LocalAttention(width, 3)
        self.encoder = DependencyEncoder(width, config.layers, selects=config.selection)
        self.mix = nn.Linear(2 * width, width)
        self.discriminator = Discriminator(width)
        self.intensity = PairIntensity()
        nn.init.normal_(self.node.weight, std=_INPUT_DEVIATION)
        # So that all pairs of a source together begin with about one event per mean gap.
        rate = 1 / (1 + self.survival_weight * config.negatives)
        nn.init.constant_(self.intensity.bias, math.log(math.expm1(rate)))
        if not config.personalized:
            nn.init.zeros_(self.discriminator.multiplicative).requires_grad_(False)

    @property
    def absent(self) -> int:
        """The node that stands for a partner who is not there."""
        return self.node.num_embeddings - 1

    def forward(self, trees: DependencyTrees) -> Tensor:
        """Vectors of both parties of every event, [R, D]."""
        interval_I = self.numbers(np.log1p(trees.interval) / self.units.log_deviation)
        state_RD = self.encoder(
            self._inputs(trees, interval_I),
            interval_I,
            self.index(trees.which),
            self.index(trees.tree),
            self.index(trees.rows_by_tree()),
            [self.index(one) for one in trees.children],
        )
        partner_RD = state_RD.unflatten(0, (-1, 2)).flip(1).flatten(0, 1)
        # Paper: the intensity has the states of both parties. Here: one vector is made of them, own
        # first. Because: then ranking all targets is a product of matrices.
        vector_RD: Tensor = self.mix(torch.cat([state_RD, partner_RD], dim=1))
        return vector_RD

    def _inputs(self, trees: DependencyTrees, interval_I: Tensor) -> Tensor:
        input_ID: Tensor = self.node(self.index(trees.node))
        if self.config.local_attention:
            neighbor_IK = self.index(trees.neighbors)
            others_IKD = self.node(neighbor_IK.clamp_min(0))
            input_ID = self.local(input_ID, others_IKD, neighbor_IK >= 0, interval_I)
        return input_ID

    def lines(
        self, match: Tensor, source: Waits, target: Waits
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """SoftPlus of which is the intensity: now, and when the wait began; slopes and spans."""
        waited_source, waited_target = (
            self.numbers(one.seconds / self.units.mean) for one in (source, target)
        )
        acted_source, acted_target = (self.index(one.acted) for one in (source, target))
        slopes = self.intensity.slopes
        slope = slopes[0] * acted_source + slopes[1] * acted_target
        span = torch.minimum(waited_source, waited_target)
        line = self.intensity.line(
            match, waited_source * acted_source, waited_target * acted_target
        )
        return line, line - slope * span, slope, span

    def scores(self, match: Tensor, source: Waits, target: Waits) -> ScoreArray:
        """Log-density of pairs meeting now, or log-intensity."""
        line, start, slope, span = self.lines(match, source, target)
        score = log_intensity(line)
        if self.config.rank_by == "density":
            score = score - integrated_intensity(start, slope, span)
        return score.cpu().numpy()

    def numbers(self, array: FloatArray) -> Tensor:
        """In the network's precision, where the network is."""
        return torch.from_numpy(array).to(self.node.weight.dtype).to(self.node.weight.device)

    def index(self, array: IntArray | BoolArray) -> Tensor:
        # A copy: a stream's columns are read-only, which torch cannot promise to keep.
        return torch.tensor(array, device=self.node.weight.device)


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

    # Learning

    def prepare(self, split: Split) -> int:
        self._train = DependencyGraph(NodeSpace.of(split.train))
        self._train.append(split.train)
        self._last = LastInstances(self._train)
        self._candidates = np.unique(split.train.target)
        if len(self._candidates) == 1:  # nothing else was ever met, so anything else will do
            self._candidates = np.arange(split.train.num_targets)
        units = TimeUnits.of(self._train)
        self.start(split.events, num_others=len(self._candidates) - 1, units=asdict(units))
        return -(-len(self._train) // self.config.batch_size)

    def build_network(self) -> TDIGMPNNNetwork:
        units = TimeUnits(**self.measured["units"])
        num_nodes, num_others = self.graph.space.num_nodes, self.measured["num_others"]
        return TDIGMPNNNetwork(self.config, num_nodes, num_others, units)

    def loss(self, batch: int, random: np.random.Generator) -> Tensor:
        size = self.config.batch_size
        event = np.arange(batch * size, min((batch + 1) * size, len(self._train)))
        both = self._train.node.reshape(-1, 2)[event]
        first_target = self._train.space.first_target
        negatives = uniform_negatives(
            both[:, 1] - first_target, self._candidates, self.config.negatives, random
        )
        return self.loss_of(event, np.concatenate([both, negatives + first_target], axis=1))

    def loss_of(self, event: IntArray, node: IntArray) -> Tensor:
        """Of training events, given the nodes of each: source, true target, negatives."""
        network = self.network
        instance = self._last.before(node, event[:, None])
        pairs, position = pairs_of(instance.ravel(), network.absent)
        vectors = network(unroll(self._train, pairs, self.config.levels))
        vector_BCD = functional.embedding(network.index(position.reshape(node.shape)), vectors)
        match_BC = network.discriminator(vector_BCD[:, :1], vector_BCD[:, 1:])
        now = self._train.time[event][:, None]
        source, target = (_waits(self._train, one, now) for one in np.split(instance, [1], axis=1))
        line_BC, start_BC, slope_BC, span_BC = network.lines(match_BC, source, target)
        # The true pair, too, did not meet before it did.
        true_B = integrated_intensity(start_BC[:, 0], slope_BC[:, 0], span_BC[:, 0])
        return true_B.mean() + point_process_loss(
            line_BC[:, 0], start_BC[:, 1:], slope_BC[:, 1:], span_BC[:, 1:], network.survival_weight
        )

    # Following and ranking

    def begin(self) -> None:
        space = self.graph.space
        self._vector = self.network.node.weight.new_zeros(space.num_nodes, self.config.width)
        # The instance (or singleton) that each vector came of; at first a number that none has.
        self._came_of = np.full(space.num_nodes, np.iinfo(np.int64).min)

    @torch.no_grad()
    def score(self, source: IntArray, time: FloatArray) -> ScoreArray:
        self.check_fitted()
        space = self.graph.space
        match_BT = self._match(self._vectors(source), self._vectors(space.target_nodes))
        source_last = self._present(source)[:, None]
        target_last = self._present(space.target_nodes)[None]
        return self._scores(match_BT, source_last, target_last, time)

    @torch.no_grad()
    def score_each(self, events: EventStream) -> ScoreArray:
        """All vectors of before and of the block at once, and then who has which at each event."""
        self.check_nodes(events)
        space, start = self.graph.space, len(self.graph)
        before_TD = self._vectors(space.target_nodes)
        asking_BD = self._vectors(events.source)
        source_last = self._present(events.source)
        target_last = np.tile(self._present(space.target_nodes), (len(events), 1))

        self.graph.append(events)
        node = self.graph.node[2 * start :]
        new_ID = self._encode(np.arange(2 * start, 2 * len(self.graph)))
        state = np.tile(np.arange(space.num_targets), (len(events), 1))
        columns = (node - space.first_target).tolist()
        for place in range(len(columns)):
            instance = place ^ 1  # targets first, as a self-loop counts as its source's
            if (column := columns[instance]) >= 0:
                later = slice(instance // 2 + 1, None)
                state[later, column] = space.num_targets + instance
                target_last[later, column] = 2 * start + instance
        previous = self.graph.previous[2 * start :: 2]
        moved = np.flatnonzero(previous >= start)
        own = 2 * previous[moved]
        own += self.graph.node[own] != events.source[moved]
        source_last[moved] = own
        asking_BD[self.network.index(moved)] = new_ID[self.network.index(own - 2 * start)]

        match_BT = self._match(asking_BD, torch.cat([before_TD, new_ID]))
        match_BT = match_BT.gather(1, self.network.index(state))
        moved = np.unique(node)
        latest = self.graph.last_instance[moved]
        self._vector[self.network.index(moved)] = new_ID[self.network.index(latest - 2 * start)]
        self._came_of[moved] = latest
        return self._scores(match_BT, source_last[:, None], target_last, events.time)

    def _scores(
        self, match_BT: Tensor, source_last: IntArray, target_last: IntArray, time: FloatArray
    ) -> ScoreArray:
        source, target = (
            _waits(self.graph, last, time[:, None]) for last in (source_last, target_last)
        )
        return self.network.scores(match_BT, source, target)

    def _match(self, asking_BD: Tensor, candidate_TD: Tensor) -> Tensor:
        """Of all with all."""
        discriminator = self.network.discriminator
        product_BT = discriminator.ranking_key(asking_BD) @ candidate_TD.T
        return product_BT + (asking_BD @ discriminator.additive)[:, None]

    def _present(self, node: IntArray) -> IntArray:
        """Each one's last instance, singletons where there is none."""
        last = self.graph.last_instance[node]
        return np.where(last >= 0, last, singleton(node))

    @torch.no_grad()
    def _vectors(self, node: IntArray) -> Tensor:
        """By the graph as it is now; only those of nodes that have moved on are made anew."""
        stale = np.unique(node[self._came_of[node] != self._present(node)])
        if len(stale):
            instance = self._present(stale)
            self._vector[self.network.index(stale)] = self._encode(instance)
            self._came_of[stale] = instance
        return self._vector[self.network.index(node)]

    def _encode(self, instance: IntArray) -> Tensor:
        """Vectors after these instances, or of these singletons."""
        pairs, position = pairs_of(instance, self.network.absent)
        parts = [
            self.network(unroll(self.graph, pairs[at : at + _EVENTS_AT_ONCE], self.config.levels))
            for at in range(0, len(pairs), _EVENTS_AT_ONCE)
        ]
        return torch.cat(parts)[self.network.index(position)] if parts else self._vector[:0]

    def state_tensors(self) -> dict[str, Tensor]:
        return {"vector": self._vector, "came_of": torch.from_numpy(self._came_of)}

    def take_state_tensors(self, tensors: dict[str, Tensor]) -> None:
        self._vector = tensors["vector"].to(self._vector.device)
        self._came_of = tensors["came_of"].numpy()

    def vectors(self, node: IntArray, time: float) -> ScoreArray:
        """At any time the same, until a node's next event."""
        return self._vectors(node).cpu().numpy()


def _waits(graph: DependencyGraph, instance: IntArray, now: FloatArray) -> Waits:
    """Since these instances, or since the first event, if not yet at all.

    Were it 0 for newcomers, they would never have been passed over: anything could be likely.
    """
    if not len(graph):
        return Waits(np.zeros(np.broadcast(instance, now).shape), instance >= 0)
    return Waits(now - graph.time[np.maximum(instance, 0) // 2], instance >= 0)
