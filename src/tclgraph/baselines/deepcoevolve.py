"""DeepCoevolve: vectors of sources and targets evolve together, and say how soon two will meet.

Every event updates the vector of its source and that of its target, each from the other. The two
vectors of a pair give the rate of a Rayleigh process, by which the pair's intensity grows with the
time since either of the two last had an event.

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
from tclgraph.dependency_graph.interval_scaling import IntervalScale
from tclgraph.events.node_space import NodeSpace
from tclgraph.events.split import Split
from tclgraph.objectives.rayleigh import log_density, log_intensity, rayleigh_loss
from tclgraph.sampling.negatives import uniform_negatives
from tclgraph.training.config import TrainingConfig

_TABLE_DEVIATION = 0.1
# Of which the base rate is made, and between which what it is made of lies.
_WINDOWS_TO_MEASURE = 32
_EXPECTED = (1e-6, 1e6)


@dataclass(frozen=True, kw_only=True)
class DeepCoevolveConfig(TrainingConfig):
    """Published sizes are not known; these are the comparison's, and what did best on valid."""

    epochs: PositiveInt = 30
    patience: PositiveInt | None = 5
    learning_rate: PositiveFloat = 5e-3
    """Of Adam."""
    batch_size: PositiveInt = 512
    """Consecutive events of a window, before which nothing has happened."""
    warm_up: NonNegativeInt = 100
    """Batches over which the learning rate rises to that, evenly. Adam's first steps are as long as
    any, and rates are exponential: a few in the same direction are enough to make them explode."""
    max_gradient_norm: PositiveFloat | None = 5.0
    """Longer gradients are shortened to this; None leaves them as they are."""

    width: PositiveInt = 64
    """Size of a vector."""
    survival_pairs: Annotated[int, Field(ge=2)] = 5
    """Targets of an event's source, and sources of its target, which are known not to have met it
    before the event; the true one is among them."""
    survival_weight: PositiveFloat | None = None
    """Of each that is not the true one, which has 1; None: as many as it stands for, so that the
    few that are drawn weigh as much as all. Published: 1."""
    shortest_interval: PositiveFloat = 0.5
    """In mean intervals between events of a node; shorter ones count as this. Where people answer
    at once nothing could be expected in so short a time, and nothing learned from who did not."""
    longest_interval: PositiveFloat = 1.0
    """Longer ones count as this. A window of a quiet time may last a hundred times as long as one
    of a busy time, and expects that squared."""
    memory: PositiveInt | None = 512
    """Events that are followed at least when targets are ranked, and at most twice as many; None:
    all that there are. See `DeepCoevolve`."""
    rank_by: Literal["density", "intensity", "rate"] = "rate"
    """What targets are ranked by."""

    def __post_init__(self) -> None:
        if self.shortest_interval > self.longest_interval:
            raise ValueError(
                f"shortest_interval {self.shortest_interval:g} is longer than longest_interval "
                f"{self.longest_interval:g}; give a shorter one"
            )


class DeepCoevolveNetwork(nn.Module):
    """Everything that is learned."""

    def __init__(self, width: int, space: NodeSpace) -> None:
        super().__init__()
        self.source = nn.Parameter(torch.empty(space.num_sources, width))
        self.target = nn.Parameter(torch.empty(space.num_targets, width))
        # Two GRU cells, of sources and of targets: reset gate, update gate and candidate.
        self.of_partner = nn.Parameter(torch.empty(2, width, 3 * width))
        self.of_own = nn.Parameter(torch.empty(2, width, 3 * width))
        self.partner_bias = nn.Parameter(torch.empty(2, 1, 3 * width))
        self.own_bias = nn.Parameter(torch.empty(2, 1, 3 * width))
        for table in (self.source, self.target):
            nn.init.normal_(table, std=_TABLE_DEVIATION)
        for weight in (self.of_partner, self.of_own, self.partner_bias, self.own_bias):
            nn.init.uniform_(weight, -(width**-0.5), width**-0.5)

    def first_states(self) -> tuple[Tensor, Tensor]:
        """Of all sources and targets, brought to at most unit length."""
        return _within_reach(self.source), _within_reach(self.target)

    def update(self, vector_2BD: Tensor, given_2B0: Tensor) -> Tensor:
        """Vectors of sources and targets after events, from those before alone."""
        partner_2BD = vector_2BD.flip(0)
        partner = torch.baddbmm(self.partner_bias, partner_2BD, self.of_partner).chunk(3, dim=2)
        own = torch.baddbmm(self.own_bias, vector_2BD, self.of_own).chunk(3, dim=2)
        reset, kept = (partner[0] + own[0]).sigmoid(), (partner[1] + own[1]).sigmoid()
        candidate_2BD = (partner[2] + reset * own[2]).tanh()
        return candidate_2BD.lerp(vector_2BD, kept)


