"""TPNet: scores of pairs from random projections of temporal walk matrices (Lu et al., 2024).

Products of the projected rows of two nodes estimate the number of recent walks from both that end
at the same node. A network scores a source and a target from these products alone, which is the
published variant without node embeddings.

Shapes: V all nodes, N given nodes, L walk matrices without A^(0), K with it, D width of a projected
row, B events or queries, C candidates of an event, T targets, F features, H width of a hidden
layer.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor, nn

from tclgraph.arrays import FloatArray, IntArray, ScoreArray
from tclgraph.baselines.coupled_states import as_index
from tclgraph.baselines.walk_matrices import WalkProducts, WalkState, level_decay
from tclgraph.events.node_space import NodeSpace
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream
from tclgraph.layers.node_tables import NodeModule, NodeTable
from tclgraph.layers.pair_decoder import PairMerge
from tclgraph.models.learned import LearnedModel
from tclgraph.objectives.contrastive import contrastive_loss
from tclgraph.sampling.negatives import uniform_negatives
from tclgraph.training.config import TrainingConfig

# Number of events by which the state advances in one call.
_EVENTS_PER_CALL = 1024
# Number of events that are ranked with one table of rows.
_EVENTS_PER_TABLE = 32
# Number of pairs of a query and a target that are scored in one call.
_CELLS_PER_CALL = 8192


@dataclass(frozen=True, kw_only=True)
class TPNetConfig(TrainingConfig):
    """Settings of TPNet; the defaults are the published ones, with changes for ranking."""

    learning_rate: PositiveFloat = 1e-3
    """Learning rate of Adam. Published: 0.0001, with more epochs."""
    batch_size: PositiveInt = 200
    """Number of consecutive events in a batch."""
    patience: PositiveInt | None = 5
    """Epochs without a better validation metric before training stops; None: never stop early."""
    max_valid_events: PositiveInt | None = 1024
    """Largest number of validation events to rank after an epoch; None: all."""
    walk_steps: PositiveInt = 3
    """Largest number of steps of a walk (k in the paper)."""
    decay_per_span: PositiveFloat = 14.0
    """Decay of the weight of a step over the time span of the training events, as an exponent: λ
    times the span. Published: λ is 1e-6 or 1e-7 per second, which gives 1.7 over all events of
    CollegeMsg, 2.7 over those of Wikipedia and 14 over those of LastFM. The last is the best of
    these on the validation events of CollegeMsg and Wikipedia."""
    projection_width: PositiveInt | None = None
    """Number of columns of the random matrix. None: 10 ⌊ln 2E⌋ for E training events, but at most
    the number of their nodes, as published."""
    width: PositiveInt = 64
    """Size of the second hidden layer. The first has four units for every product of two rows, as
    published."""
    negatives: PositiveInt = 32
    """Number of negatives of an event. Published: 1."""


class TPNetNetwork(NodeModule):
    """Learned weights, the random matrix, and the walk matrices that training carries along.

    Paper: an MLP maps the features to as many outputs, and a link predictor with one hidden layer
    follows. Here: the output matrix of the MLP and the first matrix of the link predictor are one.
    Because: the product of two learned matrices is a learned matrix.
    """

    identity: Tensor
    walks: Tensor
    origin: Tensor

    def __init__(self, config: TPNetConfig, space: NodeSpace, projection_width: int) -> None:
        super().__init__()
        num_matrices = config.walk_steps + 1
        self.products = WalkProducts(space.kind, num_matrices)
        num_own, num_cross = len(self.products.own_pairs), len(self.products.cross_pairs)
        hidden = 4 * (2 * num_matrices) ** 2
        self.merge = PairMerge(num_own, num_own + num_cross, hidden, config.width)
        self.output = nn.Linear(config.width, 1)
        num_nodes = space.num_nodes
        self._deviation = projection_width**-0.5
        # The random matrix, which is also the projection of A^(0).
        self.register_buffer("identity", self._deviation * torch.randn(num_nodes, projection_width))
        walks_VLD = torch.zeros(num_nodes, config.walk_steps, projection_width)
        self.register_buffer("walks", walks_VLD)
        self.register_buffer("origin", torch.zeros((), dtype=torch.float64))

    def node_tables(self) -> list[NodeTable]:
        return [NodeTable(name="identity", deviation=self._deviation), NodeTable(name="walks")]

    def restart(self, random: np.random.Generator, origin: float) -> None:
        """Draw a new random matrix, and clear the walk matrices.

        As in the published code this happens in every epoch, so that the weights do not adapt to
        the noise of one random matrix.
        """
        rows = random.standard_normal(tuple(self.identity.shape), dtype=np.float32)
        self.identity.copy_(self._deviation * torch.from_numpy(rows))
        self.walks.zero_()
        self.origin.fill_(origin)

    def forward(self, source_BF: Tensor, candidate_BCF: Tensor) -> Tensor:
        """Return the scores of the candidates of each source, [B, C]."""
        weight = self.output.weight
        source_BH = self.merge.first_half(source_BF.to(weight))
        candidate_BCH = self.merge.second_half(candidate_BCF.to(weight))
        merged_BCH = torch.relu(self.merge.of_halves(source_BH[:, None], candidate_BCH))
        score_BC: Tensor = self.output(merged_BCH).squeeze(-1)
        return score_BC


class TPNet(LearnedModel):
    """Temporal walk matrices under random projections (TPNet), without node embeddings.

    The walk matrices follow one event after another, in training as in ranking. A score depends on
    all events before its own in the log, simultaneous ones included.

    >>> from tclgraph.events.synthetic import SyntheticConfig, synthesize
    >>> split = synthesize(SyntheticConfig(events=300, sources=8, targets=9)).split(0.6, 0.2)
    >>> model = TPNet(epochs=1, width=8, walk_steps=2, projection_width=5).fit(split)
    >>> len(model.recommend(0, top=5)), model.embed([0, 1]).shape
    (5, (2, 15))
    """

    name = "tpnet"
    config_type = TPNetConfig
    search_space = {  # noqa: RUF012  # a ClassVar of the base
        "learning_rate": (1e-4, 5e-4, 1e-3, 5e-3),
        "batch_size": (128, 256, 512),
        "decay_per_span": (3.0, 14.0, 30.0, 100.0),
    }
    in_order = True
    config: TPNetConfig
    network: TPNetNetwork

    # Training

    def prepare(self, split: Split) -> int:
        train, space = split.train, NodeSpace.of(split.events)
        self._pairs, self._time = space.nodes(train).reshape(-1, 2), train.time
        self._candidates = np.unique(self._pairs[:, 1])
        # If all training events are simultaneous, there is no span, and nothing decays.
        decay = self.config.decay_per_span / train.duration if train.duration else 0.0
        published_width = 10 * max(int(math.log(2 * len(train))), 1)
        self.start(
            split.events,
            start=float(train.time[0]),
            decay=decay,
            projection_width=self.config.projection_width or min(published_width, space.num_nodes),
        )
        return -(-len(train) // self.config.batch_size)

    def build_network(self) -> TPNetNetwork:
        return TPNetNetwork(self.config, self.graph.space, self.measured["projection_width"])

    def loss(self, batch: int, random: np.random.Generator) -> Tensor:
        """Return the cross-entropy of each event's target among its negatives."""
        size = self.config.batch_size
        if batch == 0:
            self.network.restart(random, self.measured["start"])
        events = slice(batch * size, (batch + 1) * size)
        pairs = self._pairs[events]
        negatives = uniform_negatives(pairs[:, 1], self._candidates, self.config.negatives, random)
        nodes = np.concatenate([pairs, negatives], axis=1)
        score_BC = self.network(*self._training_features(nodes, self._time[events]))
        return contrastive_loss(score_BC[:, 0], score_BC[:, 1:])

    @torch.no_grad()
    def _training_features(self, nodes: IntArray, time: FloatArray) -> tuple[Tensor, Tensor]:
        """Return the features of sources and of candidates before each event of a batch.

        The walk matrices of training are updated by the batch. A row of `nodes` has the source, the
        target and the negatives of an event.
        """
        network, products = self.network, self.network.products
        state = self._walk_state(network.walks, float(network.origin))
        source_features, candidate_features = [], []
        for part in state.stretches(time, len(time)):
            node_BC, event = nodes[part], np.arange(part.stop - part.start)
            table = state.follow(np.unique(node_BC), node_BC[:, :2], time[part])
            row_NKD = table.row.double()
            index_BC = as_index(table.row_index(node_BC, event[:, None]), row_NKD)
            own_BCP = products.own(row_NKD)[index_BC]
            cross_BCP = products.cross_pairwise(row_NKD[index_BC[:, 0]], row_NKD[index_BC[:, 1:]])
            age_B = torch.from_numpy(state.ages(time[part])).to(row_NKD)
            source_features.append(products.source_features(own_BCP[:, 0], age_B))
            candidate_features.append(products.candidate_features(own_BCP[:, 1:], cross_BCP, age_B))
        network.origin.fill_(state.origin)
        return torch.cat(source_features), torch.cat(candidate_features)

    # Following and ranking

    def _walk_state(self, walks_VLD: Tensor, origin: float) -> WalkState:
        decay = self.measured["decay"]
        return WalkState(self.network.identity, walks_VLD, origin=origin, decay=decay)

    def reset_state(self) -> None:
        walks_VLD = torch.zeros_like(self.network.walks)
        self._state = self._walk_state(walks_VLD, self.measured["start"])

    def update_state(self, events: EventStream) -> None:
        pairs = self.graph.space.nodes(events).reshape(-1, 2)
        for part in self._state.stretches(events.time, _EVENTS_PER_CALL):
            self._state.update(pairs[part], events.time[part])

    @torch.no_grad()
    def score(self, source: IntArray, time: FloatArray) -> ScoreArray:
        self.check_fitted()
        state = self._state
        row_TKD = state.rows(self.graph.space.target_nodes).double()
        return self._scores(state.rows(source).double(), state.ages(time), row_TKD, None)

    @torch.no_grad()
    def score_each(self, events: EventStream) -> ScoreArray:
        events = self.admit(events)
        self.graph.append(events)
        state, space = self._state, self.graph.space
        pairs, target = space.nodes(events).reshape(-1, 2), space.target_nodes
        scores = [self.score(events.source[:0], events.time[:0])]
        for part in state.stretches(events.time, _EVENTS_PER_TABLE):
            source, event = pairs[part, 0], np.arange(part.stop - part.start)
            table = state.follow(np.union1d(source, target), pairs[part], events.time[part])
            row_NKD, ages = table.row.double(), state.ages(events.time[part])
            source_B = as_index(table.row_index(source, event), row_NKD)
            target_BT = as_index(table.row_index(target[None], event[:, None]), row_NKD)
            scores.append(self._scores(row_NKD[source_B], ages, row_NKD, target_BT))
        return np.concatenate(scores)

    def _scores(
        self, source_BKD: Tensor, ages: FloatArray, row_NKD: Tensor, target_BT: Tensor | None
    ) -> ScoreArray:
        """Return the scores of all targets for sources at times of these ages, [B, T].

        `target_BT` has the index in `row_NKD` of every target at every query. Without it, `row_NKD`
        has the rows of the targets at all queries.
        """
        network, products = self.network, self.network.products
        age_B = torch.from_numpy(ages).to(row_NKD)
        source_BF = products.source_features(products.own(source_BKD), age_B)
        own_NP = products.own(row_NKD)
        num_targets = self.graph.space.num_targets
        score_BT = network.output.weight.new_empty(len(ages), num_targets)
        queries_per_call = max(1, _CELLS_PER_CALL // num_targets)
        for begin in range(0, len(ages), queries_per_call):
            part = slice(begin, begin + queries_per_call)
            cross_BNP = products.cross(source_BKD[part], row_NKD)
            own_BNP = own_NP.expand(len(cross_BNP), -1, -1)
            feature_BTF = products.candidate_features(own_BNP, cross_BNP, age_B[part])
            if target_BT is not None:
                query = torch.arange(len(feature_BTF), device=row_NKD.device)
                feature_BTF = feature_BTF[query[:, None], target_BT[part]]
            score_BT[part] = network(source_BF[part], feature_BTF)
        return score_BT.cpu().numpy()

    def vectors(self, node: IntArray, time: float) -> ScoreArray:
        """Return the projected rows of nodes in all walk matrices at a time, [N, K · D]."""
        row_NKD = self._state.rows(node)
        age = torch.from_numpy(self._state.ages(np.array([time])))
        decay_K = level_decay(age, row_NKD.shape[1])[0].to(row_NKD)
        return (row_NKD * decay_K[:, None]).flatten(1).cpu().numpy()

    def state_tensors(self) -> dict[str, Tensor]:
        origin = torch.tensor(self._state.origin, dtype=torch.float64)
        return {"walks": self._state.walks_VLD, "origin": origin}

    def load_state_tensors(self, tensors: dict[str, Tensor]) -> None:
        walks_VLD = tensors["walks"].to(self.config.device)
        self._state = self._walk_state(walks_VLD, float(tensors["origin"]))
