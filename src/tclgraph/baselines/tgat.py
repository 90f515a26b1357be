"""TGAT: temporal graph attention (Xu et al., 2020).

A node's vector at a time comes from attention over its latest neighbors. A neighbor's vector comes
from attention over the neighbor's own latest neighbors, at the time of the interaction.

Shapes: R rows (nodes), B times per row, N neighbors of a row, D width, P = 2D turns of a timestamp.
"""

from dataclasses import dataclass

import numpy as np
import torch
from pydantic import PositiveInt
from torch import Tensor, nn
from torch.nn import functional

from tclgraph.arrays import IntArray, ScoreArray
from tclgraph.baselines.recent_attention import (
    CHUNK_SIZE,
    AttentionConfig,
    AttentionModel,
    AttentionNetwork,
    write_rows,
)
from tclgraph.events.stream import EventStream
from tclgraph.layers.pair_decoder import PairMerge
from tclgraph.layers.temporal_attention import Past, TemporalAttention, dropout_mask
from tclgraph.layers.time_encoding import TimeEncoding
from tclgraph.sampling.recent_neighbors import RecentNeighbors, TimedNodes, recent_neighbors


@dataclass(frozen=True, kw_only=True)
class TGATConfig(AttentionConfig):
    """Settings of TGAT; the defaults are the published ones, with changes for a smaller budget.

    The batch is larger than the published 200 events, because many events of a batch share
    neighbors, and each neighbor is encoded once.
    """

    epochs: PositiveInt = 10
    """Largest number of epochs. Published: 50, with the same patience. Here: fewer. Because: an
    epoch takes long."""


class TGATLayer(nn.Module):
    """One layer: MLP([LN(attention + q) ; h]).

    h is a node's vector in the layer below, and q = [h ; encoding of interval 0] its query.
    """

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
        node_RD: Tensor,
        neighbor_RND: Tensor,
        interval_RN: Tensor,
        is_real_RN: Tensor,
        encoding: TimeEncoding,
        generator: torch.Generator | None,
    ) -> Tensor:
        """Return the vectors of rows, each at one time, [R, D]; a generator enables dropout."""
        attended = self.attention(
            node_RD, neighbor_RND, interval_RN, is_real_RN, encoding, generator
        )
        if generator is not None and self.dropout:
            attended = attended * dropout_mask(attended.shape, self.dropout, generator).to(attended)
        return self._merge(attended, node_RD, encoding)

    def at_times(self, node_RBD: Tensor, past: Past, now: Tensor, encoding: TimeEncoding) -> Tensor:
        """Return the vectors of rows at many times, [R, B, D], without gradients."""
        attended = self.attention.at_times(node_RBD, past, now, encoding)
        return self._merge(attended, node_RBD, encoding)

    def _merge(self, attended: Tensor, node: Tensor, encoding: TimeEncoding) -> Tensor:
        query = torch.cat([node, encoding.of_now.expand_as(node)], dim=-1)
        merged: Tensor = self.merge(self.norm(attended + query), node)
        return merged


class TGATNetwork(AttentionNetwork):
    """Node features and two layers of temporal attention."""

    def __init__(self, config: TGATConfig, num_nodes: int) -> None:
        super().__init__(config, num_nodes)
        self.first = TGATLayer(config)
        self.second = TGATLayer(config)


class TGAT(AttentionModel):
    """Temporal graph attention with two layers (TGAT).

    >>> from tclgraph.events.synthetic import SyntheticConfig, synthesize
    >>> split = synthesize(SyntheticConfig(events=300, sources=8, targets=9)).split(0.6, 0.2)
    >>> model = TGAT(epochs=1, width=8, neighbors=5).fit(split)
    >>> len(model.recommend(0, top=5)), model.embed([0, 1]).shape
    (5, (2, 8))
    """

    name = "tgat"
    config_type = TGATConfig
    queries_per_chunk = 32
    config: TGATConfig
    network: TGATNetwork

    def build_network(self) -> TGATNetwork:
        return TGATNetwork(self.config, self.graph.space.num_nodes)

    def encode_training(self, queries: TimedNodes, generator: torch.Generator | None) -> Tensor:
        network, graph = self.network, self.batches.graph
        neighbors = self.training_neighbors(queries.latest, queries.time)
        # Many queries share a neighbor, whose vector depends on the time of the interaction only.
        instance, position = np.unique(neighbors.instance, return_inverse=True)
        # Positions without a neighbor are masked; their values are ignored.
        instance = np.maximum(instance, 0)
        node = np.concatenate([queries.node, graph.node[instance]])
        time = np.concatenate([queries.time, graph.time[instance // 2]])
        earlier = self.training_neighbors(np.concatenate([queries.latest, instance]), time)
        first_RD = network.first(
            network.features(node),
            network.features(earlier.node),
            self.scaled_intervals(time[:, None] - earlier.time),
            network.index(earlier.is_real),
            network.encoding,
            generator,
        )
        count = len(queries.node)
        position = position.reshape(neighbors.node.shape)
        second_RD: Tensor = network.second(
            first_RD[:count],
            functional.embedding(network.index(position), first_RD[count:]),
            self.scaled_intervals(queries.time[:, None] - neighbors.time),
            network.index(neighbors.is_real),
            network.encoding,
            generator,
        )
        return second_RD

    # Following and ranking

    def reset_state(self) -> None:
        super().reset_state()
        # First layer of every instance, at the time of its event; the table has at least one row,
        # because masked positions read row 0.
        self._first_layer = self.network.node.weight.new_zeros(1, self.config.width)

    @torch.no_grad()
    def update_state(self, events: EventStream) -> None:
        super().update_state(events)
        graph = self.graph
        for start in range(len(graph) - len(events), len(graph), CHUNK_SIZE):
            instance = np.arange(2 * start, 2 * min(start + CHUNK_SIZE, len(graph)))
            time = graph.time[instance // 2]
            earlier = recent_neighbors(graph, instance, time, self.config.neighbors)
            now_RBP = self.turns_of(time, at_end=True)[:, None]
            first_RBD = self._first(graph.node[instance], earlier, now_RBP)
            self._first_layer = write_rows(self._first_layer, 2 * start, first_RBD[:, 0])

    def _first(self, node: IntArray, neighbors: RecentNeighbors, now: Tensor) -> Tensor:
        """Return the first layer of nodes with these neighbors at times, [R, B, D]."""
        network = self.network
        past = self.past(neighbors, network.features(neighbors.node))
        node_RBD = network.features(node)[:, None]
        return network.first.at_times(node_RBD, past, now, network.encoding)

    def encode(
        self, node: IntArray, neighbors: RecentNeighbors, now: Tensor, num_revealed: IntArray
    ) -> Tensor:
        network = self.network
        instance = network.index(np.maximum(neighbors.instance, 0))
        past = self.past(neighbors, self._first_layer[instance])
        first_RBD = self._first(node, neighbors, now)
        return network.second.at_times(first_RBD, past, now, network.encoding)

    def score_each(self, events: EventStream) -> ScoreArray:
        self.observe(events)
        return self.score(events.source, events.time)

    def state_tensors(self) -> dict[str, Tensor]:
        """Return the first layer; recomputed in other chunks it could differ in the last digit."""
        return {"first_layer": self._first_layer[: 2 * len(self.graph)]}

    def load_state_tensors(self, tensors: dict[str, Tensor]) -> None:
        self.append_turns(0)
        self._first_layer = write_rows(self._first_layer, 0, tensors["first_layer"])
