"""Base of TGAT and TGN, which compute a node's vector by attention over its latest neighbors.

Every neighbor comes with an encoding of the interval since the interaction. The intervals count
back from the query time, so vectors change with time, without any event.

A chunk of queries scores all targets at all of its query times. Within a chunk most targets keep
their neighbors and differ only in the time that has passed, so they are encoded at all times by
matrix products. Targets that an event of the chunk has changed are encoded again, at all times from
the change on.

*Turns* are the cosines and sines of a timestamp, from which the encodings of all intervals that
begin or end there are computed (see `TimeEncoding.turns`).

Shapes: R rows (nodes), B query times, N neighbors of a row, T targets, D width, P = 2D turns of a
timestamp, H hidden width of the decoder, C columns of a batch.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Annotated

import numpy as np
import torch
from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor, nn
from torch.nn import functional

from tclgraph.arrays import BoolArray, FloatArray, IntArray, RealArray, ScoreArray
from tclgraph.dependency_graph.interval_scaling import IntervalScale, in_units
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream
from tclgraph.layers.cell_kernels import CELLS_AT_ONCE
from tclgraph.layers.folded_attention import Past
from tclgraph.layers.node_tables import NodeEmbedding
from tclgraph.layers.pair_decoder import PairDecoder
from tclgraph.layers.time_encoding import TimeEncoding
from tclgraph.models.learned import LearnedModel
from tclgraph.objectives.pairwise import logistic_loss
from tclgraph.sampling.recent_neighbors import (
    RecentNeighbors,
    TimedBatches,
    TimedNodes,
    recent_neighbors,
)
from tclgraph.threads import even_cuts, num_threads, run_all, threads_for_parts
from tclgraph.training.config import TrainingConfig

CELLS_PER_JOB = 8192
"""Number of vectors that a thread computes at a time."""
ROWS_PER_CHUNK = 256
"""Number of rows to encode per chunk if every row has a single time."""
_MANY_CHUNKS_PER_THREAD = 4


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
        deviation = config.width**-0.5
        self.node = NodeEmbedding(num_nodes, config.width, deviation=deviation)
        self.encoding = TimeEncoding(config.width)
        self.decoder = PairDecoder(config.width)
        nn.init.normal_(self.node.weight, std=deviation)

    def index(self, array: IntArray | BoolArray) -> Tensor:
        """Return the array as a tensor on the network's device."""
        return torch.from_numpy(array).to(self.node.weight.device)

    def features(self, node: IntArray) -> Tensor:
        """Return the features of nodes."""
        # A copy, because the columns of a stream are read-only and torch tensors cannot be.
        features: Tensor = self.node(self.index(node.copy()))
        return features


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Queries that are scored together; their times do not decrease."""

    source: IntArray
    time: FloatArray
    num_revealed: IntArray
    """Number of events of the chunk that each query depends on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """Targets over the queries of a chunk during which they do not change.

    Every target has a version at every query. Versions are sorted by their first query.
    """

    column: IntArray
    """Id of the target."""
    begin: IntArray
    """First query."""
    end: IntArray
    """Query after the last one."""
    neighbors: RecentNeighbors
    num_revealed: IntArray
    """Number of events of the chunk that the version depends on."""


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

    def scaled_intervals(self, interval: FloatArray) -> Tensor:
        """Return intervals in the unit, data type and device of the network."""
        return self._scaled(interval).to(self.network.node.weight)

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

    def _scaled(self, interval: FloatArray) -> Tensor:
        return torch.from_numpy(in_units(interval, self.measured["mean_interval"]))

    # Ranking

    @abstractmethod
    def fold(self) -> None:
        """Multiply weights with each other that inference needs; called before `encode`."""

    @abstractmethod
    def encode(
        self, chunk: Chunk, rows: IntArray, neighbors: RecentNeighbors, now_RP: Tensor
    ) -> Tensor:
        """Return the vectors of the sources of some queries with these neighbors, [R, D].

        `now_RP` holds the turns of the query times.
        """

    @abstractmethod
    def score_versions(
        self, chunk: Chunk, versions: Versions, now_BP: Tensor, source_BH: Tensor
    ) -> Tensor:
        """Return the scores of all targets, [B, T].

        `now_BP` holds the turns of the query times, and `source_BH` the decoder's hidden input of
        the sources.
        """

    def past(self, neighbors: RecentNeighbors, neighbor_RND: Tensor) -> Past:
        """Return the input of attention: neighbors, turns of their events, and the mask."""
        is_real, index = neighbors.is_real, self.network.index
        turns = self._turns if len(self._turns) else self._turns.new_zeros(1, self._turns.shape[1])
        # Positions without a neighbor are masked; their values are ignored.
        event = np.maximum(neighbors.instance, 0) // 2
        return Past(neighbor_RND, functional.embedding(index(event), turns), index(is_real))

    def has_changed(self, chunk: Chunk, neighbors: RecentNeighbors) -> BoolArray:
        """Return which targets changed between a query and the query before it, [B, T].

        `neighbors` are those at the first query. A target that has a new neighbor since the query
        before need not be included, and a target that has not changed may be.
        """
        return np.zeros((len(chunk.time), len(neighbors.node)), dtype=bool)

    def frozen_chunk(self, source: IntArray, time: FloatArray) -> Chunk:
        """Return a chunk without events between its queries."""
        return Chunk(source=source, time=time, num_revealed=np.zeros(len(source), dtype=np.int64))

    @threads_for_parts()
    @torch.no_grad()
    def score(self, source: IntArray, time: FloatArray) -> ScoreArray:
        self.check_fitted()
        if not len(source):
            return np.empty((0, self.graph.space.num_targets), dtype=np.float32)
        self.fold()
        order = np.argsort(time, kind="stable")
        parts = [order[begin:end] for begin, end in self.chunk_bounds(len(order))]
        chunks = [partial(self.frozen_chunk, source[part], time[part]) for part in parts]
        scores = self.score_chunks(chunks)
        return scores[self.network.index(np.argsort(order))].cpu().numpy()

    def chunk_bounds(self, num_queries: int) -> list[tuple[int, int]]:
        """Return the first query of every chunk, and the query after its last one."""
        num_chunks = -(-num_queries // self.queries_per_chunk)
        return list(pairwise(even_cuts(num_queries, num_chunks)))

    def score_chunks(self, chunks: Sequence[Callable[[], Chunk]]) -> Tensor:
        """Return the scores of all targets at all queries; a chunk is created when it is scored.

        Threads share the chunks if this divides the work about evenly. Otherwise they share the
        targets of each chunk.
        """
        parts = [torch.empty(0)] * len(chunks)

        @torch.no_grad()
        def score(number: int) -> None:
            parts[number] = self.score_chunk(chunks[number]())

        jobs, threads = [partial(score, number) for number in range(len(chunks))], num_threads()
        if len(jobs) % threads == 0 or len(jobs) >= _MANY_CHUNKS_PER_THREAD * threads:
            run_all(jobs)
        else:
            for job in jobs:
                job()
        return torch.cat(parts)

    def score_chunk(self, chunk: Chunk) -> Tensor:
        """Return the scores of all targets at the queries of a chunk, [B, T].

        The graph may already hold later events: neighbors are strictly earlier than the query time.
        """
        targets, time = self.graph.space.target_nodes, chunk.time
        neighbors = self._neighbors(targets, np.full(len(targets), time[0]))
        begin, column = np.nonzero(self._changes(chunk, neighbors))
        changed = self._neighbors(targets[column], time[begin])
        begin = np.concatenate([np.zeros(len(targets), dtype=np.int64), begin])
        column = np.concatenate([np.arange(len(targets)), column])
        versions = Versions(
            column=column,
            begin=begin,
            end=_ends(column, begin, len(time)),
            neighbors=neighbors.then(changed),
            num_revealed=chunk.num_revealed[begin],
        )
        now_BP = self.turns_of(time, at_end=True)
        source_BH = self.network.decoder.first_half(self._encode_sources(chunk, now_BP))
        return self.score_versions(chunk, versions, now_BP, source_BH)

    def vectors(self, node: IntArray, time: float) -> ScoreArray:
        with torch.no_grad():
            self.fold()
            chunk = self.frozen_chunk(node, np.full(len(node), time))
            now_RP = self.turns_of(chunk.time, at_end=True)
            return self._encode_sources(chunk, now_RP).cpu().numpy()

    def _neighbors(self, node: IntArray, time: FloatArray) -> RecentNeighbors:
        latest = self.graph.last_instance[node]
        return recent_neighbors(self.graph, latest, time, self.config.neighbors)

    def _changes(self, chunk: Chunk, neighbors: RecentNeighbors) -> BoolArray:
        """Return which targets have changed since the query before, [B, T]; none at the first."""
        changed_BT, time = self.has_changed(chunk, neighbors), chunk.time
        # An event makes its nodes neighbors of each other from the first later query on.
        begin, end = np.searchsorted(self.graph.time, time[[0, -1]])
        query = np.searchsorted(time, self.graph.time[begin:end], side="right").repeat(2)
        column = self.graph.node[2 * begin : 2 * end] - self.graph.space.first_target
        is_target = column >= 0
        changed_BT[query[is_target], column[is_target]] = True
        changed_BT[:1] = False
        return changed_BT

    def _encode_sources(self, chunk: Chunk, now_BP: Tensor) -> Tensor:
        """Return the vectors of the sources, each at the time of its query, [B, D]."""
        vectors_BD = now_BP.new_empty(len(now_BP), self.config.width)
        all_neighbors = self._neighbors(chunk.source, chunk.time)
        for rows, neighbors in by_count(all_neighbors, ROWS_PER_CHUNK):
            row = self.network.index(rows)
            vectors_BD[row] = self.encode(chunk, rows, neighbors, now_BP[row])
        return vectors_BD


def _ends(column: IntArray, begin: IntArray, num_queries: int) -> IntArray:
    """Return for each version the query at which the next version of its target begins."""
    order = np.lexsort((begin, column))
    end = np.full(len(column), num_queries)
    has_next = column[order[1:]] == column[order[:-1]]
    end[order[:-1][has_next]] = begin[order[1:][has_next]]
    return end


def by_count(neighbors: RecentNeighbors, size: int) -> Iterator[tuple[IntArray, RecentNeighbors]]:
    """Divide rows into chunks of at most this size with similar numbers of neighbors.

    Every chunk has as many columns as its largest number of neighbors. Rows without neighbors are
    not in the same chunk as others.
    """
    count = neighbors.count
    order = np.argsort(count, kind="stable")
    num_empty = int(np.count_nonzero(count == 0))
    for begin, end in ((0, num_empty), (num_empty, len(order))):
        for start in range(begin, end, size):
            rows = order[start : min(start + size, end)]
            yield rows, neighbors.of(rows, int(count[rows[-1]]))


def write_rows(table: Tensor, start: int, rows: Tensor) -> Tensor:
    """Write rows from `start` on, in place; return a larger table if they do not fit."""
    if start + len(rows) > len(table):
        larger = table.new_zeros(max(start + len(rows), 2 * len(table)), table.shape[1])
        larger[:start] = table[:start]
        table = larger
    table[start : start + len(rows)] = rows
    return table


def as_array(tensor: Tensor) -> RealArray:
    """Return a tensor without gradients as an array, which shares its memory on the CPU."""
    array: RealArray = tensor.detach().contiguous().cpu().numpy()
    return array


def as_columns(rows: Tensor) -> RealArray:
    """Return an array with these rows as columns, and with further columns that kernels expect."""
    return as_array(functional.pad(rows.T, (0, CELLS_AT_ONCE)))
