"""TGAT: temporal graph attention (Xu et al., 2020).

A node at a update is what attention makes of the neighbours that it met last, and these are what it
made of theirs when they were met.

Shapes: R rows (nodes), B moments at which each is asked for, N neighbours of a row, D width,
P = 2D: cosines and sines of a time.
"""

from dataclasses import dataclass

import numpy as np
import torch
from pydantic import PositiveInt
from torch import Tensor, nn
from torch.nn import functional

from tclgraph.arrays import IntArray, ScoreArray
from tclgraph.baselines.recent_attention import (
    AT_ONCE,
    AttentionConfig,
    AttentionModel,
    AttentionNetwork,
    written,
)
from tclgraph.events.stream import EventStream
from tclgraph.layers.pair_decoder import PairMerge
from tclgraph.layers.temporal_attention import Past, TemporalAttention, kept
from tclgraph.layers.time_encoding import TimeEncoding
from tclgraph.sampling.recent_neighbors import RecentNeighbors, TimedNodes, recent_neighbors


@dataclass(frozen=True, kw_only=True)
class TGATConfig(AttentionConfig):
    """The defaults are the published ones, but for what a smaller budget needs.

    The batch is larger than the published 200: many of its events look at the same neighbours,
    each of which is encoded once.
    """

    epochs: PositiveInt = 10
    """Few, as an epoch takes long; the published code has 50 at most, and the same patience."""


class TGATLayer(nn.Module):
    """MLP([LN(attention + q) ; own]), where q is a node's own vector with the code of now."""

    def __init__(self, config: TGATConfig) -> None:
        super().__init__()
        width, full = config.width, 2 * config.width
        self.dropout = config.dropout
        self.attention = TemporalAttention(
            width, width, config.heads, output_width=full, dropout=config.dropout
        )
        self.norm = nn.LayerNorm(full)
        self.merge = PairMerge(full, width, width, width)

    def forward(
        self,
        own_RD: Tensor,
        neighbor_RND: Tensor,
        interval_RN: Tensor,
        is_real_RN: Tensor,
        encoding: TimeEncoding,
        generator: torch.Generator | None,
    ) -> Tensor:
        """Of rows at one update each, [R, D]."""
        attended = self.attention(
            own_RD, neighbor_RND, interval_RN, is_real_RN, encoding, generator
        )
        if generator is not None and self.dropout:
            attended = attended * kept(attended.shape, self.dropout, generator).to(attended)
        return self._merge(attended, own_RD, encoding)

    def at_moments(
        self, own_RBD: Tensor, past: Past, now: Tensor, encoding: TimeEncoding
    ) -> Tensor:
        """Of rows at many moments, [R, B, D]."""
        attended = self.attention.at_moments(own_RBD, past, now, encoding)
        return self._merge(attended, own_RBD, encoding)

    def _merge(self, attended: Tensor, own: Tensor, encoding: TimeEncoding) -> Tensor:
        asking = torch.cat([own, encoding.of_now.expand_as(own)], dim=-1)
        merged: Tensor = self.merge(self.norm(attended + asking), own)
        return merged


class TGATNetwork(AttentionNetwork):
    """Two layers."""

    def __init__(self, config: TGATConfig, num_nodes: int) -> None:
        super().__init__(config, num_nodes)
        self.first = TGATLayer(config)
        self.second = TGATLayer(config)


class TGAT(AttentionModel):
    """Temporal graph attention, two layers deep: a neighbour is what it was when it was met.

    >>> from tclgraph.events.synthetic import SyntheticConfig, synthesize
    >>> split = synthesize(SyntheticConfig(events=300, sources=8, targets=9)).split(0.6, 0.2)
    >>> model = TGAT(epochs=1, width=8, neighbors=5).fit(split)
    >>> len(model.recommend(0, top=5)), model.embed([0, 1]).shape
    (5, (2, 8))
    """

    name = "tgat"
    config_type = TGATConfig
    queries_at_once = 32
    config: TGATConfig
    network: TGATNetwork

    def build_network(self) -> TGATNetwork:
        return TGATNetwork(self.config, self.graph.space.num_nodes)

    def encode_asked(self, asked: TimedNodes, generator: torch.Generator | None) -> Tensor:
        network, graph = self.network, self.batches.graph
        neighbors = self.neighbors_in_training(asked.latest, asked.time)
        # Many look at the same neighbour, which is what it was when met, whoever looks.
        met, position = np.unique(neighbors.instance, return_inverse=True)
        met = np.maximum(met, 0)  # none is masked, and may be anything
        node = np.concatenate([asked.node, graph.node[met]])
        time = np.concatenate([asked.time, graph.time[met // 2]])
        earlier = self.neighbors_in_training(np.concatenate([asked.latest, met]), time)
        first_RD = network.first(
            network.features(node),
            network.features(earlier.node),
            self.numbers(time[:, None] - earlier.time),
            network.index(earlier.is_real),
            network.encoding,
            generator,
        )
        count = len(asked.node)
        position = position.reshape(neighbors.node.shape)
        found: Tensor = network.second(
            first_RD[:count],
            functional.embedding(network.index(position), first_RD[count:]),
            self.numbers(asked.time[:, None] - neighbors.time),
            network.index(neighbors.is_real),
            network.encoding,
            generator,
        )
        return found

    # Following and ranking

    def reset_state(self) -> None:
        super().reset_state()
        # Every instance's first layer at its event; a row at least, to stand for none.
        self._first_layer = self.network.node.weight.new_zeros(1, self.config.width)

    @torch.no_grad()
    def update_state(self, events: EventStream) -> None:
        super().update_state(events)
        graph = self.graph
        for start in range(len(graph) - len(events), len(graph), AT_ONCE):
            instance = np.arange(2 * start, 2 * min(start + AT_ONCE, len(graph)))
            time = graph.time[instance // 2]
            earlier = recent_neighbors(graph, instance, time, self.config.neighbors)
            now_RBP = self.turns_of(time, at_end=True)[:, None]
            found = self._first(graph.node[instance], earlier, now_RBP)
            self._first_layer = written(self._first_layer, 2 * start, found[:, 0])

    def _first(self, node: IntArray, neighbors: RecentNeighbors, now: Tensor) -> Tensor:
        network = self.network
        past = self.past(neighbors, network.features(neighbors.node))
        own_RBD = network.features(node)[:, None]
        return network.first.at_moments(own_RBD, past, now, network.encoding)

    def encode(
        self, node: IntArray, neighbors: RecentNeighbors, now: Tensor, happened: IntArray
    ) -> Tensor:
        network = self.network
        met = network.index(np.maximum(neighbors.instance, 0))
        past = self.past(neighbors, self._first_layer[met])
        own_RBD = self._first(node, neighbors, now)
        return network.second.at_moments(own_RBD, past, now, network.encoding)

    def score_each(self, events: EventStream) -> ScoreArray:
        self.observe(events)
        return self.score(events.source, events.time)

    def state_tensors(self) -> dict[str, Tensor]:
        """Made again in other batches they could differ in the last digit."""
        return {"first_layer": self._first_layer[: 2 * len(self.graph)]}

    def load_state_tensors(self, tensors: dict[str, Tensor]) -> None:
        self.follow_turns(0)
        self._first_layer = written(self._first_layer, 0, tensors["first_layer"])
