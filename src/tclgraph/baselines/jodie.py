"""JODIE: two coupled recurrent networks, and a prediction of the next target's embedding.

Every event updates the vector of its source and that of its target, each from the other. Until a
source's next event its vector is projected along a line in time. From the projected vector, and
from the source's previous target, a linear layer predicts what the next target looks like: its
vector, and which one it is. Targets are ranked by their distance from that.

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
    RoleState,
    Stretch,
    Trajectory,
    as_index,
    revealed,
    roll,
    times_of,
)
from tclgraph.dependency_graph.graph import DependencyGraph
from tclgraph.events.node_space import NodeSpace
from tclgraph.events.split import Split
from tclgraph.training.config import TrainingConfig


@dataclass(frozen=True, kw_only=True)
class JODIEConfig(TrainingConfig):
    """As published, but half as wide."""

    width: PositiveInt = 64
    """Size of a dynamic vector. Published: 128; the comparison that this is for has 64."""
    learning_rate: PositiveFloat = 1e-3
    """Of Adam."""
    batch_size: PositiveInt = 128
    """Consecutive events to a step of the optimizer, through which gradients flow."""
    epochs: PositiveInt = 30
    """Passes over the training stream, at most. Published: 50, without early stopping."""
    patience: PositiveInt | None = 5
    """Epochs without a better validation figure before training stops early; None: never."""
    smoothness: NonNegativeFloat = 1.0
    """Weight of how far an event moves vectors beside the error of the prediction (λ in the
    paper). Both are means over components. There are far more of the prediction, so that 1 holds
    vectors almost still; with 0 they differ more, and the mean rank is better."""
    weight_decay: NonNegativeFloat = 1e-5
    """By which Adam's gradients pull every weight to zero."""


