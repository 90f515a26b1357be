"""GraphSAGE with a choice of five aggregators (GraphSage* of the paper).

A node's vector is computed from the node and from a sample of its neighbors, and their vectors in
turn from samples of their neighbors. The graph holds the pairs of the training events without
timestamps and without repeats. The vectors are computed once, after training.

Shapes: B events, N negatives, C = 2 + N nodes of an event (source, target and negatives), R input
nodes of the first layer, D width.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias

import numpy as np
import torch
from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor, nn
from torch.nn import functional

from tclgraph.arrays import IntArray
from tclgraph.baselines.best_variant import fit_variants
from tclgraph.baselines.frozen import FrozenModel
from tclgraph.baselines.own_target import measure_own_targets
from tclgraph.events.split import Split
from tclgraph.layers.aggregators import (
    GATAggregator,
    GCNAggregator,
    LSTMAggregator,
    MaxAggregator,
    MeanAggregator,
)
from tclgraph.layers.node_tables import NodeModule, NodeTable
from tclgraph.models.stream_state import StreamState
from tclgraph.objectives.pairwise import logistic_loss
from tclgraph.sampling.static_neighbors import StaticNeighbors
from tclgraph.training.config import TrainingConfig
from tclgraph.training.progress import ProgressCallback, progress_bar
from tclgraph.training.run_folder import RunFolder, fingerprint

Aggregator: TypeAlias = Literal["gcn", "mean", "max", "lstm", "gat"]
AGGREGATORS: tuple[Aggregator, ...] = ("gcn", "mean", "max", "lstm", "gat")
"""All aggregators, in the order in which `GraphSAGE(aggregator=None)` trains them."""

_DEFAULT_HEADS = 8


@dataclass(frozen=True, kw_only=True)
class GraphSAGEConfig(TrainingConfig):
    """Settings of GraphSAGE; the defaults follow the published code and paper, at width 64."""

    learning_rate: PositiveFloat = 5e-3
    """Learning rate of Adam."""
    max_gradient_norm: PositiveFloat | None = 5.0
    """Largest norm of the gradient; a longer gradient is scaled down to it.

    Published: every component of the gradient is clipped to ±5. Here: the norm of the whole
    gradient, as in all models. Because: with Adam the difference is small."""
    patience: PositiveInt | None = 5
    """Epochs without a better validation metric before training stops; None: never stop early."""

    aggregator: Aggregator | None = None
    """How a node combines its neighbors: `gcn` projects the mean of the node and its neighbors;
    `mean`, `max` and `lstm` join the node to the mean of its neighbors, to their maximum, or to the
    last state of an LSTM that reads them in random order; `gat` attends to the node and its
    neighbors. None: `fit` trains all five and keeps the one with the best validation metric; the
    fitted model names it here."""
    width: Annotated[int, Field(ge=2)] = 64
    """Size of a node's learned features and of the output of every layer."""
    depth: PositiveInt = 2
    """Number of layers, and so the largest distance from a node to the neighbors it depends on."""
    near_neighbors: PositiveInt = 25
    """Number of sampled neighbors of a node whose vector is computed."""
    far_neighbors: PositiveInt = 10
    """Number of sampled neighbors of a node at every further distance. The published code has the
    two numbers the other way round; this is the order of the paper's text."""
    negatives: PositiveInt = 5
    """Number of negatives of an event."""
    temperature: PositiveFloat = 0.2
    """Divisor of the dot products during training. Dot products of unit vectors are between -1 and
    1, where a sigmoid is close to one half. 1: as published."""
    heads: PositiveInt | None = None
    """Number of attention heads of the `gat` aggregator; None: 8."""

    def __post_init__(self) -> None:
        if self.aggregator not in ("gat", None):
            if self.heads is not None:
                raise ValueError(
                    f"heads={self.heads} has no effect with aggregator={self.aggregator}; "
                    "leave it out, or set aggregator=gat"
                )
        elif self.width % self.num_heads:
            raise ValueError(
                f"{self.num_heads} heads cannot split a width of {self.width} evenly; "
                "give a width that is a multiple of the number of heads"
            )

    @property
    def num_heads(self) -> int:
        """Number of attention heads of the `gat` aggregator."""
        return self.heads or _DEFAULT_HEADS


