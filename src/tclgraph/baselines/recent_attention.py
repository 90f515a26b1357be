"""Base of TGAT and TGN, which compute a node's vector by attention over its latest neighbors.

Every neighbor comes with an encoding of the interval since the interaction. The intervals count
back from the query time, so vectors change with time, without any event.

A chunk of queries scores all targets at all of its query times. Within a chunk most targets keep
their neighbors and differ only in the time that has passed, so they are encoded at all times by
matrix products. Targets that an event of the chunk has changed are encoded again, pair by pair.

*Turns* are the cosines and sines of a timestamp, from which the encodings of all intervals that
begin or end there are computed (see `TimeEncoding.turns`).

Shapes: R rows (nodes), B times per row, N neighbors of a row, T targets, D width, P = 2D turns of a
timestamp, H hidden width of the decoder, C columns of a batch.
"""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor, nn

from tclgraph.arrays import BoolArray, FloatArray, IntArray, ScoreArray
from tclgraph.dependency_graph.interval_scaling import IntervalScale
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream
from tclgraph.layers.pair_decoder import PairDecoder
from tclgraph.layers.temporal_attention import Past
from tclgraph.layers.time_encoding import TimeEncoding
from tclgraph.models.learned import LearnedModel
from tclgraph.objectives.pairwise import logistic_loss
from tclgraph.sampling.recent_neighbors import (
    RecentNeighbors,
    TimedBatches,
    TimedNodes,
    recent_neighbors,
)
from tclgraph.training.config import TrainingConfig

CHUNK_SIZE = 2048
"""Number of vectors (rows times query times) to encode per chunk, so that intermediate arrays fit
in cache."""


@dataclass(frozen=True, kw_only=True)
class AttentionConfig(TrainingConfig):
    """Settings that TGAT and TGN share."""

    learning_rate: PositiveFloat = 1e-3
    """Learning rate of Adam."""
    patience: PositiveInt | None = 3
    """Epochs without a better validation metric before training stops; None: never stop early."""
    max_valid_events: PositiveInt | None = 1024
    """Largest number of validation events to rank after an epoch; None: all."""
    width: PositiveInt = 64
    """Size of node features, vectors and interval encodings. Attention is twice as wide."""
    heads: PositiveInt = 2
    """Number of attention heads."""
    neighbors: PositiveInt = 20
    """Number of latest neighbors that a node attends to."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """Dropout of attention during training."""
    negatives: PositiveInt = 5
    """Number of negatives of an event. The published code has one."""

    def __post_init__(self) -> None:
        if 2 * self.width % self.heads:
            raise ValueError(
                f"{self.heads} heads cannot split twice a width of {self.width} evenly; "
                "give another number of heads"
            )


class AttentionNetwork(nn.Module):
    """Node features, an encoding of intervals, and a decoder that scores two vectors."""

    def __init__(self, config: AttentionConfig, num_nodes: int) -> None:
        super().__init__()
        # Paper: features are given, or zeros. Here: they are learned. Because: the logs have no
        # features, and with zeros all targets with equal intervals would have equal vectors.
        self.node = nn.Embedding(num_nodes, config.width)
        self.encoding = TimeEncoding(config.width)
        self.decoder = PairDecoder(config.width)
        nn.init.normal_(self.node.weight, std=config.width**-0.5)

    def index(self, array: IntArray | BoolArray) -> Tensor:
        """Return the array as a tensor on the network's device."""
        return torch.from_numpy(array).to(self.node.weight.device)

    def features(self, node: IntArray) -> Tensor:
        """Return the features of nodes."""
        # A copy, because the columns of a stream are read-only and torch tensors cannot be.
        features: Tensor = self.node(self.index(node.copy()))
        return features