class JODIENetwork(nn.Module):
    """Everything that is learned, and the vectors that training carries from batch to batch."""

    source_state: Tensor
    target_state: Tensor

    def __init__(self, width: int, space: NodeSpace) -> None:
        super().__init__()
        num_sources, num_targets = space.num_sources, space.num_targets
        self.width = width
        # Shared by all who have had no event yet.
        self.first_source = nn.Parameter(torch.rand(width))
        self.first_target = nn.Parameter(torch.rand(width))
        # Of sources and of targets: from own vector and partner's to the new one.
        self.cell = nn.Parameter(torch.empty(2, 2 * width, width))
        self.cell_interval = nn.Parameter(torch.empty(2, 1, width))
        self.cell_bias = nn.Parameter(torch.empty(2, 1, width))
        self.drift = nn.Linear(1, width)
        # One linear layer of two vectors and two one-hot codes, in three parts: a one-hot code
        # times a matrix is a row of it. A source without a past has "nobody" as previous target.
        # Paper: nobody is predicted and ranked as well. Here: not, as it is never what comes next.
        self.of_vectors = nn.Linear(2 * width, width + num_targets)
        self.of_source = nn.Embedding(num_sources, width + num_targets)
        self.of_previous = nn.Embedding(num_targets + 1, width + num_targets)
        self.register_buffer("source_state", torch.zeros(num_sources, width))
        self.register_buffer("target_state", torch.zeros(num_targets + 1, width))
        self._initialize(2 * width + num_sources + num_targets + 1)

    def _initialize(self, num_inputs: int) -> None:
        for parameter in (self.cell, self.cell_interval, self.cell_bias):
            nn.init.uniform_(parameter, -(self.width**-0.5), self.width**-0.5)
        for parameter in self.drift.parameters():
            nn.init.normal_(parameter)
        limit = num_inputs**-0.5
        for part in (self.of_vectors, self.of_source, self.of_previous):
            for parameter in part.parameters():
                nn.init.uniform_(parameter, -limit, limit)

    def first_states(self) -> tuple[Tensor, Tensor]:
        """Of unit length like all later ones, and kept so as they are learned; nobody's is last."""
        source_D = functional.normalize(self.first_source, dim=0)
        target_D = functional.normalize(self.first_target, dim=0)
        return (
            source_D.expand(len(self.source_state), self.width),
            target_D.expand(len(self.target_state), self.width),
        )

    def update(self, vector_2BD: Tensor, interval_2BD: Tensor) -> Tensor:
        """Vectors of sources and targets after events, from what intervals add and those before."""
        both_2BC = torch.cat([vector_2BD, vector_2BD.flip(0)], dim=2)
        return functional.normalize(torch.baddbmm(interval_2BD, both_2BC, self.cell).tanh(), dim=2)

    def project(self, source_BD: Tensor, interval_B: Tensor) -> Tensor:
        """What becomes of sources as time passes."""
        projected: Tensor = source_BD * (1 + self.drift(interval_B[:, None]))
        return projected

    def predict(
        self, projected_BD: Tensor, previous_BD: Tensor, source_B: Tensor, previous_B: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The next target's vector, [B, D], and its one-hot code, [B, T]."""
        predicted = self.of_vectors(torch.cat([projected_BD, previous_BD], dim=1))
        predicted = predicted + self.of_source(source_B) + self.of_previous(previous_B)
        return predicted[:, : self.width], predicted[:, self.width :]


def prediction_error(
    vector_BD: Tensor, code_BT: Tensor, true_BD: Tensor, target_B: Tensor
) -> Tensor:
    """Mean square of a prediction less the true vector and the true one-hot code, event by event.

    The code is never written out: ||p - onehot(i)||² is ||p||² - 2 p[i] + 1.

    >>> zero, target = torch.zeros(1, 2), torch.tensor([1])
    >>> prediction_error(zero, torch.tensor([[0.0, 3.0]]), zero, target)  # (3 - 1)² in four places
    tensor([1.])
    """
    true_code_B = code_BT.gather(1, target_B[:, None])[:, 0]
    code_B = code_BT.square().sum(1) - 2 * true_code_B + 1
    vector_B = (vector_BD - true_BD).square().sum(1)
    return (vector_B + code_B) / (vector_BD.shape[1] + code_BT.shape[1])


class JODIE(CoupledModel):
    """Predicting dynamic embedding trajectories."""

    name = "jodie"
    config_type = JODIEConfig
    in_order = True
    config: JODIEConfig
    network: JODIENetwork

    # Learning

    def prepare(self, split: Split) -> int:
        graph = DependencyGraph(NodeSpace.of(split.events))
        graph.append(split.train)
        self._train = Stretch.whole(graph)
        self.start(split.events, **_measure(self._train))
        return -(-len(graph) // self.config.batch_size)

    def build_network(self) -> JODIENetwork:
        return JODIENetwork(self.config.width, self.graph.space)

    def make_optimizer(self) -> torch.optim.Optimizer:
        # As if losses of events were added up, not averaged: Adam knows gradients by how large they
        # are beside these two alone. Fused, as most of a step is moving the rows of one-hot codes.
        size = self.config.batch_size
        return torch.optim.Adam(
            self.parameter_groups(),
            lr=self.config.learning_rate,
            eps=1e-8 / size,
            weight_decay=self.config.weight_decay / size,
            fused=True,
        )

    def loss(self, batch: int, random: np.random.Generator) -> Tensor:
        """Of a window of consecutive events, as if they came one after the other.

        Paper: a step of the optimizer for each 500th of the time that the whole log spans, and the
        loss is the sum over t-batches of each one's mean. Here: a step for so many events, each of
        which counts the same. Because: spans of a log are empty by night and crowded by day, batch
        sizes are what the comparison tunes, and how events fall into t-batches says nothing about
        how much they should count.
        """
        size = self.config.batch_size
        stretch = self._train.part(batch * size, (batch + 1) * size)
        sources, targets = self.roll_training(stretch)
        with torch.no_grad():
            _keep(self.network.source_state, sources, stretch.stop)
            _keep(self.network.target_state, targets, stretch.stop)
        return self.loss_of(stretch, sources, targets) / size

    def roll_training(self, stretch: Stretch) -> tuple[Trajectory, Trajectory]:
        """From the vectors that the batch before left behind."""
        first_SD, first_TD = self.network.first_states()
        source, target = np.unique(stretch.source), self.needed_targets(stretch)
        knows_source = stretch.as_source.before(source, np.full(len(source), stretch.first)) >= 0
        knows_target = stretch.as_target.before(target, np.full(len(target), stretch.first)) >= 0
        return self.roll(
            stretch,
            (source, _carried(source, knows_source, self.network.source_state, first_SD)),
            (target, _carried(target, knows_target, self.network.target_state, first_TD)),
        )

    def loss_of(self, stretch: Stretch, sources: Trajectory, targets: Trajectory) -> Tensor:
        """Sum over events of three errors: of the prediction, and how far either party moved."""
        source_BD = sources.before(stretch.source, stretch.event)
        target_BD = targets.before(stretch.target, stretch.event).detach()
        vector_BD, code_BT = self.predictions(stretch, sources, targets)
        target_B = as_index(stretch.target, source_BD)
        error = prediction_error(vector_BD, code_BT, target_BD, target_B).sum()
        moved = (sources.after_ED - source_BD.detach()).square().mean(1).sum()
        moved = moved + (targets.after_ED - target_BD).square().mean(1).sum()
        return error + self.config.smoothness * moved

    # Following and ranking

    def first_states(self) -> tuple[Tensor, Tensor]:
        return self.network.first_states()

    def needed_targets(self, stretch: Stretch) -> IntArray:
        return np.union1d(stretch.target, self._previous_targets(stretch))

    def roll(
        self, stretch: Stretch, sources: tuple[IntArray, Tensor], targets: tuple[IntArray, Tensor]
    ) -> tuple[Trajectory, Trajectory]:
        network = self.network
        own, others = _seconds(stretch, self.measured["start"])
        interval_2B = torch.stack([self._scaled(own, "source"), self._scaled(others, "target")])
        interval_2BD = interval_2B[:, :, None] * network.cell_interval + network.cell_bias
        return roll(stretch, sources, targets, network.update, interval_2BD)

    def predictions(
        self, stretch: Stretch, sources: Trajectory, targets: Trajectory
    ) -> tuple[Tensor, Tensor]:
        """What each event's target was expected to be like just before the event."""
        event, previous = stretch.event, self._previous_targets(stretch)
        return self._predict(
            stretch.source,
            sources.before(stretch.source, event),
            _seconds(stretch, self.measured["start"])[0],
            previous,
            # Paper: as the t-batch finds it, which may be before or after the event's time. Here:
            # as it was at the event. Because: what comes later must not be known.
            targets.before(previous, event),
        )

    def scores_before(
        self, stretch: Stretch, sources: Trajectory, targets: Trajectory, standing: RoleState
    ) -> ScoreArray:
        vector_BD, code_BT = self.predictions(stretch, sources, targets)
        before_BT = _nearness(vector_BD, standing.vector[:-1]).cpu().numpy()
        after_BB = _nearness(vector_BD, targets.after_ED).cpu().numpy()
        nearness_BT = revealed(before_BT, after_BB, stretch.target)
        score_BT: ScoreArray = nearness_BT + 2 * code_BT.cpu().numpy()
        return score_BT

    @torch.no_grad()
    def score(self, source: IntArray, time: FloatArray) -> ScoreArray:
        self.check_fitted()
        last = self._sources.event[source]
        previous = self._targets_of(last, self.graph)
        source_BD, previous_BD = self._sources.of(source)[1], self._targets.of(previous)[1]
        seconds = self._seconds_since(last, time)
        vector_BD, code_BT = self._predict(source, source_BD, seconds, previous, previous_BD)
        score_BT = _nearness(vector_BD, self._targets.vector[:-1]) + 2 * code_BT
        return score_BT.cpu().numpy()

    def source_vectors(self, source: IntArray, time: float) -> Tensor:
        """Projected to the time."""
        last, now = self._sources.event[source], np.full(len(source), time)
        seconds = self._seconds_since(last, now)
        return self.network.project(self._sources.of(source)[1], self._scaled(seconds, "source"))

    def _predict(
        self,
        source: IntArray,
        source_BD: Tensor,
        seconds: FloatArray,
        previous: IntArray,
        previous_BD: Tensor,
    ) -> tuple[Tensor, Tensor]:
        projected_BD = self.network.project(source_BD, self._scaled(seconds, "source"))
        source_B, previous_B = as_index(source, source_BD), as_index(previous, source_BD)
        return self.network.predict(projected_BD, previous_BD, source_B, previous_B)

    def _seconds_since(self, event: IntArray, time: FloatArray) -> FloatArray:
        return np.maximum(time - times_of(event, self.graph, self.measured["start"]), 0.0)

    def _scaled(self, seconds: FloatArray, role: str) -> Tensor:
        mean, deviation = self.measured[f"{role}_mean"], self.measured[f"{role}_deviation"]
        return self.numbers((seconds - mean) / deviation)

    def _previous_targets(self, stretch: Stretch) -> IntArray:
        """Of each event's source."""
        last = stretch.as_source.before(stretch.source, stretch.event)
        return self._targets_of(last, stretch.graph)

    def _targets_of(self, event: IntArray, graph: DependencyGraph) -> IntArray:
        """Of events of a graph; nobody in place of NONE."""
        target = np.full(event.shape, graph.space.num_targets)
        known = event >= 0
        target[known] = graph.node[2 * event[known] + 1] - graph.space.first_target
        return target


def _nearness(vector_BD: Tensor, target_ND: Tensor) -> Tensor:
    """Of targets to predictions: minus the squared distance, but for what is equal for all."""
    return 2 * vector_BD @ target_ND.T - target_ND.square().sum(1)


def _seconds(stretch: Stretch, start: float) -> tuple[FloatArray, FloatArray]:
    """Since the last event of each event's source, and of its target."""
    last_source = stretch.as_source.before(stretch.source, stretch.event)
    last_target = stretch.as_target.before(stretch.target, stretch.event)
    return (
        stretch.time - times_of(last_source, stretch.graph, start),
        stretch.time - times_of(last_target, stretch.graph, start),
    )


def _measure(train: Stretch) -> dict[str, float]:
    """What intervals are standardized by.

    Paper: the mean and deviation over the whole log. Here: of the training stream, because a model
    that trains on it cannot know how long people will pause later.
    """
    start = float(train.time[0])
    measured = {"start": start}
    for role, seconds in zip(("source", "target"), _seconds(train, start), strict=True):
        measured[f"{role}_mean"] = float(seconds.mean())
        measured[f"{role}_deviation"] = float(seconds.std()) or 1.0
    return measured


def _carried(node: IntArray, is_known: BoolArray, state_ND: Tensor, first_ND: Tensor) -> Tensor:
    """Vectors of nodes: what was kept of those who have had an event, and the first of others.

    Paper: first vectors are copied into the tables as an epoch begins, so that they learn from its
    first batch only. Here: they are in no table, and learn from every first event.
    """
    place, known = as_index(node, state_ND), torch.from_numpy(is_known).to(state_ND.device)
    return torch.where(known[:, None], state_ND[place], first_ND[place])


def _keep(state_ND: Tensor, along: Trajectory, stop: int) -> None:
    """Let the next batch begin where this one ended."""
    vector = along.before(along.node, np.full(len(along.node), stop))
    state_ND[as_index(along.node, state_ND)] = vector
