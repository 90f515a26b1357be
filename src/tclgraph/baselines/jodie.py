"""JODIE: two coupled recurrent networks and a prediction of the next target's embedding.

Every event updates the vectors of its source and of its target, each from the other. Until its next
event, a source's vector is projected linearly in time. From the projected vector and the source's
previous target, a linear layer predicts the embedding of the next target: its vector and its
one-hot code. Targets are ranked by the distance of their embedding from the prediction.

A node of a one-mode graph has one vector. Its events as a source update it with the weights for
sources, those as a target with the weights for targets. The time since its latest event counts from
its latest event in either role, and its previous target is its partner in that event. A one-hot
code has other weights as that of the source than as that of the previous target, as in the paper.

Shapes: B events, T targets, D width, N nodes.
"""

from dataclasses import dataclass

import numpy as np
import torch
from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt
from torch import Tensor, nn
from torch.nn import functional

from tclgraph.arrays import BoolArray, FloatArray, IntArray, ScoreArray
from tclgraph.baselines.coupled_states import (
    CoupledModel,
    EventRange,
    NodeVectors,
    Trajectory,
    as_index,
    instance_times,
    unroll,
    vector_groups,
    with_updates,
)
from tclgraph.dependency_graph.graph import DependencyGraph
from tclgraph.dependency_graph.interval_scaling import in_units
from tclgraph.events.node_space import NodeSpace
from tclgraph.events.split import Split
from tclgraph.layers.node_tables import NodeModule, NodeTable
from tclgraph.training.config import TrainingConfig

# Smallest deviation of intervals, relative to their mean.
_MIN_DEVIATION = 1e-9


@dataclass(frozen=True, kw_only=True)
class JODIEConfig(TrainingConfig):
    """Settings of JODIE; the defaults are the published ones, at half the width."""

    width: PositiveInt = 64
    """Size of a dynamic vector. Published: 128. Here: 64. Because: all models of the comparison
    have this width."""
    learning_rate: PositiveFloat = 1e-3
    """Learning rate of Adam."""
    batch_size: PositiveInt = 128
    """Number of consecutive events of an optimizer step, through which gradients flow."""
    epochs: PositiveInt = 30
    """Largest number of passes over the training stream. Published: 50, without early stopping."""
    patience: PositiveInt | None = 5
    """Epochs without a better validation metric before training stops; None: never stop early."""
    smoothness: NonNegativeFloat = 1.0
    """Weight of how far events move the vectors, relative to the prediction error (λ in the paper).
    Both are means over components. The prediction has far more components, so a weight of 1 keeps
    the vectors almost constant; with 0 they differ more, and the mean rank is better."""
    weight_decay: NonNegativeFloat = 1e-5
    """L2 penalty that Adam adds to the gradients."""


