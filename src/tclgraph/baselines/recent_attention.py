"""What TGAT and TGN have in common: a node is what attention makes of whom it met last.

Each neighbour comes with a code of how long ago it was met. Both models look back from the update
that is asked for, so vectors change as time passes, without any event.

Shapes: R rows (nodes), B moments at which each is asked for, N neighbours of a row, T targets, D
width, P = 2D: cosines and sines of a time, H hidden width of the decoder, C columns of a batch.
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
from tclgraph.objectives.pairwise import logistic_loss
from tclgraph.sampling.recent_neighbors import (
    RecentNeighbors,
    TimedBatches,
    TimedNodes,
    recent_neighbors,
)
from tclgraph.training.config import TrainingConfig
from tclgraph.models.learned import LearnedModel

AT_ONCE = 2048
"""Rows times moments that are encoded at once: what is made on the way stays near the processor."""


@dataclass(frozen=True, kw_only=True)
class AttentionConfig(TrainingConfig):
    """What TGAT and TGN can both be told."""

    learning_rate: PositiveFloat = 1e-3
    patience: PositiveInt | None = 3
    max_valid_events: PositiveInt | None = 1024
    width: PositiveInt = 64
    """Of node features, of vectors, and of the code of an interval. Attention is twice as wide."""
    heads: PositiveInt = 2
    neighbors: PositiveInt = 20
    """How many of the latest are looked at."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """In attention, while learning."""
    negatives: PositiveInt = 5
    """Targets that each event's true one is told from. The published code has one."""

    def __post_init__(self) -> None:
        if 2 * self.width % self.heads:
            raise ValueError(
                f"{self.heads} heads cannot split twice a width of {self.width} evenly; "
                "give another number of heads"
            )


class AttentionNetwork(nn.Module):
    """What both networks have: features of nodes, a code of time, and a score for two vectors."""

    def __init__(self, config: AttentionConfig, num_nodes: int) -> None:
        super().__init__()
        # Paper: features are given, or else zeros. Here: learned. Because: the logs have none, and
        # with zeros all targets with the same intervals would be the same.
        self.node = nn.Embedding(num_nodes, config.width)
        self.encoding = TimeEncoding(config.width)
        self.decoder = PairDecoder(config.width)
        nn.init.normal_(self.node.weight, std=config.width**-0.5)

    def index(self, array: IntArray | BoolArray) -> Tensor:
        return torch.from_numpy(array).to(self.node.weight.device)

    def features(self, node: IntArray) -> Tensor:
        # A copy: a stream's columns are read-only, which torch cannot promise to keep.
        features: Tensor = self.node(self.index(node.copy()))
        return features


