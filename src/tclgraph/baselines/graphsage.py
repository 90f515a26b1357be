"""GraphSAGE with five aggregators, and the best of them (GraphSage* of the paper).

A node is made of itself and of a sample of its neighbors, these of theirs, in a graph that knows
who met whom during training, but not when, nor how often. Vectors are made once and then stay.

Shapes: B events, N negatives, C the two parties and the negatives, D width.
"""

import json
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self, TypeAlias

import numpy as np
import torch
from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor, nn
from torch.nn import functional

from tclgraph.arrays import IntArray
from tclgraph.baselines.frozen import FrozenModel
from tclgraph.evaluation.metrics import LOWER_IS_BETTER
from tclgraph.evaluation.protocol import evaluate
from tclgraph.events.split import Split
from tclgraph.layers.aggregators import (
    GATAggregator,
    GCNAggregator,
    LSTMAggregator,
    MaxAggregator,
    MeanAggregator,
)
from tclgraph.objectives.pairwise import logistic_loss
from tclgraph.sampling.static_neighbors import StaticNeighbors
from tclgraph.models.saving import tensors_below
from tclgraph.training.config import TrainingConfig
from tclgraph.training.progress import ProgressCallback, ProgressUpdate, progress_bar
from tclgraph.training.run_folder import RunFolder, fingerprint

Aggregator: TypeAlias = Literal["gcn", "mean", "max", "lstm", "gat"]


@dataclass(frozen=True, kw_only=True)
class GraphSAGEConfig(TrainingConfig):
    """What the published code and the paper say, at the paper's width."""

    learning_rate: PositiveFloat = 5e-3
    max_gradient_norm: PositiveFloat | None = 5.0
    """Published: each number of the gradient is cut to ±5. Here: the whole of it, as in all
    models; Adam makes little of the difference."""
    patience: PositiveInt | None = 5

    width: Annotated[int, Field(ge=2)] = 64
    """Size of the learned features of a node, and of what each layer makes of them."""
    depth: PositiveInt = 2
    """Layers, and so the number of steps from a node to those that it is made of."""
    near_neighbors: PositiveInt = 25
    """Samples of a node's own neighbors."""
    far_neighbors: PositiveInt = 10
    """Samples at each further step. The published code has the two the other way round; this is
    how the paper words it."""
    negatives: PositiveInt = 5
    temperature: PositiveFloat = 0.2
    """Products of unit vectors are between -1 and 1, which leaves a sigmoid undecided; they are
    divided by this in training. 1: as published."""


@dataclass(frozen=True, kw_only=True)
class GATConfig(GraphSAGEConfig):
    """Attention has heads beside."""

    heads: PositiveInt = 8

    def __post_init__(self) -> None:
        if self.width % self.heads:
            raise ValueError(
                f"{self.heads} heads cannot split a width of {self.width} evenly; "
                "give a width that is a multiple of the number of heads"
            )


@dataclass(frozen=True, kw_only=True)
class BestConfig(GATConfig):
    """What all five can be told."""

    aggregator: Aggregator | None = None
    """None: `fit` trains all five, keeps the one that does best on valid, and names it here."""


