"""TGN: temporal graph networks (Rossi et al., 2020), with attention.

Every node has a memory, which each of its events updates. A node's vector at a time comes from
attention over the memories of its latest neighbors, and from its own memory.

Shapes: R rows (nodes), B times per row, N neighbors of a row, T targets, V all nodes, D width.
"""

from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import torch
from pydantic import PositiveInt
from torch import Tensor, nn
from torch.nn import functional

from tclgraph.arrays import BoolArray, FloatArray, IntArray, ScoreArray
from tclgraph.baselines.recent_attention import (
    CELLS_PER_JOB,
    AttentionConfig,
    AttentionModel,
    AttentionNetwork,
    Chunk,
    Versions,
    as_array,
    as_columns,
)
from tclgraph.baselines.tgn_kernels import TargetWeights, score_targets
from tclgraph.events.stream import EventStream
from tclgraph.layers.folded_attention import FoldedAttention
from tclgraph.layers.node_tables import NodeModule, NodeTable
from tclgraph.layers.segments import Queries, Segments, StateTables, cell_chunks
from tclgraph.layers.temporal_attention import TemporalAttention
from tclgraph.sampling.recent_neighbors import RecentNeighbors, TimedNodes
from tclgraph.sampling.t_batches import t_batches
from tclgraph.threads import run_all, threads_for_parts


@dataclass(frozen=True, kw_only=True)
class TGNConfig(AttentionConfig):
    """Settings of TGN; the defaults are the published ones, with changes for a smaller budget."""

    patience: PositiveInt | None = 5
    """Epochs without a better validation metric before training stops; None: never stop early."""
    batch_size: PositiveInt = 200
    """Number of events in a batch; during training a memory lags behind by up to a batch."""
    neighbors: PositiveInt = 10
    """Number of latest neighbors that a node attends to."""


class TGNNetwork(AttentionNetwork, NodeModule):
    """Learned weights, and the memory during training as buffers.

    The memory lags behind by one message per node, so that the memory update can be trained: until
    the node's next event, every read of its memory applies the update again, with a gradient.
    """

    memory: Tensor
    partner: Tensor
    interval: Tensor
    has_message: Tensor

    def __init__(self, config: TGNConfig, num_nodes: int) -> None:
        super().__init__(config, num_nodes)
        width = config.width
        # Paper: the output matrix of attention, and then the first matrix of the MLP. Here: one
        # matrix. Because: the product of two learned matrices is a learned matrix, so the function
        # is the same.
        self.attention = TemporalAttention(
            width, width, config.heads, output_width=width, dropout=config.dropout
        )
        self.hidden = nn.Linear(width, width)
        self.output = nn.Linear(width, width)
        for linear in (self.hidden, self.output):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)
        self.update = nn.GRUCell(3 * width, width)
        self.register_buffer("memory", torch.zeros(num_nodes, width))
        # A message consists of the memories of the node and its partner, and of the interval since
        # the node's previous event. The node's memory is still unchanged in `memory`.
        self.register_buffer("partner", torch.zeros(num_nodes, width))
        self.register_buffer("interval", torch.zeros(num_nodes))
        self.register_buffer("has_message", torch.zeros(num_nodes))

    def node_tables(self) -> list[NodeTable]:
        return [NodeTable(name=name) for name, _ in self.named_buffers(recurse=False)]

    def forward(
        self,
        node_RD: Tensor,
        neighbor_RND: Tensor,
        interval_RN: Tensor,
        is_real_RN: Tensor,
        generator: torch.Generator | None,
    ) -> Tensor:
        """Return MLP([attention ; node]) of rows, each at one time, [R, D]."""
        attended = self.attention(
            node_RD, neighbor_RND, interval_RN, is_real_RN, self.encoding, generator
        )
        merged: Tensor = self.output(torch.relu(attended + self.hidden(node_RD)))
        return merged

    def updated_memory(self, memory_RD: Tensor, partner_RD: Tensor, interval_RD: Tensor) -> Tensor:
        """Return memories after an event, from both memories and the encoded interval."""
        message = torch.cat([memory_RD, partner_RD, interval_RD], dim=1)
        updated: Tensor = self.update(message, memory_RD)
        return updated

    def read(self, node: Tensor) -> Tensor:
        """Return the memories of nodes during training, with their latest message applied."""
        memory_RD = self.memory[node]
        interval_RD = self.encoding(self.interval[node])
        after_RD = self.updated_memory(memory_RD, self.partner[node], interval_RD)
        return torch.where(self.has_message[node][:, None] > 0, after_RD, memory_RD)

    @torch.no_grad()
    def write(self, node: Tensor, partner: Tensor, interval: Tensor) -> None:
        """Apply the latest message of each node to its memory, and store a new message."""
        self.memory[node] = self.read(node)
        self.partner[node] = self.memory[partner]
        self.interval[node] = interval
        self.has_message[node] = 1.0

    def reset_memory(self) -> None:
        """Clear all memories and messages."""
        for buffer in self.buffers():
            buffer.zero_()


