"""TGN: temporal graph networks (Rossi et al., 2020), with attention.

Every node has a memory that each of its events updates. A node at a update is what attention makes
of its own memory and those of the neighbours that it met last.

Shapes: R rows (nodes), B moments at which each is asked for, N neighbours of a row, T targets, V
all nodes, D width.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from pydantic import PositiveInt
from torch import Tensor, nn
from torch.nn import functional

from tclgraph.arrays import BoolArray, IntArray, ScoreArray
from tclgraph.baselines.recent_attention import (
    AttentionConfig,
    AttentionModel,
    AttentionNetwork,
)
from tclgraph.events.stream import EventStream
from tclgraph.layers.temporal_attention import Past, TemporalAttention
from tclgraph.sampling.recent_neighbors import RecentNeighbors, TimedNodes
from tclgraph.sampling.t_batches import t_batches


@dataclass(frozen=True, kw_only=True)
class TGNConfig(AttentionConfig):
    """The defaults are the published ones, but for what a smaller budget needs."""

    patience: PositiveInt | None = 5
    batch_size: PositiveInt = 200
    """Memories lag behind by up to a batch in training."""
    neighbors: PositiveInt = 10
    """How many of the latest are looked at."""


class TGNNetwork(AttentionNetwork):
    """What is learned, and the memory of training.

    That memory lags behind, which is how the network learns to write it: a node's last message is
    kept, and read anew, with a gradient, whenever the node is looked at, until its next event.
    """

    memory: Tensor
    partner: Tensor
    interval: Tensor
    has_message: Tensor

    def __init__(self, config: TGNConfig, num_nodes: int) -> None:
        super().__init__(config, num_nodes)
        width = config.width
        # Paper: the output of attention, and then the first matrix of the MLP. Here: both in one,
        # which is the same function, as a product of two learned matrices is one learned matrix.
        self.attention = TemporalAttention(
            width, width, config.heads, output_width=width, dropout=config.dropout
        )
        self.own = nn.Linear(width, width)
        self.output = nn.Linear(width, width)
        for linear in (self.own, self.output):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)
        self.update = nn.GRUCell(3 * width, width)
        self.register_buffer("memory", torch.zeros(num_nodes, width))
        # A message is the memories of both parties, of which the own is still in place, and the
        # interval since the node's event before.
        self.register_buffer("partner", torch.zeros(num_nodes, width))
        self.register_buffer("interval", torch.zeros(num_nodes))
        self.register_buffer("has_message", torch.zeros(num_nodes))

    def forward(
        self,
        own_RD: Tensor,
        neighbor_RND: Tensor,
        interval_RN: Tensor,
        is_real_RN: Tensor,
        generator: torch.Generator | None,
    ) -> Tensor:
        """MLP([attention ; own]) of rows at one update each, [R, D]."""
        attended = self.attention(
            own_RD, neighbor_RND, interval_RN, is_real_RN, self.encoding, generator
        )
        merged: Tensor = self.output(torch.relu(attended + self.own(own_RD)))
        return merged

    def at_moments(self, own_RBD: Tensor, past: Past, now: Tensor) -> Tensor:
        """Of rows at many moments, [R, B, D]."""
        attended = self.attention.at_moments(own_RBD, past, now, self.encoding)
        merged: Tensor = self.output(torch.relu(attended + self.own(own_RBD)))
        return merged

    def remember(self, own_RD: Tensor, partner_RD: Tensor, code_RD: Tensor) -> Tensor:
        """Memories after an event with a partner, an interval after the event before."""
        updated: Tensor = self.update(torch.cat([own_RD, partner_RD, code_RD], dim=1), own_RD)
        return updated

    def read(self, node: Tensor) -> Tensor:
        """Memories in training, with the last message of each node."""
        own_RD = self.memory[node]
        after_RD = self.remember(own_RD, self.partner[node], self.encoding(self.interval[node]))
        return torch.where(self.has_message[node][:, None] > 0, after_RD, own_RD)

    @torch.no_grad()
    def write(self, node: Tensor, partner: Tensor, interval: Tensor) -> None:
        """Bring the memories of nodes up to date, and leave each a new message."""
        self.memory[node] = self.read(node)
        self.partner[node] = self.memory[partner]
        self.interval[node] = interval
        self.has_message[node] = 1.0

    def forget(self) -> None:
        for buffer in self.buffers():
            buffer.zero_()


class TGN(AttentionModel):
    """Temporal graph network: memories, and one layer of attention.

    Simultaneous events count one after the other in memories, as these follow the order of events,
    and not at all as neighbours of each other.

    >>> from tclgraph.events.synthetic import SyntheticConfig, synthesize
    >>> split = synthesize(SyntheticConfig(events=300, sources=8, targets=9)).split(0.6, 0.2)
    >>> model = TGN(epochs=1, width=8, neighbors=5).fit(split)
    >>> len(model.recommend(0, top=5)), model.embed([0, 1]).shape
    (5, (2, 8))
    """

    name = "tgn"
    config_type = TGNConfig
    in_order = True
    queries_at_once = 16
    config: TGNConfig
    network: TGNNetwork

    def build_network(self) -> TGNNetwork:
        return TGNNetwork(self.config, self.graph.space.num_nodes)

    # Learning

    def loss(self, batch: int, random: np.random.Generator) -> Tensor:
        if batch == 0:
            self.network.forget()
        loss = super().loss(batch, random)
        self._write(self.batches.events(batch))
        return loss

    def encode_asked(self, asked: TimedNodes, generator: torch.Generator | None) -> Tensor:
        network = self.network
        neighbors = self.neighbors_in_training(asked.latest, asked.time)
        both = np.concatenate([asked.node[:, None], neighbors.node], axis=1)
        node, position = np.unique(both, return_inverse=True)
        state_RD = network.read(network.index(node)) + network.features(node)
        position = position.reshape(both.shape)
        found: Tensor = network(
            state_RD[network.index(position[:, 0])],
            functional.embedding(network.index(position[:, 1:].copy()), state_RD),
            self.numbers(asked.time[:, None] - neighbors.time),
            network.index(neighbors.is_real),
            generator,
        )
        return found

    def _write(self, event: IntArray) -> None:
        """Let a batch happen: of a node's events in it only the last leaves a message.

        Paper's code: the interval is since the memory's last update, so since an earlier batch.
        Here: since the node's event before. Because: ranking follows every event, and has that.
        """
        graph = self.batches.graph
        instance = np.arange(2 * event[0], 2 * event[-1] + 2)[::-1]
        node, last = np.unique(graph.node[instance], return_index=True)
        last = instance[last]
        self.network.write(
            self.network.index(node),
            self.network.index(graph.node[last ^ 1]),
            self.numbers(graph.interval[last]),
        )

    # Following and ranking

    def reset_state(self) -> None:
        super().reset_state()
        num_nodes = self.graph.space.num_nodes
        self._memory = self.network.node.weight.new_zeros(num_nodes, self.config.width)
        self._rest()

    def _rest(self) -> None:
        """Have one version of every node, which is what it is now."""
        self._states: Tensor | None = None
        self._version = np.arange(self.graph.space.num_nodes)[None]

    def update_state(self, events: EventStream) -> None:
        super().update_state(events)
        self._remember(len(self.graph) - len(events))
        self._rest()

    @torch.no_grad()
    def _remember(self, start: int) -> Tensor:
        """Follow the events from this one on; memories after each instance, [2 · events, D]."""
        network, memory, first = self.network, self._memory, 2 * start
        node = self.graph.node[first:]
        code = network.encoding(self.numbers(self.graph.interval[first:]))
        after = memory.new_empty(len(node), self.config.width)
        order, group_start = t_batches(node[0::2], node[1::2])
        for begin, end in pairwise(group_start.tolist()):
            instance = (2 * order[begin:end, None] + np.arange(2)).ravel()
            here, place = network.index(node[instance]), network.index(instance)
            own = memory[here]
            partner = own.view(-1, 2, self.config.width).flip(1).flatten(0, 1)
            memory[here] = after[place] = network.remember(own, partner, code[place])
        return after

    def encode(
        self, node: IntArray, neighbors: RecentNeighbors, now: Tensor, happened: IntArray
    ) -> Tensor:
        index = self.network.index
        if self._states is None:
            self._states = self._memory + self.network.node.weight
        own = index(self._version[happened, node])
        others = index(self._version[happened[:, None], neighbors.node])
        past = self.past(neighbors, self._states[others])
        return self.network.at_moments(self._states[own][:, None], past, now)

    def has_changed(self, neighbors: RecentNeighbors, happened: IntArray) -> BoolArray:
        space = self.graph.space
        is_new_BV = self._version[happened] >= space.num_nodes
        by_neighbor_BTN = is_new_BV[:, neighbors.node] & neighbors.is_real
        changed: BoolArray = is_new_BV[:, space.first_target :] | by_neighbor_BTN.any(axis=2)
        return changed

    @torch.no_grad()
    def score_each(self, events: EventStream) -> ScoreArray:
        self.check_events(events)
        parts = [
            self._score_each(events[at : at + self.queries_at_once])
            for at in range(0, len(events), self.queries_at_once)
        ]
        return np.concatenate(parts) if parts else self.score(events.source, events.time)

    def _score_each(self, events: EventStream) -> ScoreArray:
        """A node has a version before all of these events, and one after each that it is in."""
        start, before = len(self.graph), self._memory.clone()
        self.graph.append(events)
        self.follow_turns(start)
        after = self._remember(start)
        node = self.graph.node[2 * start :]
        features = self.network.node.weight
        self._states = torch.cat([before + features, after + self.network.features(node)])
        self._version = np.tile(np.arange(len(before)), (len(events), 1))
        for instance, one in enumerate(node.tolist()):
            self._version[instance // 2 + 1 :, one] = len(before) + instance
        scores = self.score_after(np.arange(len(events)), events.source, events.time)
        self._rest()
        return scores

    def state_tensors(self) -> dict[str, Tensor]:
        return {"memory": self._memory}

    def load_state_tensors(self, tensors: dict[str, Tensor]) -> None:
        self.follow_turns(0)
        self._memory = tensors["memory"].to(self.config.device)
        self._rest()
