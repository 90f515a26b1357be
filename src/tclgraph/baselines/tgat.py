"""TGAT: temporal graph attention (Xu et al., 2020).

A node's vector at a time comes from attention over its latest neighbors. A neighbor's vector comes
from attention over the neighbor's own latest neighbors, at the time of the interaction.

Shapes: R rows (nodes), B times per row, N neighbors of a row, D width, P = 2D turns of a timestamp.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from pydantic import PositiveInt
from torch import Tensor, nn
from torch.nn import functional

from tclgraph.arrays import IntArray, ScoreArray
from tclgraph.baselines.recent_attention import (
    CHUNK_SIZE,
    ROWS_PER_CHUNK,
    AttentionConfig,
    AttentionModel,
    AttentionNetwork,
    Versions,
    by_count,
    write_rows,
)
from tclgraph.events.stream import EventStream
from tclgraph.layers.folded_attention import FoldedAttention, Past
from tclgraph.layers.pair_decoder import PairMerge
from tclgraph.layers.temporal_attention import TemporalAttention, dropout_mask
from tclgraph.layers.time_encoding import TimeEncoding
from tclgraph.sampling.recent_neighbors import RecentNeighbors, TimedNodes, recent_neighbors
from tclgraph.threads import run_all

_QUERIES_PER_START = 8


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

    def _merge(self, attended: Tensor, node: Tensor, encoding: TimeEncoding) -> Tensor:
        query = torch.cat([node, encoding.of_now.expand_as(node)], dim=-1)
        merged: Tensor = self.merge(self.norm(attended + query), node)
        return merged


class FoldedLayer:
    """A layer for inference, with products of weights that were computed once."""

    def __init__(self, layer: TGATLayer, encoding: TimeEncoding) -> None:
        self.attention = FoldedAttention(layer.attention, encoding)
        self._norm, self._merge, self._now = layer.norm, layer.merge, encoding.of_now

    def at_own_times(self, node_RD: Tensor, past: Past, now_RP: Tensor) -> Tensor:
        """Return the vectors of rows, each at its own time, [R, D]."""
        attended_RF = self.attention.at_own_times(node_RD, past, now_RP)
        hidden_RBD = self._hidden(attended_RF[:, None], node_RD[:, None])
        vector_RD: Tensor = self._merge.output(hidden_RBD[:, 0])
        return vector_RD

    def hidden_of_fixed(
        self, node_RD: Tensor, past: Past, value_RNG: Tensor, now_BP: Tensor
    ) -> Tensor:
        """Return the hidden layer of rows at times, [R, B, D], if h does not depend on time."""
        attended = self.attention.with_fixed_query(node_RD, past, value_RNG, now_BP)
        return self._hidden(attended, node_RD[:, None])

    def hidden_of(self, node_RBD: Tensor, past: Past, now_BP: Tensor) -> Tensor:
        """Return the hidden layer of rows at times, [R, B, D], from h at these times."""
        value_RNG = self.attention.values(past.neighbor)
        attended = self.attention.with_query_at_times(node_RBD, past, value_RNG, now_BP)
        return self._hidden(attended, node_RBD)

    def without_neighbors(self, node_RBD: Tensor) -> Tensor:
        """Return the hidden layer of rows without neighbors, [R, B, D]."""
        attended = node_RBD.new_zeros(*node_RBD.shape[:2], 2 * node_RBD.shape[2])
        return self._hidden(attended, node_RBD)

    def _hidden(self, attended_RBF: Tensor, node_RBD: Tensor) -> Tensor:
        """Return the hidden layer of the MLP; this overwrites its first argument."""
        width = node_RBD.shape[2]
        attended_RBF[..., :width] += node_RBD
        attended_RBF[..., width:] += self._now
        hidden: Tensor = self._merge.first_half(self._norm(attended_RBF))
        return hidden.add_(self._merge.second_half(node_RBD)).relu_()


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
    queries_per_chunk = 64
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
        self.fold()
        graph = self.graph
        for start in range(len(graph) - len(events), len(graph), ROWS_PER_CHUNK // 2):
            instance = np.arange(2 * start, 2 * min(start + ROWS_PER_CHUNK // 2, len(graph)))
            time = graph.time[instance // 2]
            earlier = recent_neighbors(graph, instance, time, self.config.neighbors)
            now_RP = self.turns_of(time, at_end=True)
            first_RD = self._first_at_own_times(graph.node[instance], earlier, now_RP)
            self._first_layer = write_rows(self._first_layer, 2 * start, first_RD)

    def fold(self) -> None:
        network = self.network
        self._first = FoldedLayer(network.first, network.encoding)
        self._second = FoldedLayer(network.second, network.encoding)
        self._value = self._first.attention.values(network.node.weight)
        # A target's vector is read only by the decoder, so both linear maps become a single map.
        output, decoder = network.second.merge.output, network.decoder.second_half.weight
        self._output, self._output_bias = decoder @ output.weight, decoder @ output.bias

    def _first_at_own_times(
        self, node: IntArray, neighbors: RecentNeighbors, now_RP: Tensor
    ) -> Tensor:
        """Return the first layer of nodes with these neighbors, each at its own time, [R, D]."""
        past = self.past(neighbors, self.network.features(neighbors.node))
        return self._first.at_own_times(self.network.features(node), past, now_RP)

    def _earlier(self, neighbors: RecentNeighbors) -> Tensor:
        """Return the first layer of neighbors at the times of the shared events, [R, N, D]."""
        instance = self.network.index(np.maximum(neighbors.instance, 0))
        return functional.embedding(instance, self._first_layer)

    def encode(
        self, node: IntArray, neighbors: RecentNeighbors, now_RP: Tensor, num_revealed: IntArray
    ) -> Tensor:
        first_RD = self._first_at_own_times(node, neighbors, now_RP)
        past = self.past(neighbors, self._earlier(neighbors))
        return self._second.at_own_times(first_RD, past, now_RP)

    def score_versions(self, versions: Versions, now_BP: Tensor, source_BH: Tensor) -> Tensor:
        targets, index = self.graph.space.target_nodes, self.network.index
        score_BR = now_BP.new_empty(len(now_BP), len(versions.begin))
        # Versions that begin at nearby queries are encoded together, at all times from there on.
        starts = range(0, len(now_BP), _QUERIES_PER_START)
        bounds = np.searchsorted(versions.begin, [*starts, len(now_BP)])

        @torch.no_grad()
        def score_rows(start: int, rows: IntArray, neighbors: RecentNeighbors) -> None:
            node = targets[versions.column[rows]]
            target_RBH = self._decoder_inputs(node, neighbors, now_BP[start:])
            score_RB = self.network.decoder.of_halves(source_BH[start:], target_RBH)
            score_BR[start:, index(rows)] = score_RB.T

        jobs = []
        for start, first, last in zip(starts, bounds[:-1], bounds[1:], strict=True):
            rows = np.arange(first, last)
            group = versions.neighbors.of(rows, self.config.neighbors)
            size = max(1, CHUNK_SIZE // (len(now_BP) - start))
            jobs += [
                partial(score_rows, start, rows[some], neighbors)
                for some, neighbors in by_count(group, size)
            ]
        run_all(jobs)
        row_BT = np.zeros((len(now_BP), len(targets)), dtype=np.int64)
        row_BT[versions.begin, versions.column] = np.arange(len(versions.begin))
        # The latest version of a target has the highest number.
        return score_BR.gather(1, index(np.maximum.accumulate(row_BT)))

    def _decoder_inputs(self, node: IntArray, neighbors: RecentNeighbors, now_BP: Tensor) -> Tensor:
        """Return the decoder's hidden input of targets with these neighbors at times, [R, B, H].

        Either all rows have neighbors or none has; then B = 1.
        """
        network, first, second = self.network, self._first, self._second
        node_RD, output = network.features(node), network.first.merge.output
        if neighbors.node.shape[1]:
            past = self.past(neighbors, network.features(neighbors.node))
            value_RNG = functional.embedding(network.index(neighbors.node), self._value)
            first_RBD = output(first.hidden_of_fixed(node_RD, past, value_RNG, now_BP))
            past = Past(self._earlier(neighbors), past.turns, past.is_real)
            hidden_RBD = second.hidden_of(first_RBD, past, now_BP)
        else:
            first_RBD = output(first.without_neighbors(node_RD[:, None]))
            hidden_RBD = second.without_neighbors(first_RBD)
        return functional.linear(hidden_RBD, self._output, self._output_bias)

    def score_each(self, events: EventStream) -> ScoreArray:
        self.observe(events)
        return self.score(events.source, events.time)

    def state_tensors(self) -> dict[str, Tensor]:
        """Return the first layer; recomputed in other chunks it could differ in the last digit."""
        return {"first_layer": self._first_layer[: 2 * len(self.graph)]}

    def load_state_tensors(self, tensors: dict[str, Tensor]) -> None:
        self.append_turns(0)
        self._first_layer = write_rows(self._first_layer, 0, tensors["first_layer"])