@dataclass(frozen=True, slots=True, kw_only=True)
class TGNChunk(Chunk):
    """Queries, with the states of nodes at each."""

    events: range
    """Events that are revealed between the queries."""
    state: IntArray
    """State of every node after 0, 1, … of these events, [events + 1, V]."""


class TGN(AttentionModel):
    """Temporal graph network: memories and one layer of attention (TGN).

    Training keeps one message per node and batch, as published: a message whose update gets a
    gradient must be pending when the node is read. Ranking applies every event at once, so that it
    does not depend on where batches begin. Ranking with the memories of training is no better on
    the validation events of CollegeMsg.

    Simultaneous events update the memories in the order of the log. They are not neighbors of each
    other, because a neighbor is strictly earlier than the query.

    >>> from tclgraph.events.synthetic import SyntheticConfig, synthesize
    >>> split = synthesize(SyntheticConfig(events=300, sources=8, targets=9)).split(0.6, 0.2)
    >>> model = TGN(epochs=1, width=8, neighbors=5).fit(split)
    >>> len(model.recommend(0, top=5)), model.embed([0, 1]).shape
    (5, (2, 8))
    """

    name = "tgn"
    config_type = TGNConfig
    in_order = True
    queries_per_chunk = 64  # as many as a number has bits, see `has_changed`
    config: TGNConfig
    network: TGNNetwork

    def build_network(self) -> TGNNetwork:
        return TGNNetwork(self.config, self.graph.space.num_nodes)

    # Training

    def loss(self, batch: int, random: np.random.Generator) -> Tensor:
        """Return the loss of a batch, given the memory before it; then store its messages."""
        if batch == 0:
            self.network.reset_memory()
        loss = super().loss(batch, random)
        self._write(self.batches.events(batch))
        return loss

    def encode_training(self, queries: TimedNodes, generator: torch.Generator | None) -> Tensor:
        network = self.network
        neighbors = self.training_neighbors(queries.latest, queries.time)
        all_nodes = np.concatenate([queries.node[:, None], neighbors.node], axis=1)
        node, position = np.unique(all_nodes, return_inverse=True)
        state_RD = network.read(network.index(node)) + network.features(node)
        position = position.reshape(all_nodes.shape)
        vector_RD: Tensor = network(
            state_RD[network.index(position[:, 0])],
            functional.embedding(network.index(position[:, 1:].copy()), state_RD),
            self.scaled_intervals(queries.time[:, None] - neighbors.time),
            network.index(neighbors.is_real),
            generator,
        )
        return vector_RD

    def _write(self, event: IntArray) -> None:
        """Store the messages of a batch; of a node's events in it only the last leaves a message.

        Paper's code: the interval is since the memory's latest update, which is in an earlier
        batch. Here: since the node's previous event. Because: ranking follows every event, so this
        is the interval that it has.
        """
        graph = self.batches.graph
        instance = np.arange(2 * event[0], 2 * event[-1] + 2)[::-1]
        node, last = np.unique(graph.node[instance], return_index=True)
        last = instance[last]
        self.network.write(
            self.network.index(node),
            self.network.index(graph.node[last ^ 1]),
            self.scaled_intervals(graph.interval[last]),
        )

    # Following and ranking

    def reset_state(self) -> None:
        super().reset_state()
        num_nodes = self.graph.space.num_nodes
        self._memory = self.network.node.weight.new_zeros(num_nodes, self.config.width)

    def update_state(self, events: EventStream) -> None:
        super().update_state(events)
        self._update_memory(len(self.graph) - len(events))

    @torch.no_grad()
    def _update_memory(self, start: int) -> Tensor:
        """Update the memories by the events from `start` on.

        Returns the memory of every instance after its event, [2 · events, D].
        """
        network, memory, first = self.network, self._memory, 2 * start
        node = self.graph.node[first:]
        interval = network.encoding(self.scaled_intervals(self.graph.interval[first:]))
        after = memory.new_empty(len(node), self.config.width)
        order, batch_start = t_batches(node[0::2], node[1::2])
        for begin, end in pairwise(batch_start.tolist()):
            instance = (2 * order[begin:end, None] + np.arange(2)).ravel()
            node_row, row = network.index(node[instance]), network.index(instance)
            before = memory[node_row]
            partner = before.view(-1, 2, self.config.width).flip(1).flatten(0, 1)
            updated = network.updated_memory(before, partner, interval[row])
            memory[node_row] = after[row] = updated
        return after

    def fold(self) -> None:
        self._fold_weights()
        self._set_states(self._memory + self.network.node.weight)

    def _fold_weights(self) -> None:
        network = self.network
        self._attention = FoldedAttention(network.attention, network.encoding)
        # A target's vector is read only by the decoder, so both linear maps become a single map.
        decoder = network.decoder.second_half.weight
        self._weights = TargetWeights(
            code=as_array(self._attention.value_by_time),
            output=as_array((decoder @ network.output.weight).T),
            output_bias=as_array(decoder @ network.output.bias),
            score=as_array(network.decoder.output.weight[0]),
        )

    def _set_states(self, state: Tensor) -> None:
        """Set the table of states, and compute what attention needs of each."""
        attention, heads = self._attention, self.config.heads
        # The weights of a head sum to 1, so a share of the bias in each value adds the bias.
        value = attention.values(state).view(len(state), heads, -1) + attention.bias / heads
        self._hidden = self.network.hidden(state)
        self._state = state
        self._tables = StateTables(
            state=as_array(state),
            query=as_array(attention.queries(state)),
            value=as_array(value),
            hidden=as_array(self._hidden),
            turns=as_array(self._turns),
        )

    def frozen_chunk(self, source: IntArray, time: FloatArray) -> Chunk:
        current = np.arange(self.graph.space.num_nodes)
        return self._chunk(source, time, current, range(0), 0)

    def _chunk(
        self, source: IntArray, time: FloatArray, current: IntArray, events: range, first_state: int
    ) -> TGNChunk:
        """Return a chunk that reveals an event after every query, or no events.

        `current` has the state of every node before the chunk. The states of the nodes after the
        chunk's events begin at `first_state`.
        """
        state = np.tile(current, (len(events) + 1, 1))
        node = self.graph.node[2 * events.start : 2 * events.stop]
        for instance, number in enumerate(node.tolist()):
            state[instance // 2 + 1 :, number] = first_state + instance
        num_revealed = np.minimum(np.arange(len(source)), len(events))
        return TGNChunk(
            source=source, time=time, num_revealed=num_revealed, events=events, state=state
        )

    def encode(
        self, chunk: Chunk, rows: IntArray, neighbors: RecentNeighbors, now_RP: Tensor
    ) -> Tensor:
        assert isinstance(chunk, TGNChunk)
        revealed, index = chunk.num_revealed[rows], self.network.index
        own_R = index(chunk.state[revealed, chunk.source[rows]])
        neighbor_RN = index(chunk.state[revealed[:, None], neighbors.node])
        past = self.past(neighbors, functional.embedding(neighbor_RN, self._state))
        attended_RD = self._attention.at_own_times(self._state[own_R], past, now_RP)
        vector_RD: Tensor = self.network.output(torch.relu(attended_RD + self._hidden[own_R]))
        return vector_RD

    def score_versions(
        self, chunk: Chunk, versions: Versions, now_BP: Tensor, source_BH: Tensor
    ) -> Tensor:
        assert isinstance(chunk, TGNChunk)
        targets, neighbors = self.graph.space.target_nodes, versions.neighbors
        revealed = versions.num_revealed
        segments = Segments(
            own=chunk.state[revealed, targets[versions.column]],
            neighbor=chunk.state[revealed[:, None], neighbors.node],
            event=neighbors.instance // 2,
            num_neighbors=neighbors.count,
            column=versions.column,
            begin=versions.begin,
            end=versions.end,
        )
        scores = np.empty((len(now_BP), len(targets)), dtype=self._tables.state.dtype)
        queries = Queries(as_columns(now_BP), as_columns(source_BH))
        inputs = segments, self._tables, self._weights, queries, scores
        jobs = [
            partial(score_targets, *rows, *inputs) for rows in cell_chunks(segments, CELLS_PER_JOB)
        ]
        run_all(jobs)
        return torch.from_numpy(scores).to(now_BP) + self.network.decoder.output.bias

    def has_changed(self, chunk: Chunk, neighbors: RecentNeighbors) -> BoolArray:
        assert isinstance(chunk, TGNChunk)
        graph, targets = self.graph, self.graph.space.target_nodes
        if not chunk.events:
            return super().has_changed(chunk, neighbors)
        begin, end = chunk.events.start, chunk.events.stop
        # Bit b of a number says whether there is a change between the queries b - 1 and b. A chunk
        # has at most as many queries as a number has bits. No query follows its last event.
        changes_V = np.zeros(graph.space.num_nodes, dtype=np.uint64)
        instance = np.arange(2 * (end - begin) - 2)
        bit = np.uint64(2) << (instance // 2).astype(np.uint64)
        np.bitwise_or.at(changes_V, graph.node[2 * begin + instance], bit)
        by_neighbor_TN = changes_V[neighbors.node] * neighbors.is_real
        changes_T = changes_V[targets] | np.bitwise_or.reduce(by_neighbor_TN, axis=1)
        # The two nodes of an event become neighbors if it is not earlier than the first query.
        begin = int(np.searchsorted(graph.time, graph.time[begin]))
        node = graph.node[2 * begin : 2 * end].reshape(-1, 2)
        by_partner_V = np.zeros_like(changes_V)
        np.bitwise_or.at(by_partner_V, node, changes_V[node[:, ::-1]])
        changes_T |= by_partner_V[targets]
        query_B = np.arange(len(chunk.time), dtype=np.uint64)
        changed: BoolArray = (changes_T >> query_B[:, None]) & np.uint64(1) > 0
        return changed

    @threads_for_parts()
    @torch.no_grad()
    def score_each(self, events: EventStream) -> ScoreArray:
        """Score events, with a state of a node before the block and after each of its events."""
        events = self.admit(events)
        if not len(events):
            return self.score(events.source, events.time)
        start, before = len(self.graph), self._memory.clone()
        self.graph.append(events)
        self.append_turns(start)
        after = self._update_memory(start)
        node = self.graph.node[2 * start :]
        self._fold_weights()
        current, chunks = np.arange(len(before)), []
        features = self.network.features(np.concatenate([current, node]))
        self._set_states(torch.cat([before, after]) + features)
        for begin, end in self.chunk_bounds(len(events)):
            revealed, first_state = range(start + begin, start + end), len(before) + 2 * begin
            source, time = events.source[begin:end], events.time[begin:end]
            chunks.append(partial(self._chunk, source, time, current, revealed, first_state))
            current = current.copy()
            # A node that occurs several times gets the last of its states.
            current[node[2 * begin : 2 * end]] = first_state + np.arange(2 * (end - begin))
        return self.score_chunks(chunks).cpu().numpy()

    def state_tensors(self) -> dict[str, Tensor]:
        return {"memory": self._memory}

    def load_state_tensors(self, tensors: dict[str, Tensor]) -> None:
        self.append_turns(0)
        self._memory = tensors["memory"].to(self.config.device)
