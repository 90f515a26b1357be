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
from torch import Tensor
from torch.nn import functional

from tclgraph.arrays import IntArray, ScoreArray
from tclgraph.baselines.recent_attention import (
    CELLS_PER_JOB,
    ROWS_PER_CHUNK,
    AttentionConfig,
    AttentionModel,
    AttentionNetwork,
    Chunk,
    Versions,
    as_array,
    as_columns,
    write_rows,
)
from tclgraph.baselines.tgat_kernels import TargetWeights, score_targets
from tclgraph.baselines.tgat_layer import FoldedLayer, RotatedLayer, TGATLayer
from tclgraph.dependency_graph.graph import NONE
from tclgraph.events.stream import EventStream
from tclgraph.layers.segments import NeighborTable, Queries, Segments, StateTables, cell_chunks
from tclgraph.sampling.recent_neighbors import RecentNeighbors, TimedNodes, recent_neighbors
from tclgraph.threads import run_all, threads_for_parts


@dataclass(frozen=True, kw_only=True)
class TGATConfig(AttentionConfig):
    """Settings of TGAT; the defaults are the published ones, with changes for a smaller budget.

    The batch is larger than the published 200 events, because many events of a batch share
    neighbors, and each neighbor is encoded once.
    """

    epochs: PositiveInt = 10
    """Largest number of epochs. Published: 50, with the same patience. Here: fewer. Because: an
    epoch takes long."""


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
    queries_per_chunk = 512
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
        self._fold_layers()
        graph = self.graph
        for start in range(len(graph) - len(events), len(graph), ROWS_PER_CHUNK // 2):
            instance = np.arange(2 * start, 2 * min(start + ROWS_PER_CHUNK // 2, len(graph)))
            time = graph.time[instance // 2]
            earlier = recent_neighbors(graph, instance, time, self.config.neighbors)
            now_RP = self.turns_of(time, at_end=True)
            first_RD = self._first_at_own_times(graph.node[instance], earlier, now_RP)
            self._first_layer = write_rows(self._first_layer, 2 * start, first_RD)

    def fold(self) -> None:
        self._fold_layers()
        self._set_tables()

    def _fold_layers(self) -> None:
        network = self.network
        self._first = FoldedLayer(network.first, network.encoding)
        self._second = FoldedLayer(network.second, network.encoding)

    def _set_tables(self) -> None:
        """Compute what ranking needs of every node and event, and the weights."""
        network, attention = self.network, self._first.attention
        first, second = RotatedLayer(self._first), RotatedLayer(self._second)
        node, heads = network.node.weight, (self.config.heads, -1)
        value = node @ first.value + first.value_bias
        self._tables = StateTables(
            state=as_array(node),
            query=as_array(attention.queries(node)),
            value=as_array(torch.unflatten(value, 1, heads)),
            hidden=as_array(node @ first.query + first.query_bias),
            turns=as_array(self._turns),
        )
        between, between_bias = self._between_layers(first, second)
        self._set_earlier_weights(first, second)
        # A target's vector is read only by the decoder, so both linear maps become a single map.
        decoder = network.decoder.second_half.weight.T
        self._weights = TargetWeights(
            first_code=as_array(first.code),
            first_hidden=as_array(first.hidden),
            node_hidden=as_array(node @ first.own_hidden + first.hidden_bias),
            between=as_array(between),
            between_bias=as_array(between_bias),
            second_code=as_array(second.code),
            second_hidden=as_array(second.hidden),
            output=as_array(second.output @ decoder),
            output_bias=as_array(second.output_bias @ decoder),
            score=as_array(network.decoder.output.weight[0]),
        )

    def _between_layers(self, first: RotatedLayer, second: RotatedLayer) -> tuple[Tensor, Tensor]:
        """Return the map from the first hidden layer to all inputs of the second layer."""
        attention = self._second.attention
        weight = torch.cat([second.own_hidden, attention.query_by_time, second.query], dim=1)
        bias = torch.cat([second.hidden_bias, attention.constant_by_time, second.query_bias])
        return first.output @ weight, first.output_bias @ weight + bias

    def _set_earlier_weights(self, first: RotatedLayer, second: RotatedLayer) -> None:
        """Set the map from a neighbor's first layer to a row of a `NeighborTable`."""
        attention, heads = self._second.attention, self.config.heads
        key = torch.unflatten(attention.key_by_neighbor, 1, (heads, -1))
        # The keys meet the hidden layer from which the node's own vector is computed.
        hidden_key = (key @ first.output.T).flatten(1)
        constant = attention.constant_by_neighbor + key @ first.output_bias
        self._earlier_weight = torch.cat([second.value, hidden_key, constant], dim=1)
        num_others = hidden_key.shape[1] + constant.shape[1]
        self._earlier_bias = functional.pad(second.value_bias, (0, num_others))

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
        self, chunk: Chunk, rows: IntArray, neighbors: RecentNeighbors, now_RP: Tensor
    ) -> Tensor:
        first_RD = self._first_at_own_times(chunk.source[rows], neighbors, now_RP)
        past = self.past(neighbors, self._earlier(neighbors))
        return self._second.at_own_times(first_RD, past, now_RP)

    def score_versions(
        self, chunk: Chunk, versions: Versions, now_BP: Tensor, source_BH: Tensor
    ) -> Tensor:
        targets, neighbors = self.graph.space.target_nodes, versions.neighbors
        segments = Segments(
            own=targets[versions.column],
            neighbor=neighbors.node,
            event=neighbors.instance // 2,
            num_neighbors=neighbors.count,
            column=versions.column,
            begin=versions.begin,
            end=versions.end,
        )
        scores = np.empty((len(now_BP), len(targets)), dtype=self._tables.state.dtype)
        queries = Queries(as_columns(now_BP), as_columns(source_BH))

        def score_rows(first: int, last: int) -> None:
            earlier = self._earlier_table(neighbors, first, last)
            score_targets(
                first, last, segments, self._tables, earlier, self._weights, queries, scores
            )

        run_all([partial(score_rows, *rows) for rows in cell_chunks(segments, CELLS_PER_JOB)])
        return torch.from_numpy(scores).to(now_BP) + self.network.decoder.output.bias

    @torch.no_grad()
    def _earlier_table(self, neighbors: RecentNeighbors, first: int, last: int) -> NeighborTable:
        """Return what the second layer needs of the neighbors of some rows."""
        instance, count = neighbors.instance[first:last], neighbors.count
        row = self.network.index(instance[instance != NONE])
        neighbor = functional.embedding(row, self._first_layer)
        start = np.cumsum(count) - count
        columns = torch.addmm(self._earlier_bias, neighbor, self._earlier_weight)
        return NeighborTable(start - start[first], as_array(columns), self._tables.turns)

    @threads_for_parts()
    def score_each(self, events: EventStream) -> ScoreArray:
        events = self.admit(events)
        self.observe(events)
        return self.score(events.source, events.time)

    def state_tensors(self) -> dict[str, Tensor]:
        """Return the first layer; recomputed in other chunks it could differ in the last digit."""
        return {"first_layer": self._first_layer[: 2 * len(self.graph)]}

    def load_state_tensors(self, tensors: dict[str, Tensor]) -> None:
        self.append_turns(0)
        self._first_layer = write_rows(self._first_layer, 0, tensors["first_layer"])