class AttentionModel(LearnedModel):
    """Base class that trains on (node, time) pairs and ranks all targets at a query time."""

    config: AttentionConfig
    network: AttentionNetwork
    queries_per_chunk: int
    """Number of queries to score together. A larger chunk shares more work, but more of its targets
    change within it."""

    # Training

    def prepare(self, split: Split) -> int:
        config = self.config
        self.batches = TimedBatches(split.train, config.batch_size, config.negatives)
        graph = self.batches.graph
        mean_interval, beginning = IntervalScale.measure(graph).mean, float(graph.time[0])
        self.start(split.events, mean_interval=mean_interval, beginning=beginning)
        return len(self.batches)

    def loss(self, batch: int, random: np.random.Generator) -> Tensor:
        """Return the logistic loss of a batch's events and of their negatives."""
        queries = self.batches.draw(batch, random)
        generator = torch.Generator().manual_seed(int(random.integers(2**63)))
        vectors = self.encode_training(queries, generator)
        decoder, position_BC = self.network.decoder, self.network.index(queries.position)
        source_BH = decoder.first_half(vectors[position_BC[:, 0]])
        target_BCH = decoder.second_half(vectors)[position_BC[:, 1:]]
        score_BC = decoder.of_halves(source_BH[:, None], target_BCH)
        return logistic_loss(score_BC[:, 0], score_BC[:, 1:])

    @abstractmethod
    def encode_training(self, queries: TimedNodes, generator: torch.Generator | None) -> Tensor:
        """Return vectors to train on, [R, D]; without a generator there is no dropout."""

    def training_neighbors(self, latest: IntArray, time: FloatArray) -> RecentNeighbors:
        """Return the latest neighbors of nodes in the training events, strictly before a time."""
        return recent_neighbors(self.batches.graph, latest, time, self.config.neighbors)

    def scaled_intervals(self, seconds: FloatArray) -> Tensor:
        """Return intervals in the unit, data type and device of the network."""
        return self._scaled(seconds).to(self.network.node.weight)

    # Following the stream

    def reset_state(self) -> None:
        # Turns of the timestamp of every event; the table may have more rows than events.
        self._turns = self.network.node.weight.new_empty(0, 2 * self.config.width)

    def update_state(self, events: EventStream) -> None:
        self.append_turns(len(self.graph) - len(events))

    def append_turns(self, start: int) -> None:
        """Store the turns of the events from `start` on."""
        turns = self.turns_of(self.graph.time[start:], at_end=False)
        self._turns = write_rows(self._turns, start, turns)

    def turns_of(self, time: FloatArray, *, at_end: bool) -> Tensor:
        """Return the turns of timestamps at which intervals begin, or end."""
        scaled = self._scaled(time - self.measured["beginning"])
        return self.network.encoding.turns(scaled, at_end=at_end)

    def _scaled(self, seconds: FloatArray) -> Tensor:
        return torch.from_numpy(seconds / self.measured["mean_interval"])

    # Ranking

    @abstractmethod
    def encode(
        self, node: IntArray, neighbors: RecentNeighbors, now: Tensor, num_revealed: IntArray
    ) -> Tensor:
        """Return the vectors of nodes with these neighbors at times, [R, B, D].

        `now` holds the turns of the times: [B, P] if all rows share them, or else [R, B, P].
        `num_revealed` is, for each row, the number of events of the current chunk that it depends
        on.
        """

    def past(self, neighbors: RecentNeighbors, neighbor_RND: Tensor) -> Past:
        """Return the input of attention: neighbors, turns of their events, and the mask."""
        is_real, index = neighbors.is_real, self.network.index
        turns = self._turns if len(self._turns) else self._turns.new_zeros(1, self._turns.shape[1])
        # Positions without a neighbor are masked; their values are ignored.
        event = np.maximum(neighbors.instance, 0) // 2
        return Past(neighbor_RND, turns[index(event)], index(is_real))

    def has_changed(self, neighbors: RecentNeighbors, num_revealed: IntArray) -> BoolArray:
        """Return which targets have changed since the start of the chunk, [B, T].

        Targets that have new neighbors need not be included.
        """
        return np.zeros((len(num_revealed), len(neighbors.node)), dtype=bool)

    def score(self, source: IntArray, time: FloatArray) -> ScoreArray:
        self.check_fitted()
        return self.score_revealed(np.zeros(len(source), dtype=np.int64), source, time)

    @torch.no_grad()
    def score_revealed(
        self, num_revealed: IntArray, source: IntArray, time: FloatArray
    ) -> ScoreArray:
        """Return the scores of all targets, after a number of events of the current chunk.

        The graph may already hold all events of the chunk: neighbors are strictly earlier than the
        query time, so scores do not depend on later events.
        """
        size = self.queries_per_chunk
        chunks = [slice(start, start + size) for start in range(0, len(source), size)]
        parts = [
            self._score_chunk(num_revealed[chunk], source[chunk], time[chunk]) for chunk in chunks
        ]
        if not parts:
            return np.empty((0, self.graph.space.num_targets), dtype=np.float32)
        return torch.cat(parts, dim=1).T.contiguous().cpu().numpy()

    def _score_chunk(self, num_revealed: IntArray, source: IntArray, time: FloatArray) -> Tensor:
        """Return scores by target, [T, B]."""
        decoder, index = self.network.decoder, self.network.index
        targets, count = self.graph.space.target_nodes, len(source)
        neighbors = self._neighbors(targets, np.full(len(targets), time[0]))
        target_TBH = self._decoder_inputs(targets, neighbors, time)
        query, column = self._changes(targets, neighbors, num_revealed, time)
        vector_RD = self._encode_pairs(
            np.concatenate([source, targets[column]]),
            np.concatenate([time, time[query]]),
            np.concatenate([num_revealed, num_revealed[query]]),
        )
        target_TBH[index(column), index(query)] = decoder.second_half(vector_RD[count:])
        return decoder.of_halves(decoder.first_half(vector_RD[:count]), target_TBH)

    def vectors(self, node: IntArray, time: float) -> ScoreArray:
        num_revealed = np.zeros(len(node), dtype=np.int64)
        with torch.no_grad():
            return self._encode_pairs(node, np.full(len(node), time), num_revealed).cpu().numpy()

    def _neighbors(self, node: IntArray, time: FloatArray) -> RecentNeighbors:
        latest = self.graph.last_instance[node]
        return recent_neighbors(self.graph, latest, time, self.config.neighbors)

    def _decoder_inputs(
        self, targets: IntArray, neighbors: RecentNeighbors, time: FloatArray
    ) -> Tensor:
        """Return the decoder's hidden input of all targets at all times, [T, B, H].

        The targets are encoded as if no event happened between the times.
        """
        now_BP = self.turns_of(time, at_end=True)
        hidden = self.network.decoder.second_half.out_features
        target_TBH = now_BP.new_empty(len(targets), len(time), hidden)
        for rows, neighbors_of_rows in _by_count(neighbors, max(1, CHUNK_SIZE // len(time))):
            num_revealed = np.zeros(len(rows), dtype=np.int64)
            vector_RBD = self.encode(targets[rows], neighbors_of_rows, now_BP, num_revealed)
            target_TBH[self.network.index(rows)] = self.network.decoder.second_half(vector_RBD)
        return target_TBH

    def _changes(
        self,
        targets: IntArray,
        neighbors: RecentNeighbors,
        num_revealed: IntArray,
        time: FloatArray,
    ) -> tuple[IntArray, IntArray]:
        """Return pairs of a query and a target that has changed since the first query."""
        last = np.tile(self.graph.last_instance[targets], len(time))
        latest = recent_neighbors(self.graph, last, np.repeat(time, len(targets)), 1).instance
        # A target with the same latest neighbor has the same earlier neighbors too.
        changed_BT = latest.reshape(len(time), -1) != neighbors.instance[:, 0]
        query, column = np.nonzero(changed_BT | self.has_changed(neighbors, num_revealed))
        return query, column

    def _encode_pairs(self, node: IntArray, time: FloatArray, num_revealed: IntArray) -> Tensor:
        """Return the vectors of nodes, each at its own time, [R, D]."""
        vectors_RD = self.network.node.weight.new_empty(len(node), self.config.width)
        now_RBP = self.turns_of(time, at_end=True)[:, None]
        for rows, neighbors in _by_count(self._neighbors(node, time), CHUNK_SIZE):
            row = self.network.index(rows)
            vector_RBD = self.encode(node[rows], neighbors, now_RBP[row], num_revealed[rows])
            vectors_RD[row] = vector_RBD[:, 0]
        return vectors_RD


def _by_count(neighbors: RecentNeighbors, size: int) -> Iterator[tuple[IntArray, RecentNeighbors]]:
    """Divide rows into chunks of this size with similar numbers of neighbors.

    Every chunk has as many columns as its largest number of neighbors, and at least one.
    """
    count = neighbors.count
    order = np.argsort(count, kind="stable")
    for start in range(0, len(order), size):
        rows = order[start : start + size]
        yield rows, neighbors.of(rows, max(1, int(count[rows[-1]])))


def write_rows(table: Tensor, start: int, rows: Tensor) -> Tensor:
    """Write rows from `start` on, in place; return a larger table if they do not fit."""
    if start + len(rows) > len(table):
        larger = table.new_zeros(max(start + len(rows), 2 * len(table)), table.shape[1])
        larger[:start] = table[:start]
        table = larger
    table[start : start + len(rows)] = rows
    return table