class AttentionModel(LearnedModel):
    """Training on (node, time) pairs, and ranking of all targets at a time.

    Within a few queries most targets keep their neighbours and differ in the time that has passed,
    so all targets are encoded at all of these moments by products of matrices. What has changed in
    between is encoded again, pair by pair, and written over.
    """

    config: AttentionConfig
    network: AttentionNetwork
    queries_at_once: int
    """More share more, and have more changes to write over."""

    # Learning

    def prepare(self, split: Split) -> int:
        config = self.config
        self.batches = TimedBatches(split.train, config.batch_size, config.negatives)
        graph = self.batches.graph
        mean, beginning = IntervalScale.measure(graph).mean, float(graph.time[0])
        self.start(split.events, mean=mean, beginning=beginning)
        return len(self.batches)

    def loss(self, batch: int, random: np.random.Generator) -> Tensor:
        asked = self.batches.draw(batch, random)
        generator = torch.Generator().manual_seed(int(random.integers(2**63)))
        vectors = self.encode_asked(asked, generator)
        decoder, position_BC = self.network.decoder, self.network.index(asked.position)
        one_BH = decoder.one(vectors[position_BC[:, 0]])
        other_BCH = decoder.other(vectors)[position_BC[:, 1:]]
        score_BC = decoder.of_halves(one_BH[:, None], other_BCH)
        return logistic_loss(score_BC[:, 0], score_BC[:, 1:])

    @abstractmethod
    def encode_asked(self, asked: TimedNodes, generator: torch.Generator | None) -> Tensor:
        """Vectors to learn by, [R, D]; without a generator nothing is dropped out."""

    def neighbors_in_training(self, latest: IntArray, time: FloatArray) -> RecentNeighbors:
        return recent_neighbors(self.batches.graph, latest, time, self.config.neighbors)

    def numbers(self, seconds: FloatArray) -> Tensor:
        """Intervals as the network reads them."""
        return self._scaled(seconds).to(self.network.node.weight)

    # Following and ranking

    def reset_state(self) -> None:
        # Of every event, its time as attention reads it; room for more than there is.
        self._turns = self.network.node.weight.new_empty(0, 2 * self.config.width)

    def update_state(self, events: EventStream) -> None:
        self.follow_turns(len(self.graph) - len(events))

    def follow_turns(self, start: int) -> None:
        turns = self.turns_of(self.graph.time[start:], at_end=False)
        self._turns = written(self._turns, start, turns)

    @abstractmethod
    def encode(
        self, node: IntArray, neighbors: RecentNeighbors, now: Tensor, happened: IntArray
    ) -> Tensor:
        """Vectors of nodes with these neighbours at moments, given by their turns, [R, B, D].

        `happened` says for each row how many of the events have happened that are being ranked.
        """

    def past(self, neighbors: RecentNeighbors, neighbor_RND: Tensor) -> Past:
        is_real, index = neighbors.is_real, self.network.index
        turns = self._turns if len(self._turns) else self._turns.new_zeros(1, self._turns.shape[1])
        event = np.maximum(neighbors.instance, 0) // 2  # none is masked, and may be anything
        return Past(neighbor_RND, turns[index(event)], index(is_real))

    def has_changed(self, neighbors: RecentNeighbors, happened: IntArray) -> BoolArray:
        """Targets that are not any more what they were before all of these events, [B, T].

        Apart from those that have new neighbours by then.
        """
        return np.zeros((len(happened), len(neighbors.node)), dtype=bool)

    def score(self, source: IntArray, time: FloatArray) -> ScoreArray:
        self.check_fitted()
        return self.score_after(np.zeros(len(source), dtype=np.int64), source, time)

    @torch.no_grad()
    def score_after(self, happened: IntArray, source: IntArray, time: FloatArray) -> ScoreArray:
        """Scores when so many of the events have happened that are being ranked.

        The graph may have all of these already. That betrays nothing, as neighbours are strictly
        earlier than the time that is asked for.
        """
        size = self.queries_at_once
        parts = [
            self._score_some(happened[at : at + size], source[at : at + size], time[at : at + size])
            for at in range(0, len(source), size)
        ]
        if not parts:
            return np.empty((0, self.graph.space.num_targets), dtype=np.float32)
        return torch.cat(parts, dim=1).T.contiguous().cpu().numpy()

    def _score_some(self, happened: IntArray, source: IntArray, time: FloatArray) -> Tensor:
        """Scores by target, [T, B]."""
        decoder, index = self.network.decoder, self.network.index
        targets, count = self.graph.space.target_nodes, len(source)
        neighbors = self._neighbors(targets, np.full(len(targets), time[0]))
        other_TBH = self._halves(targets, neighbors, time)
        query, place = self._changes(targets, neighbors, happened, time)
        each_RD = self._encode_each(
            np.concatenate([source, targets[place]]),
            np.concatenate([time, time[query]]),
            np.concatenate([happened, happened[query]]),
        )
        other_TBH[index(place), index(query)] = decoder.other(each_RD[count:])
        return decoder.of_halves(decoder.one(each_RD[:count]), other_TBH)

    def vectors(self, node: IntArray, time: float) -> ScoreArray:
        nothing = np.zeros(len(node), dtype=np.int64)
        with torch.no_grad():
            return self._encode_each(node, np.full(len(node), time), nothing).cpu().numpy()

    def _neighbors(self, node: IntArray, time: FloatArray) -> RecentNeighbors:
        latest = self.graph.last_instance[node]
        return recent_neighbors(self.graph, latest, time, self.config.neighbors)

    def _halves(self, targets: IntArray, neighbors: RecentNeighbors, time: FloatArray) -> Tensor:
        """What the decoder makes of all targets at all times if nothing happens, [T, B, H]."""
        now_BP = self.turns_of(time, at_end=True)
        hidden = self.network.decoder.other.out_features
        half_TBH = now_BP.new_empty(len(targets), len(time), hidden)
        for rows, some in _by_count(neighbors, max(1, AT_ONCE // len(time))):
            nothing = np.zeros(len(rows), dtype=np.int64)
            found = self.encode(targets[rows], some, now_BP, nothing)
            half_TBH[self.network.index(rows)] = self.network.decoder.other(found)
        return half_TBH

    def _changes(
        self, targets: IntArray, neighbors: RecentNeighbors, happened: IntArray, time: FloatArray
    ) -> tuple[IntArray, IntArray]:
        """Which queries find which targets other than the first query found them."""
        latest = np.tile(self.graph.last_instance[targets], len(time))
        met = recent_neighbors(self.graph, latest, np.repeat(time, len(targets)), 1).instance
        # The latest neighbour tells which ones the others are.
        changed_BT = met.reshape(len(time), -1) != neighbors.instance[:, 0]
        query, place = np.nonzero(changed_BT | self.has_changed(neighbors, happened))
        return query, place

    def _encode_each(self, node: IntArray, time: FloatArray, happened: IntArray) -> Tensor:
        """Nodes at a time of their own each, [R, D]."""
        vectors_RD = self.network.node.weight.new_empty(len(node), self.config.width)
        now_RBP = self.turns_of(time, at_end=True)[:, None]
        for rows, some in _by_count(self._neighbors(node, time), AT_ONCE):
            place = self.network.index(rows)
            found = self.encode(node[rows], some, now_RBP[place], happened[rows])
            vectors_RD[place] = found[:, 0]
        return vectors_RD

    def turns_of(self, time: FloatArray, *, at_end: bool) -> Tensor:
        scaled = self._scaled(time - self.measured["beginning"])
        return self.network.encoding.turns(scaled, at_end=at_end)

    def _scaled(self, seconds: FloatArray) -> Tensor:
        return torch.from_numpy(seconds / self.measured["mean"])


def _by_count(neighbors: RecentNeighbors, size: int) -> Iterator[tuple[IntArray, RecentNeighbors]]:
    """So many rows at a time, with as many neighbours as they have at most, one at least."""
    count = neighbors.count
    order = np.argsort(count, kind="stable")
    for at in range(0, len(order), size):
        rows = order[at : at + size]
        yield rows, neighbors.of(rows, max(1, int(count[rows[-1]])))


def written(table: Tensor, start: int, rows: Tensor) -> Tensor:
    """A table with these rows from `start` on, the same one if it has room for them."""
    if start + len(rows) > len(table):
        larger = table.new_zeros(max(start + len(rows), 2 * len(table)), table.shape[1])
        larger[:start] = table[:start]
        table = larger
    table[start : start + len(rows)] = rows
    return table