class DeepCoevolve(CoupledModel):
    """Recurrent coevolutionary latent feature processes.

    Published code: the state that ranks begins with the learned vectors at the first event to rank.
    Here: at the last event but `memory`, or earlier. Because: learned are windows that begin with
    these vectors; after a thousand events hardly anything is left of them in a state, and with them
    goes what is known of a node beyond its last partners.

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

    # Learning

    def prepare(self, split: Split) -> int:
        graph = DependencyGraph(NodeSpace.of(split.events))
        graph.append(split.train)
        self._train = Stretch.whole(graph)
        self._candidates = np.unique(split.train.source), np.unique(split.train.target)
        unit = IntervalScale.measure(graph).mean
        base = 1 / np.clip(self._expected_meetings(unit), *_EXPECTED)
        self.start(
            split.events,
            start=float(split.train.time[0]),
            unit=unit,
            log_base_rate=float(np.log(base)),
        )
        return -(-len(graph) // self.config.batch_size)

    def _expected_meetings(self, unit: float) -> float:
        """Of an event's pairs before it, in the mean, if all met at the rate 1."""
        random = np.random.default_rng(self.config.seed)
        found = []
        for _ in range(_WINDOWS_TO_MEASURE):
            stretch, source, target = self.draw(random)
            interval = self._scaled(_seconds(stretch, source, target), unit)
            found.append(interval**2 / 2 @ self._weights(source, target))
        return float(np.concatenate(found).mean())

    def _weights(self, source: IntArray, target: IntArray) -> FloatArray:
        """Of an event's pairs: its source with targets, then its target with sources.

        Paper: 1. Here: what the sample stands for. Because: a few pairs that weigh as much as the
        one that met cost little, and rates grow large, and large alike for all.
        """
        weights: list[float] = []
        for drawn, candidates in zip((target, source), self._candidates[::-1], strict=True):
            count = drawn.shape[1] - 1  # none where there is nobody else
            weight = self.config.survival_weight or (len(candidates) - 1) / max(count, 1)
            # The true pair is on either side, and counts once.
            weights += [0.0 if weights else 1.0, *[weight] * count]
        return np.array(weights)

    def build_network(self) -> DeepCoevolveNetwork:
        return DeepCoevolveNetwork(self.config.width, self.graph.space)

    def loss(self, batch: int, random: np.random.Generator) -> Tensor:
        """Of a window that begins anywhere; an epoch has as many as cover the stream once."""
        return self.loss_of(*self.draw(random))

    def draw(self, random: np.random.Generator) -> tuple[Stretch, IntArray, IntArray]:
        """A window, and for each event sources and targets to pair with its own, itself first."""
        size, count = self.config.batch_size, self.config.survival_pairs - 1
        first = int(random.integers(max(self._train.stop - size, 0) + 1))
        stretch = self._train.part(first, first + size)
        source, target = (
            np.column_stack([true, uniform_negatives(true, candidates, count, random)])
            for true, candidates in zip(
                (stretch.source, stretch.target), self._candidates, strict=True
            )
        )
        return stretch, source, target

    def loss_of(self, stretch: Stretch, source: IntArray, target: IntArray) -> Tensor:
        """Of what was drawn."""
        source_node, target_node = np.unique(source), np.unique(target)
        table_SD, table_TD = self.first_states()
        sources, targets = self.roll(
            stretch,
            (source_node, table_SD[as_index(source_node, table_SD)]),
            (target_node, table_TD[as_index(target_node, table_TD)]),
        )
        event = stretch.event[:, None]
        source_BCD, target_BCD = sources.before(source, event), targets.before(target, event)
        with_targets_BC = (source_BCD[:, :1] * target_BCD).sum(2)
        with_sources_BC = (source_BCD * target_BCD[:, :1]).sum(2)
        log_rate_BC = self._log_rates(torch.cat([with_targets_BC, with_sources_BC], dim=1))
        seconds = _seconds(stretch, source, target)
        interval_BC = self.numbers(self._scaled(seconds, self.measured["unit"]))
        weight_C = self.numbers(self._weights(source, target))
        return rayleigh_loss(log_rate_BC[:, 0], log_rate_BC, interval_BC, weight_C)

    # Following and ranking

    @property
    def memory(self) -> int | None:
        return self.config.memory

    def _start(self, event: int) -> float:
        """When what the state knows before an event began."""
        memory = self.config.memory
        first = max(event // memory - 1, 0) * memory if memory else 0
        return float(self.graph.time[first]) if len(self.graph) else self.measured["start"]

    def first_states(self) -> tuple[Tensor, Tensor]:
        return self.network.first_states()

    def roll(
        self, stretch: Stretch, sources: tuple[IntArray, Tensor], targets: tuple[IntArray, Tensor]
    ) -> tuple[Trajectory, Trajectory]:
        nothing = sources[1].new_empty(2, stretch.stop - stretch.first, 0)
        return roll(stretch, sources, targets, self.network.update, nothing)

    def scores_before(
        self, stretch: Stretch, sources: Trajectory, targets: Trajectory, standing: RoleState
    ) -> ScoreArray:
        source_BD = sources.before(stretch.source, stretch.event)
        match_BT = revealed(
            (source_BD @ standing.vector.T).cpu().numpy(),
            (source_BD @ targets.after_ED.T).cpu().numpy(),
            stretch.target,
        )
        start, shape = self._start(stretch.first), (len(match_BT), len(match_BT))
        last_source = stretch.as_source.before(stretch.source, stretch.event)
        target_time_BT = revealed(
            np.broadcast_to(times_of(standing.event, self.graph, start), match_BT.shape),
            np.broadcast_to(stretch.time, shape),
            stretch.target,
        )
        source_time = times_of(last_source, self.graph, start)
        return self._scores(match_BT, stretch.time, source_time, target_time_BT)

    @torch.no_grad()
    def score(self, source: IntArray, time: FloatArray) -> ScoreArray:
        self.check_fitted()
        match_BT = self._sources.of(source)[1] @ self._targets.vector.T
        start = self._start(len(self.graph))
        source_time = times_of(self._sources.event[source], self.graph, start)
        target_time_T = times_of(self._targets.event, self.graph, start)
        return self._scores(match_BT.cpu().numpy(), time, source_time, target_time_T)

    def _scores(
        self,
        match_BT: ScoreArray,
        time: FloatArray,
        source_time: FloatArray,
        target_time: FloatArray | ScoreArray,
    ) -> ScoreArray:
        if self.config.rank_by == "rate":
            return match_BT  # which is in the same order, and never flat
        log_rate_BT = self._log_rates(torch.from_numpy(match_BT))
        seconds = time[:, None] - np.maximum(source_time[:, None], target_time)
        interval_BT = torch.from_numpy(self._scaled(seconds, self.measured["unit"]))
        rank_by = log_density if self.config.rank_by == "density" else log_intensity
        return rank_by(log_rate_BT, interval_BT.to(log_rate_BT.dtype)).numpy()

    def _log_rates(self, match: Tensor) -> Tensor:
        """From products of vectors.

        Paper: the rate is e to the product. Here: times what makes the pairs of a training window
        meet once, were all products zero. Because: they are close to zero at first, and where the
        rate 1 is far too low, the first steps raise all of them without measure. Products of unit
        vectors are also small, so that rates would hardly differ: they are taken √width times. And
        none is higher than the likeliest one of a pair that met after the shortest interval, as one
        step too far would otherwise make a loss of millions.
        """
        line = match * self.config.width**0.5 + self.measured["log_base_rate"]
        highest = math.log(2 / self.config.shortest_interval**2)
        return highest - functional.softplus(highest - line)

    def _scaled(self, seconds: FloatArray, unit: float) -> FloatArray:
        return np.clip(seconds / unit, self.config.shortest_interval, self.config.longest_interval)


def _seconds(stretch: Stretch, source: IntArray, target: IntArray) -> FloatArray:
    """How long pairs have not met: each event's source with targets, its target with sources.

    Since the last event of either of the two, but not before the stretch.
    """
    event, start = stretch.event[:, None], float(stretch.time[0])
    source_time = times_of(stretch.as_source.before(source, event), stretch.graph, start)
    target_time = times_of(stretch.as_target.before(target, event), stretch.graph, start)
    with_targets = np.maximum(source_time[:, :1], target_time)
    with_sources = np.maximum(source_time, target_time[:, :1])
    since: FloatArray = np.concatenate([with_targets, with_sources], axis=1)
    return stretch.time[:, None] - since


def _within_reach(table_ND: Tensor) -> Tensor:
    """Rows of more than unit length made as short as that, so that rates begin moderate."""
    length_N1: Tensor = table_ND.norm(dim=1, keepdim=True)
    return table_ND / length_N1.clamp_min(1.0)