class GraphSAGENetwork(NodeModule):
    """Learned features of every node, and one aggregator per layer."""

    def __init__(self, num_nodes: int, width: int, layers: Sequence[nn.Module]) -> None:
        super().__init__()
        self.node = nn.Parameter(torch.empty(num_nodes, width))
        nn.init.xavier_uniform_(self.node)
        self.layers = nn.ModuleList(layers)

    def node_tables(self) -> list[NodeTable]:
        return [NodeTable(name="node")]

    def forward(self, node_R: Tensor, hops: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
        """Return the unit vectors of the nodes of the last hop.

        A hop gives the rows of its nodes, and of their sampled neighbors, in the layer below.
        """
        return self.vectors_from(self.node.index_select(0, node_R), hops)

    def vectors_from(self, state: Tensor, hops: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
        """Return the same from the features of the input nodes."""
        for number, (layer, (row, neighbor_row)) in enumerate(
            zip(self.layers, hops, strict=True), start=1
        ):
            state = layer(state, row, neighbor_row)
            if number < len(self.layers):
                state = torch.relu(state)
        return functional.normalize(state, dim=1)


class GraphSAGE(FrozenModel):
    """GraphSAGE: vectors from sampled neighbors in the graph of all training pairs.

    >>> from tclgraph.events.synthetic import SyntheticConfig, synthesize
    >>> split = synthesize(SyntheticConfig(events=300, sources=8, targets=9)).split(0.6, 0.2)
    >>> model = GraphSAGE(epochs=1, width=8).fit(split)
    >>> model.config.aggregator in AGGREGATORS, model.embed([0, 1]).shape
    (True, (2, 8))
    """

    name = "graphsage"
    config_type = GraphSAGEConfig
    search_space = {  # noqa: RUF012  # a ClassVar of the base
        "aggregator": AGGREGATORS,
        "learning_rate": (1e-4, 5e-4, 1e-3, 5e-3, 1e-2, 1e-1),
        "batch_size": (128, 256, 512),
    }
    config: GraphSAGEConfig
    network: GraphSAGENetwork

    # Training

    def fit(
        self,
        split: Split,
        *,
        run: str | Path | None = None,
        resume: bool = False,
        progress: ProgressCallback | None = None,
    ) -> Self:
        """Train the chosen aggregator, or all five and keep the best on the validation events.

        When all five are trained, the run folder has a sub-folder for each of them, and holds the
        model and the metrics of the best aggregator so far.
        """
        if self.config.aggregator is not None:
            return super().fit(split, run=run, resume=resume, progress=progress)
        folder = RunFolder(run) if run is not None else None
        if folder:
            settings = asdict(self.config)
            run_config = {"model": self.name, "settings": settings, "data": fingerprint(split)}
            folder.open(run_config, resume=resume)
        variants: dict[str, Callable[[], Self]] = {
            name: partial(type(self), **self._settings_with(name)) for name in AGGREGATORS
        }
        with nullcontext(progress) if progress else progress_bar(always=False) as callback:
            for name, variant in fit_variants(
                variants, split.without_test(), run=folder, resume=resume, progress=callback
            ):
                self._take_over(variant, split)
                if folder:
                    self.save(folder.path)
                    metrics = (folder.path / name / "metrics.jsonl").read_text()
                    folder.write("metrics.jsonl", metrics.rstrip())
        return self

    def _settings_with(self, aggregator: Aggregator) -> dict[str, Any]:
        """Return the settings of this model with another aggregator."""
        heads = self.config.heads if aggregator == "gat" else None
        return {**asdict(self.config), "aggregator": aggregator, "heads": heads}

    def _take_over(self, variant: Self, split: Split) -> None:
        """Become equal to a fitted variant, with all nodes of the split."""
        self.config = variant.config
        self.start(split.without_test().events, **variant.measured)
        self.network.load_state_dict(variant.network.state_dict())
        self._vectors = variant._vectors
        self.extend(StreamState.for_stream(split.events))
        self.observe(split.train)

    def prepare(self, split: Split) -> int:
        config, train = self.config, split.train
        self.start(split.events, **measure_own_targets(split.train))
        self._links = StaticNeighbors(train)
        # The graph has no timestamps, so a batch holds events from all over the training stream.
        # Which events share a batch does not change between epochs.
        order = np.random.default_rng(config.seed).permutation(len(train))
        self._pairs = self.graph.space.nodes(train).reshape(-1, 2)[order]
        # Published: any node can be a negative. Here: only targets of training events. Because:
        # targets are what the model ranks.
        self._candidates = np.unique(self._pairs[:, 1])
        weight = self._links.degree[self._candidates] ** 0.75
        self._probability = weight / weight.sum()
        self._neighbors = self._sample_for_all()
        return -(-len(train) // config.batch_size)

    def build_network(self) -> GraphSAGENetwork:
        layers = [_make_aggregator(self.config) for _ in range(self.config.depth)]
        return GraphSAGENetwork(self.graph.space.num_nodes, self.config.width, layers)

    def loss(self, batch: int, random: np.random.Generator) -> Tensor:
        """Return the logistic loss of the pairs of a batch and of their negatives.

        Every call samples new neighbors and negatives.
        """
        config = self.config
        pairs_B2 = self._pairs[batch * config.batch_size :][: config.batch_size]
        negative_BN = random.choice(
            self._candidates, size=(len(pairs_B2), config.negatives), p=self._probability
        )
        node_BC = np.concatenate([pairs_B2, negative_BN], axis=1)
        nodes, row = np.unique(node_BC, return_inverse=True)
        inputs, hops = self._links.sample_hops(nodes, self._counts, random)
        vectors = self.network(
            self._on_device(inputs),
            [(self._on_device(hop.own), self._on_device(hop.neighbor)) for hop in hops],
        )
        vector_BCD = functional.embedding(self._on_device(row.reshape(node_BC.shape)), vectors)
        product_BC = (vector_BCD[:, :1] * vector_BCD[:, 1:]).sum(2) / config.temperature
        # Published: the sum over the negatives. Here: their mean. Because: the vectors of an
        # untrained network are nearly equal, and a sum first drives all of them apart, those of
        # true pairs too.
        return logistic_loss(product_BC[:, 0], product_BC[:, 1:])

    @property
    def _counts(self) -> tuple[int, ...]:
        """Numbers of neighbors per node to sample, from the last layer to the first one."""
        config = self.config
        return (config.near_neighbors, *[config.far_neighbors] * (config.depth - 1))

    def _on_device(self, array: IntArray) -> Tensor:
        return torch.from_numpy(array).to(self.config.device)

    # Ranking

    def _sample_for_all(self) -> list[Tensor]:
        """Sample neighbors of all nodes, for every layer."""
        random = np.random.default_rng(self.config.seed)
        all_nodes = np.arange(self.graph.space.num_nodes)
        _, hops = self._links.sample_hops(all_nodes, self._counts, random)
        return [self._on_device(hop.neighbor) for hop in hops]

    def make_vectors(self) -> Tensor:
        all_nodes = torch.arange(len(self.network.node), device=self.config.device)
        hops = [(all_nodes, neighbor) for neighbor in self._neighbors]
        vectors: Tensor = self.network(all_nodes, hops)
        return vectors

    def unseen_vector(self) -> Tensor:
        """Return the vector of a node without features that is its own only neighbor."""
        feature_1D = self.network.node.new_zeros(1, self.config.width)
        row_1 = torch.zeros(1, dtype=torch.int64, device=feature_1D.device)
        hops = [(row_1, row_1.expand(1, count)) for count in self._counts[::-1]]
        return self.network.vectors_from(feature_1D, hops)[0]


def _make_aggregator(config: GraphSAGEConfig) -> nn.Module:
    match config.aggregator:
        case "gcn":
            return GCNAggregator(config.width)
        case "mean":
            return MeanAggregator(config.width)
        case "max":
            return MaxAggregator(config.width)
        case "lstm":
            return LSTMAggregator(config.width)
        case "gat":
            return GATAggregator(config.width, config.num_heads)
        case None:
            raise AssertionError("fit builds a network for one aggregator at a time")
