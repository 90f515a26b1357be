"""DeepCoevolve: vectors of sources and targets evolve together and give the rate of their events.

Every event updates the vectors of its source and of its target, each from the other. The two
vectors of a pair give the rate of a Rayleigh process: the intensity of the pair grows with the time
since the latest event of either node.

A node of a one-mode graph has one vector. Its events as a source update it with the GRU for
sources, those as a target with the GRU for targets, and its latest event is that in either role.

Shapes: B events, C pairs of an event, T targets, D width, N nodes.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import torch
from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt
from torch import Tensor, nn
from torch.nn import functional

from tclgraph.arrays import FloatArray, IntArray, ScoreArray
from tclgraph.baselines.coupled_states import (
    GROUP_SIDES,
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
from tclgraph.baselines.own_target import measure_own_targets, rank_own_target_last
from tclgraph.dependency_graph.graph import DependencyGraph
from tclgraph.dependency_graph.interval_scaling import IntervalScale, in_units
from tclgraph.events.node_space import NodeSpace
from tclgraph.events.split import Split
from tclgraph.layers.node_tables import NodeModule, NodeTable
from tclgraph.objectives.rayleigh import log_density, log_intensity, rayleigh_loss
from tclgraph.sampling.negatives import uniform_negatives
from tclgraph.training.config import TrainingConfig

_TABLE_DEVIATION = 0.1
# Number of training windows from which the base rate is estimated, and the limits of the expected
# number of events that they give.
_WINDOWS_TO_MEASURE = 32
_EXPECTED_LIMITS = (1e-6, 1e6)


@dataclass(frozen=True, kw_only=True)
class DeepCoevolveConfig(TrainingConfig):
    """Settings of DeepCoevolve.

    The published sizes are not known. The defaults are those of the comparison, and values that
    gave the best validation metrics.
    """

    epochs: PositiveInt = 30
    """Largest number of epochs."""
    patience: PositiveInt | None = 5
    """Epochs without a better validation metric before training stops; None: never stop early."""
    learning_rate: PositiveFloat = 5e-3
    """Learning rate of Adam."""
    batch_size: PositiveInt = 512
    """Number of consecutive events in a window; all vectors start at their initial values."""
    warmup_steps: NonNegativeInt = 100
    """Batches over which the learning rate rises linearly. Adam's first steps are as long as later
    ones, and rates are exponential: a few steps in the same direction would let them explode."""
    max_gradient_norm: PositiveFloat | None = 5.0
    """Largest norm of the gradient; a longer gradient is scaled down to it. None: no limit."""

    width: PositiveInt = 64
    """Size of a vector."""
    survival_pairs: Annotated[int, Field(ge=2)] = 5
    """Number of targets paired with an event's source, and of sources paired with its target, in
    the survival term: pairs without an event since the latest event of either node. The true pair
    is one of them."""
    survival_weight: PositiveFloat | None = None
    """Weight of every other pair in the survival term, where the true pair has 1. None: the number
    of pairs that it stands for, so that the sample weighs as much as all pairs. Published: 1."""
    shortest_interval: PositiveFloat = 0.5
    """Shorter intervals count as this one, in mean intervals between events of a node. If people
    answer at once, hardly any event is expected in so short a time, and nothing could be learned
    from the pairs without an event."""
    longest_interval: PositiveFloat = 1.0
    """Longer intervals count as this one. A window of a quiet time can last a hundred times as long
    as a window of a busy time, and the expected number of events grows with the square of that."""
    memory: PositiveInt | None = 512
    """Smallest number of latest events that the state depends on when targets are ranked; it
    depends on at most twice as many. None: all events. See `DeepCoevolve`."""
    rank_by: Literal["density", "intensity", "rate"] = "rate"
    """What targets are ranked by."""

    def __post_init__(self) -> None:
        if self.shortest_interval > self.longest_interval:
            raise ValueError(
                f"shortest_interval={self.shortest_interval:g} is longer than "
                f"longest_interval={self.longest_interval:g}; give a shorter one"
            )


class DeepCoevolveNetwork(NodeModule):
    """Initial vectors of all nodes, and one GRU cell for each role."""

    def __init__(self, width: int, space: NodeSpace) -> None:
        super().__init__()
        # A table of sources and one of targets, or one of all nodes of a one-mode graph.
        groups = vector_groups(space)
        self._groups = tuple(groups)
        for name, size in groups.items():
            self.register_parameter(name, nn.Parameter(torch.empty(size, width)))
        # Weights of two GRU cells, for sources and for targets: reset gate, update gate, candidate.
        # The input of a cell is the partner's vector, its hidden state the node's vector.
        self.input_weight = nn.Parameter(torch.empty(2, width, 3 * width))
        self.hidden_weight = nn.Parameter(torch.empty(2, width, 3 * width))
        self.input_bias = nn.Parameter(torch.empty(2, 1, 3 * width))
        self.hidden_bias = nn.Parameter(torch.empty(2, 1, 3 * width))
        for name in self._groups:
            nn.init.normal_(self.get_parameter(name), std=_TABLE_DEVIATION)
        for weight in (self.input_weight, self.hidden_weight, self.input_bias, self.hidden_bias):
            nn.init.uniform_(weight, -(width**-0.5), width**-0.5)

    def node_tables(self) -> list[NodeTable]:
        return [
            NodeTable(name=name, side=GROUP_SIDES[name], deviation=_TABLE_DEVIATION)
            for name in self._groups
        ]

    def initial_vectors(self) -> Tensor:
        """Return the vectors of all nodes, scaled down to at most unit length."""
        return torch.cat([_limit_length(self.get_parameter(name)) for name in self._groups])

    def update(self, vector_2BD: Tensor, input_2B0: Tensor) -> Tensor:
        """Return the vectors of sources and targets after events; the inputs are empty."""
        partner_2BD = vector_2BD.flip(0)
        inputs = torch.baddbmm(self.input_bias, partner_2BD, self.input_weight).chunk(3, dim=2)
        hidden = torch.baddbmm(self.hidden_bias, vector_2BD, self.hidden_weight).chunk(3, dim=2)
        reset, update = (inputs[0] + hidden[0]).sigmoid(), (inputs[1] + hidden[1]).sigmoid()
        candidate_2BD = (inputs[2] + reset * hidden[2]).tanh()
        return candidate_2BD.lerp(vector_2BD, update)


class DeepCoevolve(CoupledModel):
    """Recurrent coevolutionary latent feature processes (DeepCoevolve).

    Published code: the state that ranks starts with the learned vectors at the first event to rank.
    Here: at least `memory` events before the event to rank. Because: training windows start with
    these vectors.
    After a thousand events hardly anything of them is left in the state, and the state knows
    nothing about a node beyond its latest partners.

    >>> from tclgraph.events.synthetic import SyntheticConfig, synthesize
    >>> split = synthesize(SyntheticConfig(events=300, sources=8, targets=9)).split(0.6, 0.2)
    >>> model = DeepCoevolve(epochs=1, width=8).fit(split)
    >>> len(model.recommend(0, top=5)), model.embed([0, 1]).shape
    (5, (2, 8))
    """

    name = "deepcoevolve"
    config_type = DeepCoevolveConfig
    config: DeepCoevolveConfig
    network: DeepCoevolveNetwork

    # Training

    def prepare(self, split: Split) -> int:
        graph = DependencyGraph(NodeSpace.of(split.events))
        graph.append(split.train)
        self._train = EventRange.all_events(graph)
        source, target = self._train.nodes
        self._candidates = np.unique(source), np.unique(target)
        unit = IntervalScale.measure(graph).mean
        base_rate = 1 / np.clip(self._expected_events(unit), *_EXPECTED_LIMITS)
        self.start(
            split.events,
            start=float(split.train.time[0]),
            unit=unit,
            log_base_rate=float(np.log(base_rate)),
            **measure_own_targets(split.train),
        )
        return -(-len(graph) // self.config.batch_size)

    def _expected_events(self, unit: float) -> float:
        """Return the mean expected number of events of an event's pairs before it, at rate 1."""
        random = np.random.default_rng(self.config.seed)
        expected = []
        for _ in range(_WINDOWS_TO_MEASURE):
            events, source, target = self.draw(random)
            interval = self._scaled(_intervals(events, source, target), unit)
            expected.append(interval**2 / 2 @ self._weights(source, target))
        return float(np.concatenate(expected).mean())

    def _weights(self, source: IntArray, target: IntArray) -> FloatArray:
        """Return the weights of an event's pairs: source with targets, then target with sources.

        Paper: 1. Here: the number of pairs that a sampled pair stands for. Because: a few pairs
        with the same weight as the true pair cost little, and all rates would grow large alike.
        """
        weights: list[float] = []
        for drawn, candidates in zip((target, source), self._candidates[::-1], strict=True):
            count = drawn.shape[1] - 1  # 0 if there is no other candidate
            weight = self.config.survival_weight or (len(candidates) - 1) / max(count, 1)
            # The true pair is in both halves but counts once.
            weights += [0.0 if weights else 1.0, *[weight] * count]
        return np.array(weights)

    def build_network(self) -> DeepCoevolveNetwork:
        return DeepCoevolveNetwork(self.config.width, self.graph.space)

    def loss(self, batch: int, random: np.random.Generator) -> Tensor:
        """Return the loss of a random window; an epoch has enough windows to cover the stream."""
        return self.window_loss(*self.draw(random))

    def draw(self, random: np.random.Generator) -> tuple[EventRange, IntArray, IntArray]:
        """Return a random window, and for each event the sources and targets of its pairs.

        The event's own source and target come first in their rows.
        """
        size, count = self.config.batch_size, self.config.survival_pairs - 1
        first = int(random.integers(max(self._train.stop - size, 0) + 1))
        events = self._train.subrange(first, first + size)
        source, target = (
            np.column_stack([true, uniform_negatives(true, candidates, count, random)])
            for true, candidates in zip(
                (events.source, events.target), self._candidates, strict=True
            )
        )
        return events, source, target

    def window_loss(self, events: EventRange, source: IntArray, target: IntArray) -> Tensor:
        """Return the loss of a window with these sources and targets paired with its events."""
        node, table_ND = np.union1d(source, target), self.initial_vectors()
        trajectory = self.unroll(events, node, table_ND[as_index(node, table_ND)])
        event = events.event[:, None]
        source_BCD, target_BCD = (trajectory.before(nodes, event) for nodes in (source, target))
        with_targets_BC = (source_BCD[:, :1] * target_BCD).sum(2)
        with_sources_BC = (source_BCD * target_BCD[:, :1]).sum(2)
        log_rate_BC = self._log_rates(torch.cat([with_targets_BC, with_sources_BC], dim=1))
        if not self.measured["can_be_own_target"]:
            # Pairs of a node with itself have no process, see `own_target`.
            is_self = np.concatenate([source[:, :1] == target, source == target[:, :1]], axis=1)
            mask_BC = torch.from_numpy(is_self).to(log_rate_BC.device)
            log_rate_BC = log_rate_BC.masked_fill(mask_BC, -torch.inf)
        interval = _intervals(events, source, target)
        interval_BC = self.as_tensor(self._scaled(interval, self.measured["unit"]))
        weight_C = self.as_tensor(self._weights(source, target))
        return rayleigh_loss(log_rate_BC[:, 0], log_rate_BC, interval_BC, weight_C)

    # Following and ranking

    @property
    def memory(self) -> int | None:
        return self.config.memory

    def _start(self, event: int) -> float:
        """Return the time of the first event that the state before `event` depends on."""
        memory = self.config.memory
        first = max(event // memory - 1, 0) * memory if memory else 0
        return float(self.graph.time[first]) if len(self.graph) else self.measured["start"]

    def initial_vectors(self) -> Tensor:
        return self.network.initial_vectors()

    def unroll(self, events: EventRange, node: IntArray, first_ND: Tensor) -> Trajectory:
        no_input = first_ND.new_empty(2, events.stop - events.first, 0)
        return unroll(events, node, first_ND, self.network.update, no_input)

    def scores_before(
        self, events: EventRange, trajectory: Trajectory, old: NodeVectors
    ) -> ScoreArray:
        source_BD = trajectory.before(events.source, events.event)
        target_RE, after_RED = self.updated_targets(events, trajectory)
        old_BT = (source_BD @ old.vector[self.target_rows].T).cpu().numpy()
        after_BN = (source_BD @ after_RED.flatten(0, 1).T).cpu().numpy()
        after_BRE = after_BN.reshape(len(after_BN), *target_RE.shape)
        match_BT = with_updates(old_BT, after_BRE, target_RE)
        start = self._start(events.first)
        old_time_T = instance_times(old.instance[self.target_rows], self.graph, start)
        target_time_BT = with_updates(
            np.broadcast_to(old_time_T, match_BT.shape),
            np.broadcast_to(events.time, after_BRE.shape),
            target_RE,
        )
        latest = events.latest.before(events.source, events.event)
        source_time = instance_times(latest, self.graph, start)
        scores = self._scores(match_BT, events.time, source_time, target_time_BT)
        return rank_own_target_last(scores, events.source, self.measured)

    @torch.no_grad()
    def score(self, source: IntArray, time: FloatArray) -> ScoreArray:
        self.check_fitted()
        match_BT = self._nodes.select(source) @ self._nodes.vector[self.target_rows].T
        start = self._start(len(self.graph))
        latest_time = instance_times(self._nodes.instance, self.graph, start)
        source_time, target_time_T = latest_time[source], latest_time[self.target_rows]
        scores = self._scores(match_BT.cpu().numpy(), time, source_time, target_time_T)
        return rank_own_target_last(scores, source, self.measured)

    def _scores(
        self,
        match_BT: ScoreArray,
        time: FloatArray,
        source_time: FloatArray,
        target_time: FloatArray | ScoreArray,
    ) -> ScoreArray:
        """Return scores from products of vectors, query times, and times of the latest events."""
        if self.config.rank_by == "rate":
            return match_BT  # same order as the rates, without their upper limit
        log_rate_BT = self._log_rates(torch.from_numpy(match_BT))
        interval = time[:, None] - np.maximum(source_time[:, None], target_time)
        interval_BT = torch.from_numpy(self._scaled(interval, self.measured["unit"]))
        rank_by = log_density if self.config.rank_by == "density" else log_intensity
        return rank_by(log_rate_BT, interval_BT.to(log_rate_BT.dtype)).numpy()

    def _log_rates(self, match: Tensor) -> Tensor:
        """Return the logarithms of the rates of pairs from the products of their vectors.

        Paper: the rate is e to the power of the product. Here: three changes.
        The rate is multiplied by a base rate, at which the pairs of a training window have one
        expected event if all products are zero. Because: products are close to zero at first, and
        if a rate of 1 is far too low, the first steps raise all rates without limit.
        The product is multiplied by √width. Because: products of unit vectors are small, and rates
        would hardly differ.
        The rate has a soft upper limit, the likeliest rate of a pair whose event comes after the
        shortest interval. Because: a single step that is too long would give a loss of millions.
        """
        line = match * self.config.width**0.5 + self.measured["log_base_rate"]
        highest = math.log(2 / self.config.shortest_interval**2)
        return highest - functional.softplus(highest - line)

    def _scaled(self, interval: FloatArray, unit: float) -> FloatArray:
        return np.clip(
            in_units(interval, unit), self.config.shortest_interval, self.config.longest_interval
        )


def _intervals(events: EventRange, source: IntArray, target: IntArray) -> FloatArray:
    """Return the times without an event of each event's pairs: with targets, then with sources.

    They count from the latest event of either node, but at most from the start of the range.
    """
    event, start = events.event[:, None], float(events.time[0])
    source_time, target_time = (
        instance_times(events.latest.before(node, event), events.graph, start)
        for node in (source, target)
    )
    with_targets = np.maximum(source_time[:, :1], target_time)
    with_sources = np.maximum(source_time, target_time[:, :1])
    since: FloatArray = np.concatenate([with_targets, with_sources], axis=1)
    return events.time[:, None] - since


def _limit_length(table_ND: Tensor) -> Tensor:
    """Scale rows down to at most unit length, so that the first rates are moderate."""
    length_N1: Tensor = table_ND.norm(dim=1, keepdim=True)
    return table_ND / length_N1.clamp_min(1.0)