class JODIENetwork(NodeModule):
    """Learned weights, and the vectors that training carries from batch to batch."""

    state: Tensor

    def __init__(self, width: int, space: NodeSpace) -> None:
        super().__init__()
        num_sources, num_targets = space.num_sources, space.num_targets
        self.width = width
        # Initial vectors, shared by all sources and by all targets, or by all nodes of a one-mode
        # graph.
        self._groups = tuple(vector_groups(space))
        for name in self._groups:
            self.register_parameter(f"initial_{name}", nn.Parameter(torch.rand(width)))
        # Weights of two recurrent cells, for sources and for targets. The first half of the rows is
        # for the node's vector, the second half for its partner's.
        self.cell = nn.Parameter(torch.empty(2, 2 * width, width))
        self.cell_interval = nn.Parameter(torch.empty(2, 1, width))
        self.cell_bias = nn.Parameter(torch.empty(2, 1, width))
        self.drift = nn.Linear(1, width)
        # One linear layer of two vectors and two one-hot codes, in three parts: the product of a
        # one-hot code with a matrix is a row of the matrix. A source without events has a
        # placeholder as its previous partner, which comes after all nodes.
        # Paper: the placeholder is predicted and ranked too. Here: it is not. Because: it is never
        # the next target.
        self.predict_vectors = nn.Linear(2 * width, width + num_targets)
        self.predict_source = nn.Embedding(num_sources, width + num_targets)
        self.predict_previous = nn.Embedding(num_targets + 1, width + num_targets)
        self.register_buffer("state", torch.zeros(space.num_nodes + 1, width))
        self._initialize(2 * width + num_sources + num_targets + 1)

    def _initialize(self, num_inputs: int) -> None:
        for parameter in (self.cell, self.cell_interval, self.cell_bias):
            nn.init.uniform_(parameter, -(self.width**-0.5), self.width**-0.5)
        for parameter in self.drift.parameters():
            nn.init.normal_(parameter)
        limit = num_inputs**-0.5
        for part in (self.predict_vectors, self.predict_source, self.predict_previous):
            for parameter in part.parameters():
                nn.init.uniform_(parameter, -limit, limit)

    def node_tables(self) -> list[NodeTable]:
        """Return all tables; what training pulls towards 0 is 0 for nodes that it did not know."""
        targets_of = ("predict_vectors.weight", "predict_vectors.bias")
        return [
            NodeTable(name="state"),
            NodeTable(name="predict_source.weight", side="sources"),
            NodeTable(name="predict_source.weight", side="targets", dim=1, first=self.width),
            NodeTable(name="predict_previous.weight", side="targets"),
            NodeTable(name="predict_previous.weight", side="targets", dim=1, first=self.width),
            *(NodeTable(name=name, side="targets", first=self.width) for name in targets_of),
        ]

    def initial_vectors(self) -> Tensor:
        """Return the initial vectors of all nodes and, in the last row, of the placeholder.

        They have unit length, like all later vectors, and keep it during training.
        """
        unit = [
            functional.normalize(self.get_parameter(f"initial_{name}"), dim=0)
            for name in self._groups
        ]
        sizes = [len(self.state)]
        if len(unit) > 1:
            num_sources = len(self.predict_source.weight)
            sizes = [num_sources, len(self.state) - num_sources]
        return torch.cat(
            [unit_D.expand(size, self.width) for unit_D, size in zip(unit, sizes, strict=True)]
        )

    def update(self, vector_2BD: Tensor, interval_2BD: Tensor) -> Tensor:
        """Return the vectors of sources and targets after events.

        `interval_2BD` is the contribution of the intervals since the nodes' latest events.
        """
        pair_2BC = torch.cat([vector_2BD, vector_2BD.flip(0)], dim=2)
        return functional.normalize(torch.baddbmm(interval_2BD, pair_2BC, self.cell).tanh(), dim=2)

    def project(self, source_BD: Tensor, interval_B: Tensor) -> Tensor:
        """Return the vectors of sources, projected over an interval."""
        projected: Tensor = source_BD * (1 + self.drift(interval_B[:, None]))
        return projected

    def predict(
        self, projected_BD: Tensor, previous_BD: Tensor, source_B: Tensor, previous_B: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the prediction of the next target's vector, [B, D], and one-hot code, [B, T]."""
        predicted = self.predict_vectors(torch.cat([projected_BD, previous_BD], dim=1))
        predicted = predicted + self.predict_source(source_B) + self.predict_previous(previous_B)
        return predicted[:, : self.width], predicted[:, self.width :]


def prediction_error(
    vector_BD: Tensor, code_BT: Tensor, true_BD: Tensor, target_B: Tensor
) -> Tensor:
    """Return the mean squared error of each prediction, over its vector and its one-hot code.

    One-hot codes are not materialized: ||p - onehot(i)||² is ||p||² - 2 p[i] + 1.

    >>> zero, target = torch.zeros(1, 2), torch.tensor([1])
    >>> prediction_error(zero, torch.tensor([[0.0, 3.0]]), zero, target)  # (3 - 1)² / 4
    tensor([1.])
    """
    true_code_B = code_BT.gather(1, target_B[:, None])[:, 0]
    code_B = code_BT.square().sum(1) - 2 * true_code_B + 1
    vector_B = (vector_BD - true_BD).square().sum(1)
    return (vector_B + code_B) / (vector_BD.shape[1] + code_BT.shape[1])


class JODIE(CoupledModel):
    """Prediction of dynamic embedding trajectories (JODIE).

    >>> from tclgraph.events.synthetic import SyntheticConfig, synthesize
    >>> split = synthesize(SyntheticConfig(events=300, sources=8, targets=9)).split(0.6, 0.2)
    >>> model = JODIE(epochs=1, width=8).fit(split)
    >>> len(model.recommend(0, top=5)), model.embed([0, 1]).shape
    (5, (2, 8))
    """

    name = "jodie"
    config_type = JODIEConfig
    in_order = True
    config: JODIEConfig
    network: JODIENetwork

    # Training

    def prepare(self, split: Split) -> int:
        graph = DependencyGraph(NodeSpace.of(split.events))
        graph.append(split.train)
        self._train = EventRange.all_events(graph)
        self.start(split.events, **_measure(self._train))
        return -(-len(graph) // self.config.batch_size)

    def build_network(self) -> JODIENetwork:
        return JODIENetwork(self.config.width, self.graph.space)

    def make_optimizer(self) -> torch.optim.Optimizer:
        # The published loss is a sum over events; here it is divided by the batch size. Adam's
        # steps do not depend on the scale of the gradients, except relative to eps and
        # weight_decay, so these are divided too. Fused, because most of a step updates the many
        # weights of one-hot codes.
        size = self.config.batch_size
        return torch.optim.Adam(
            self.parameter_groups(),
            lr=self.config.learning_rate,
            eps=1e-8 / size,
            weight_decay=self.config.weight_decay / size,
            fused=True,
        )

    def loss(self, batch: int, random: np.random.Generator) -> Tensor:
        """Return the loss of a window of consecutive events, divided by the batch size.

        Paper: one optimizer step for each 500th of the time span of the log; the loss is the sum
        over t-batches of the mean of each. Here: one step for every `batch_size` events, with equal
        weights. Because: equal spans of a log are empty by night and crowded by day, the comparison
        tunes the batch size, and the t-batch of an event says nothing about its importance.
        """
        size = self.config.batch_size
        events = self._train.subrange(batch * size, (batch + 1) * size)
        trajectory = self.unroll_training(events)
        with torch.no_grad():
            # The vectors with which the next batch starts.
            state_ND = self.network.state
            state_ND[as_index(trajectory.node, state_ND)] = trajectory.at_end()[0]
        return self.window_loss(events, trajectory) / size

    def unroll_training(self, events: EventRange) -> Trajectory:
        """Update the vectors by a window of events, starting from those of the previous batch."""
        node = self.needed_nodes(events)
        latest = events.latest.before(node, np.full(len(node), events.first))
        initial_ND = self.network.initial_vectors()
        return self.unroll(
            events, node, _carried(node, latest >= 0, self.network.state, initial_ND)
        )

    def window_loss(self, events: EventRange, trajectory: Trajectory) -> Tensor:
        """Return the sum over events of the prediction error and of how far both vectors moved."""
        source_BD = trajectory.before(events.source, events.event)
        target_BD = trajectory.before(events.target, events.event).detach()
        vector_BD, code_BT = self.predictions(events, trajectory)
        target_B = as_index(events.target - self.graph.space.first_target, source_BD)
        error = prediction_error(vector_BD, code_BT, target_BD, target_B).sum()
        after_source_BD, after_target_BD = trajectory.after_RED
        moved = (after_source_BD - source_BD.detach()).square().mean(1).sum()
        moved = moved + (after_target_BD - target_BD).square().mean(1).sum()
        loss: Tensor = error + self.config.smoothness * moved
        return loss

    # Following and ranking

    def initial_vectors(self) -> Tensor:
        return self.network.initial_vectors()

    def needed_nodes(self, events: EventRange) -> IntArray:
        return np.union1d(events.nodes, self._previous_partners(events))

    def unroll(self, events: EventRange, node: IntArray, first_ND: Tensor) -> Trajectory:
        network = self.network
        of_source, of_target = _intervals(events, self.measured["start"])
        interval_RE = torch.stack(
            [self._scaled(of_source, "source"), self._scaled(of_target, "target")]
        )
        interval_RED = interval_RE[:, :, None] * network.cell_interval + network.cell_bias
        return unroll(events, node, first_ND, network.update, interval_RED)

    def predictions(self, events: EventRange, trajectory: Trajectory) -> tuple[Tensor, Tensor]:
        """Return the predicted vector and code of each event's target, just before the event."""
        event, previous = events.event, self._previous_partners(events)
        return self._predict(
            events.source,
            trajectory.before(events.source, event),
            _intervals(events, self.measured["start"])[0],
            previous,
            # Paper: the previous target's vector at the time of the t-batch, which may be before or
            # after the event. Here: its vector just before the event. Because: a prediction must
            # not depend on later events.
            trajectory.before(previous, event),
        )

    def scores_before(
        self, events: EventRange, trajectory: Trajectory, old: NodeVectors
    ) -> ScoreArray:
        vector_BD, code_BT = self.predictions(events, trajectory)
        before_BT = _nearness(vector_BD, old.vector[self.target_rows]).cpu().numpy()
        target_RE, after_RED = self.updated_targets(events, trajectory)
        after_BN = _nearness(vector_BD, after_RED.flatten(0, 1)).cpu().numpy()
        after_BRE = after_BN.reshape(len(after_BN), *target_RE.shape)
        nearness_BT = with_updates(before_BT, after_BRE, target_RE)
        score_BT: ScoreArray = nearness_BT + 2 * code_BT.cpu().numpy()
        return score_BT

    @torch.no_grad()
    def score(self, source: IntArray, time: FloatArray) -> ScoreArray:
        self.check_fitted()
        latest = self._nodes.instance[source]
        previous = self._partners(latest, self.graph)
        source_BD, previous_BD = self._nodes.select(source), self._nodes.select(previous)
        interval = self._time_since(latest, time)
        vector_BD, code_BT = self._predict(source, source_BD, interval, previous, previous_BD)
        target_TD = self._nodes.vector[self.target_rows]
        score_BT = _nearness(vector_BD, target_TD) + 2 * code_BT
        return score_BT.cpu().numpy()

    def source_vectors(self, source: IntArray, time: float) -> Tensor:
        """Return the vectors of sources, projected to the time."""
        latest, now = self._nodes.instance[source], np.full(len(source), time)
        interval = self._time_since(latest, now)
        return self.network.project(self._nodes.select(source), self._scaled(interval, "source"))

    def _predict(
        self,
        source: IntArray,
        source_BD: Tensor,
        interval: FloatArray,
        previous: IntArray,
        previous_BD: Tensor,
    ) -> tuple[Tensor, Tensor]:
        projected_BD = self.network.project(source_BD, self._scaled(interval, "source"))
        source_B = as_index(source, source_BD)
        previous_B = as_index(previous - self.graph.space.first_target, source_BD)
        return self.network.predict(projected_BD, previous_BD, source_B, previous_B)

    def _time_since(self, instance: IntArray, time: FloatArray) -> FloatArray:
        """Return the times from instances to queries, at least 0."""
        return np.maximum(time - instance_times(instance, self.graph, self.measured["start"]), 0.0)

    def _scaled(self, interval: FloatArray, role: str) -> Tensor:
        """Standardize intervals of sources or of targets."""
        mean, deviation = self.measured[f"{role}_mean"], self.measured[f"{role}_deviation"]
        return self.as_tensor(in_units(interval - mean, deviation))

    def _previous_partners(self, events: EventRange) -> IntArray:
        """Return the partner of each event's source in its latest event."""
        latest = events.latest.before(events.source, events.event)
        return self._partners(latest, events.graph)

    def _partners(self, instance: IntArray, graph: DependencyGraph) -> IntArray:
        """Return the partners of nodes in instances; the placeholder in place of NONE."""
        partner = np.full(instance.shape, graph.space.num_nodes)
        is_instance = instance >= 0
        partner[is_instance] = graph.node[instance[is_instance] ^ 1]
        return partner


def _nearness(vector_BD: Tensor, target_ND: Tensor) -> Tensor:
    """Return minus the squared distances, up to a term that is equal for all targets of a row."""
    return 2 * vector_BD @ target_ND.T - target_ND.square().sum(1)


def _intervals(events: EventRange, start: float) -> tuple[FloatArray, FloatArray]:
    """Return the times since the latest event of each event's source, and of its target."""
    source, target = (
        events.time - instance_times(events.latest.before(node, events.event), events.graph, start)
        for node in events.nodes
    )
    return source, target


def _measure(train: EventRange) -> dict[str, float]:
    """Return the start of training, and means and deviations that standardize the intervals.

    Paper: the mean and deviation over the complete log. Here: over the training stream. Because:
    the length of later intervals is not known during training.
    """
    start = float(train.time[0])
    measured = {"start": start}
    for role, interval in zip(("source", "target"), _intervals(train, start), strict=True):
        mean, deviation = float(interval.mean()), float(interval.std())
        measured[f"{role}_mean"] = mean
        # Equal intervals have no deviation but what rounding leaves; their mean is the unit then.
        is_equal = deviation < _MIN_DEVIATION * mean
        measured[f"{role}_deviation"] = mean if is_equal else deviation
    return measured


def _carried(node: IntArray, has_event: BoolArray, state_ND: Tensor, initial_ND: Tensor) -> Tensor:
    """Return the carried vectors of nodes that have had an event, and initial vectors of others.

    Paper: initial vectors are copied into the tables at the start of an epoch, so that only the
    first batch trains them. Here: they are not copied, and every first event of a node trains them.
    """
    row, is_carried = as_index(node, state_ND), torch.from_numpy(has_event).to(state_ND.device)
    return torch.where(is_carried[:, None], state_ND[row], initial_ND[row])