class GraphSAGENetwork(nn.Module):
    """Learned features of every node, and a layer for every step."""

    def __init__(self, num_nodes: int, width: int, layers: Sequence[nn.Module]) -> None:
        super().__init__()
        self.node = nn.Parameter(torch.empty(num_nodes, width))
        nn.init.xavier_uniform_(self.node)
        self.layers = nn.ModuleList(layers)

    def forward(self, node_R: Tensor, hops: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
        """Unit vectors of the nodes that the last hop asks for."""
        state = self.node.index_select(0, node_R)
        for number, (layer, (own, neighbor)) in enumerate(
            zip(self.layers, hops, strict=True), start=1
        ):
            state = layer(state, own, neighbor)
            if number < len(self.layers):
                state = torch.relu(state)
        return functional.normalize(state, dim=1)


class _GraphSAGE(FrozenModel):
    """All but which aggregator it is."""

    config_type = GraphSAGEConfig
    search_space = {  # noqa: RUF012  # a ClassVar of the base
        "learning_rate": (1e-4, 5e-4, 1e-3, 5e-3, 1e-2, 1e-1),
        "batch_size": (128, 256, 512),
    }
    config: GraphSAGEConfig
    network: GraphSAGENetwork

    @abstractmethod
    def make_layer(self) -> nn.Module:
        """One aggregator."""

    def prepare(self, split: Split) -> int:
        config, train = self.config, split.train
        self.start(split.events)
        self._links = StaticNeighbors(train)
        self._counts = (config.near_neighbors, *[config.far_neighbors] * (config.depth - 1))
        # Nothing has to be in order, so a batch has events of all times; which, stays.
        order = np.random.default_rng(config.seed).permutation(len(train))
        self._pairs = self.graph.space.nodes(train).reshape(-1, 2)[order]
        # Published: negatives are any nodes. Here: those that have been targets, as it is targets
        # that are ranked.
        self._candidates = np.unique(self._pairs[:, 1])
        weight = self._links.degree[self._candidates] ** 0.75
        self._chance = weight / weight.sum()
        self._neighbors = self._sample_for_all()
        return -(-len(train) // config.batch_size)

    def build_network(self) -> GraphSAGENetwork:
        layers = [self.make_layer() for _ in range(self.config.depth)]
        return GraphSAGENetwork(self.graph.space.num_nodes, self.config.width, layers)

    def loss(self, batch: int, random: np.random.Generator) -> Tensor:
        """Of pairs that met, one for every event, and of negatives; neighbors are drawn anew."""
        config = self.config
        pairs_B2 = self._pairs[batch * config.batch_size :][: config.batch_size]
        negative_BN = random.choice(
            self._candidates, size=(len(pairs_B2), config.negatives), p=self._chance
        )
        node_BC = np.concatenate([pairs_B2, negative_BN], axis=1)
        nodes, place = np.unique(node_BC, return_inverse=True)
        inputs, hops = self._links.sample_hops(nodes, self._counts, random)
        vectors = self.network(
            self._on_device(inputs),
            [(self._on_device(hop.own), self._on_device(hop.neighbor)) for hop in hops],
        )
        vector_BCD = functional.embedding(self._on_device(place.reshape(node_BC.shape)), vectors)
        product_BC = (vector_BCD[:, :1] * vector_BCD[:, 1:]).sum(2) / config.temperature
        # Published: the sum over negatives. Here: their mean. Because: the vectors of a new network
        # are much alike, and a sum first drives all of them apart, those that met as well.
        return logistic_loss(product_BC[:, 0], product_BC[:, 1:])

    def _on_device(self, array: IntArray) -> Tensor:
        return torch.from_numpy(array).to(self.config.device)

    # Vectors of all nodes are made of samples that are drawn once, so that they can be made again.

    def _sample_for_all(self) -> list[Tensor]:
        random = np.random.default_rng(self.config.seed)
        everyone = np.arange(self.graph.space.num_nodes)
        _, hops = self._links.sample_hops(everyone, self._counts, random)
        return [self._on_device(hop.neighbor) for hop in hops]

    def make_vectors(self) -> Tensor:
        everyone = torch.arange(len(self.network.node), device=self.config.device)
        vectors: Tensor = self.network(everyone, [(everyone, one) for one in self._neighbors])
        return vectors

    def state_tensors(self) -> dict[str, Tensor]:
        # Not buffers of the network: these would be averaged with its weights.
        neighbors = {f"neighbors.{hop}": one for hop, one in enumerate(self._neighbors)}
        return {**super().state_tensors(), **neighbors}

    def load_state_tensors(self, tensors: dict[str, Tensor]) -> None:
        super().load_state_tensors(tensors)
        neighbors = tensors_below(tensors, "neighbors.")
        self._neighbors = [
            neighbors[str(hop)].to(self.config.device) for hop in range(self.config.depth)
        ]


class GraphSAGEWithGCN(_GraphSAGE):
    """GraphSAGE that takes the mean of a node and its neighbors."""

    name = "graphsage-gcn"

    def make_layer(self) -> nn.Module:
        return GCNAggregator(self.config.width)


class GraphSAGEWithMean(_GraphSAGE):
    """GraphSAGE that joins a node to the mean of its neighbors."""

    name = "graphsage-mean"

    def make_layer(self) -> nn.Module:
        return MeanAggregator(self.config.width)


class GraphSAGEWithMax(_GraphSAGE):
    """GraphSAGE that joins a node to the maximum over its neighbors."""

    name = "graphsage-max"

    def make_layer(self) -> nn.Module:
        return MaxAggregator(self.config.width)


class GraphSAGEWithLSTM(_GraphSAGE):
    """GraphSAGE that joins a node to what an LSTM makes of its neighbors, in random order."""

    name = "graphsage-lstm"

    def make_layer(self) -> nn.Module:
        return LSTMAggregator(self.config.width)


class GraphSAGEWithGAT(_GraphSAGE):
    """GraphSAGE that attends to a node and its neighbors."""

    name = "graphsage-gat"
    config_type = GATConfig
    config: GATConfig

    def make_layer(self) -> nn.Module:
        return GATAggregator(self.config.width, self.config.heads)


class GraphSAGE(_GraphSAGE):
    """The best of five on valid, which it is from `fit` on.

    >>> from tclgraph.events.synthetic import SyntheticConfig, synthesize
    >>> split = synthesize(SyntheticConfig(events=300, sources=8, targets=9)).split(0.6, 0.2)
    >>> model = GraphSAGE(epochs=1, width=8).fit(split)
    >>> model.config.aggregator in model.variants, model.embed([0, 1]).shape
    (True, (2, 8))
    """

    name = "graphsage"
    config_type = BestConfig
    variants: ClassVar[dict[Aggregator, type[_GraphSAGE]]] = {
        "gcn": GraphSAGEWithGCN,
        "mean": GraphSAGEWithMean,
        "max": GraphSAGEWithMax,
        "lstm": GraphSAGEWithLSTM,
        "gat": GraphSAGEWithGAT,
    }
    config: BestConfig

    def make_layer(self) -> nn.Module:
        assert self.config.aggregator is not None, "the five are trained before"
        return self._variant(self.config.aggregator).make_layer()

    def fit(
        self,
        split: Split,
        *,
        run: str | Path | None = None,
        resume: bool = False,
        progress: ProgressCallback | None = None,
    ) -> Self:
        """Train the five, each in its own folder within the run, or the one that is asked for."""
        if self.config.aggregator is not None:
            return super().fit(split, run=run, resume=resume, progress=progress)
        metric = self.config.selection_metric
        folder = RunFolder(run) if run is not None else None
        if folder:
            settings = asdict(self.config)
            told = {"model": self.name, "settings": settings, "data": fingerprint(split)}
            folder.open(told, resume=resume)
        best = -np.inf
        with nullcontext(progress) if progress else progress_bar(always=False) as callback:
            together = _Together(callback, metric, len(self.variants)) if callback else None
            for aggregator in self.variants:
                variant = self._variant(aggregator)
                part = folder.path / aggregator if folder else None
                variant.fit(split, run=part, resume=resume, progress=together)
                report = evaluate(variant, split, part="valid", with_heuristics=False)
                figure = _higher_is_better(metric, report[metric])
                if figure > best:
                    best = figure
                    self._become(aggregator, variant, split)
                    if folder:
                        self.save(folder.path)
                        folder.write_metrics(_metrics_of(folder.path / aggregator, aggregator))
                if together:
                    together.next()
        return self

    def _variant(self, aggregator: Aggregator) -> _GraphSAGE:
        """Yet to be fitted, with those of these settings that it has."""
        kind = self.variants[aggregator]
        return kind(
            **{one.name: getattr(self.config, one.name) for one in fields(kind.config_type)}
        )

    def _become(self, aggregator: Aggregator, variant: _GraphSAGE, split: Split) -> None:
        self.config = replace(self.config, aggregator=aggregator)
        self.start(split.events)
        self.network.load_state_dict(variant.network.state_dict())
        self._neighbors = variant._neighbors
        self.observe(split.train)


class _Together:
    """Five trainings told as one, which has all their epochs."""

    def __init__(self, progress: ProgressCallback, metric: str, count: int) -> None:
        self._watch, self._metric, self._count = progress, metric, count
        self._over = 0
        self._best: float = -np.inf
        self._best_epoch: int | None = None

    def __call__(self, update: ProgressUpdate) -> None:
        epoch = self._over * update.epochs + update.epoch
        if update.is_epoch_end and update.valid is not None:
            figure = _higher_is_better(self._metric, update.valid[self._metric])
            if figure > self._best:
                self._best, self._best_epoch = figure, epoch
        epochs = self._count * update.epochs
        self._watch(replace(update, epoch=epoch, epochs=epochs, best_epoch=self._best_epoch))

    def next(self) -> None:
        self._over += 1


def _higher_is_better(metric: str, figure: float) -> float:
    return -figure if metric in LOWER_IS_BETTER else figure


def _metrics_of(folder: Path, aggregator: Aggregator) -> list[dict[str, object]]:
    """Those of one variant, as the run's own."""
    heuristic, *epochs = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [heuristic, *({**epoch, "aggregator": aggregator} for epoch in epochs)]
