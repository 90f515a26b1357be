"""DySAT: attention within snapshots of the graph, then over the snapshots of each node.

Sankar et al., "DySAT: Deep Neural Representation Learning on Dynamic Graphs via Self-Attention
Networks" (WSDM 2020). The vectors are those of the last training snapshot; they do not change after
training.

Shapes: N nodes, T snapshots, D width, H heads, W = D / H; R rows, each a node in a snapshot; B
nodes of a batch that have neighbors in a snapshot, P positives and Q negatives of each.
"""

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from pydantic import Field, NonNegativeFloat, PositiveInt
from torch import Tensor, nn

from tclgraph.arrays import IntArray
from tclgraph.baselines.frozen import FrozenModel
from tclgraph.baselines.own_target import measure_own_targets
from tclgraph.events.split import Split
from tclgraph.layers.node_tables import NodeModule, NodeTable
from tclgraph.layers.structural_attention import StructuralAttention, WeightedEdges
from tclgraph.objectives.pairwise import logistic_loss
from tclgraph.sampling.context_pairs import ContextPairs
from tclgraph.sampling.snapshots import Adjacency, snapshots
from tclgraph.training.config import TrainingConfig


@dataclass(frozen=True, kw_only=True)
class DySATConfig(TrainingConfig):
    """Settings of DySAT; defaults as published, except width, negatives and learning rate."""

    epochs: PositiveInt = 100
    """Largest number of passes over the nodes. Published: 200."""
    patience: PositiveInt | None = 10
    """Epochs without a better validation metric before training stops; None: never stop early."""
    batch_size: PositiveInt = 512
    """Number of nodes in a batch, each with positives and negatives in every snapshot."""
    learning_rate: Annotated[float, Field(gt=0)] = 5e-3
    """Learning rate of Adam. Published: 0.001. Here: larger. Because: an epoch has few steps, five
    on CollegeMsg, and at the published rate training hardly begins within a dozen epochs."""
    max_gradient_norm: Annotated[float, Field(gt=0)] | None = 1.0
    """Largest norm of the gradient; a longer gradient is scaled down to it. None: no limit."""
    width: PositiveInt = 64
    """Size of every embedding."""
    heads: PositiveInt = 16
    """Number of heads of structural and of temporal attention; the width is divided among them."""
    snapshots: PositiveInt = 10
    """Number of windows of equal duration into which the training stream is divided, T."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """Dropout of attention weights and values in structural attention."""
    positives: PositiveInt = 10
    """Number of positives of a node in a snapshot: nodes near it on random walks."""
    negatives: PositiveInt = 5
    """Number of negatives of a node in a snapshot, drawn by degree to the power of 0.75."""
    weight_penalty: NonNegativeFloat = 5e-4
    """Weight of half the squared norm of the node embeddings and structural attention weights."""

    def __post_init__(self) -> None:
        if self.width % self.heads:
            raise ValueError(
                f"{self.heads} heads cannot split a width of {self.width} evenly; "
                "give a width that is a multiple of the number of heads"
            )


class SnapshotAttention(nn.Module):
    """Attention of a node in a snapshot to the same node in this and earlier snapshots.

    Paper: logits are divided by the root of a head's width. Here: by the root of the number of
    snapshots. Because: the published code, which gave the published figures, does so.
    """

    def __init__(self, width: int, heads: int, num_snapshots: int) -> None:
        super().__init__()
        self.heads = heads
        self.position = nn.Parameter(torch.empty(num_snapshots, width))
        self.query_key_value = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(3))
        self.mix = nn.Linear(width, width)
        for name, parameter in self.named_parameters():
            if name == "mix.bias":
                nn.init.zeros_(parameter)
            else:
                nn.init.xavier_uniform_(parameter)

    def forward(self, structure_NTD: Tensor) -> Tensor:
        """Return the vectors of all nodes in all snapshots, [N, T, D]."""
        hidden_NTD = structure_NTD + self.position
        query_NHTW, key_NHTW, value_NHTW = (
            project(hidden_NTD).unflatten(2, (self.heads, -1)).transpose(1, 2)
            for project in self.query_key_value
        )
        num_snapshots = len(self.position)
        logit_NHTT = query_NHTW @ key_NHTW.transpose(2, 3) / math.sqrt(num_snapshots)
        is_later_TT = torch.ones(
            num_snapshots, num_snapshots, dtype=torch.bool, device=logit_NHTT.device
        ).triu(1)
        weight_NHTT = logit_NHTT.masked_fill(is_later_TT, -torch.inf).softmax(dim=3)
        attended_NTD = (weight_NHTT @ value_NHTW).transpose(1, 2).flatten(2)
        mixed: Tensor = torch.relu(self.mix(attended_NTD)) + attended_NTD
        return mixed


class DySATNetwork(NodeModule):
    """Learned node embeddings, a structural attention layer and a temporal attention layer."""

    def __init__(self, config: DySATConfig, num_nodes: int) -> None:
        super().__init__()
        self.dropout = config.dropout
        self.node = nn.Parameter(torch.empty(num_nodes, config.width))
        nn.init.xavier_uniform_(self.node)
        self.structural = StructuralAttention(config.width, config.heads)
        self.temporal = SnapshotAttention(config.width, config.heads, config.snapshots)

    def forward(
        self, edges: WeightedEdges, row_NT: Tensor, generator: torch.Generator | None = None
    ) -> Tensor:
        """Return the vectors of all nodes in all snapshots, [N, T, D].

        Dropout is applied only if a generator is given.
        """
        structure_RD = self.structural(self.node, edges, dropout=self.dropout, generator=generator)
        vector_NTD: Tensor = self.temporal(nn.functional.embedding(row_NT, structure_RD))
        return vector_NTD

    def node_tables(self) -> list[NodeTable]:
        """Return the node embeddings; the penalty pulls those without events to 0."""
        return [NodeTable(name="node")]

    def penalty(self) -> Tensor:
        """Return half the squared norm of the node embeddings and structural weights."""
        penalized = [self.node, *self.structural.parameters()]
        return torch.stack([parameter.square().sum() for parameter in penalized]).sum() / 2


def attended_rows(graphs: list[Adjacency]) -> tuple[WeightedEdges, Tensor]:
    """Return the edges of structural attention, and each node's row in each snapshot, [N, T].

    A node without neighbors in a snapshot attends to itself only. It has the same vector in all
    such snapshots, so they share one row, whose number is the node's id. All other rows follow.
    The weight of an edge is its entry in the adjacency matrix with ones on the diagonal, divided by
    the square roots of the two nodes' row sums.
    """
    num_nodes = len(graphs[0].start) - 1
    nodes = np.arange(num_nodes)
    row_NT = np.repeat(nodes[:, None], len(graphs), axis=1)
    rows, neighbors, weights, row_nodes = [nodes], [nodes], [np.ones(num_nodes)], [nodes]
    first = num_nodes
    for number, graph in enumerate(graphs):
        active = np.flatnonzero(graph.degree)
        row_NT[active, number] = first + np.arange(len(active))
        row = row_NT[:, number]
        root = np.sqrt(1 + np.bincount(graph.row, graph.weight, minlength=num_nodes))
        rows += [row[graph.row], row[active]]
        neighbors += [graph.neighbor, active]
        weights += [graph.weight / (root[graph.row] * root[graph.neighbor]), root[active] ** -2]
        row_nodes.append(active)
        first += len(active)
    edges = WeightedEdges(
        torch.from_numpy(np.concatenate(rows)),
        torch.from_numpy(np.concatenate(neighbors)),
        torch.from_numpy(np.concatenate(weights)).float(),
        torch.from_numpy(np.concatenate(row_nodes)),
    )
    return edges, torch.from_numpy(row_NT)


class SnapshotPairs:
    """Positives from random walks in a snapshot, and negatives drawn by their degree."""

    def __init__(self, graph: Adjacency) -> None:
        self._degree = graph.degree
        self._contexts = ContextPairs(graph)
        cumulative = np.cumsum(self._degree**0.75)
        # Divided by its last value, so that a draw below 1 never passes the last node with
        # neighbors.
        self._cumulative = cumulative / max(cumulative[-1], 1.0)

    def draw(
        self, node: IntArray, config: DySATConfig, random: np.random.Generator
    ) -> tuple[IntArray, IntArray, IntArray]:
        """Return the nodes that have neighbors in the snapshot, their positives and negatives."""
        node = node[self._degree[node] > 0]
        positive_BP = self._contexts.draw(node, config.positives, random)
        drawn_BQ = random.random((len(node), config.negatives))
        return node, positive_BP, np.searchsorted(self._cumulative, drawn_BQ, side="right")


class DySAT(FrozenModel):
    """Dynamic self-attention network (DySAT).

    >>> from tclgraph.events.synthetic import SyntheticConfig, synthesize
    >>> split = synthesize(SyntheticConfig(events=300, sources=8, targets=9)).split(0.6, 0.2)
    >>> model = DySAT(epochs=1, width=16, heads=4, snapshots=3).fit(split)
    >>> len(model.recommend(0, top=5)), model.embed([0, 1]).shape
    (5, (2, 16))
    """

    name = "dysat"
    config_type = DySATConfig
    search_space = {  # noqa: RUF012  # a ClassVar of the base
        "learning_rate": (1e-4, 5e-4, 1e-3, 5e-3, 1e-2, 1e-1),
        "batch_size": (128, 256, 512),
        "snapshots": (1, 5, 10, 15),
    }
    config: DySATConfig
    network: DySATNetwork

    def prepare(self, split: Split) -> int:
        self.start(split.events, **measure_own_targets(split.train))
        graphs = snapshots(split.train, self.config.snapshots, cumulative=False)
        edges, row_NT = attended_rows(graphs)
        self._edges, self._row_NT = edges.to(self.config.device), row_NT.to(self.config.device)
        self._pairs = [SnapshotPairs(graph) for graph in graphs]
        # Batches hold only nodes that have neighbors in some snapshot. One shuffle serves all
        # epochs, because the positives and negatives of a node differ between epochs.
        active = np.flatnonzero(sum(graph.degree for graph in graphs))
        np.random.default_rng(self.config.seed).shuffle(active)
        num_batches = max(1, -(-len(active) // self.config.batch_size))
        self._batches = np.array_split(active, num_batches)
        return num_batches

    def build_network(self) -> DySATNetwork:
        return DySATNetwork(self.config, self.graph.space.num_nodes)

    def loss(self, batch: int, random: np.random.Generator) -> Tensor:
        """Return the sum over snapshots of the logistic loss, plus the weight penalty."""
        generator = torch.Generator().manual_seed(int(random.integers(2**63)))
        vectors_NTD = self.network(self._edges, self._row_NT, generator)
        total = self.config.weight_penalty * self.network.penalty()
        for pairs, vectors_ND in zip(self._pairs, vectors_NTD.unbind(1), strict=True):
            drawn = pairs.draw(self._batches[batch], self.config, random)
            if len(drawn[0]):
                node, positive, negative = (
                    torch.from_numpy(array).to(vectors_ND.device) for array in drawn
                )
                node_BD = vectors_ND.index_select(0, node)
                match_BP, match_BQ = (
                    torch.einsum("bd,bpd->bp", node_BD, nn.functional.embedding(other, vectors_ND))
                    for other in (positive, negative)
                )
                total = total + logistic_loss(match_BP.flatten(), match_BQ)
        return total

    def make_vectors(self) -> Tensor:
        vectors_NTD: Tensor = self.network(self._edges, self._row_NT)
        return vectors_NTD[:, -1].contiguous()

    def unseen_vector(self) -> Tensor:
        """Return the vector of a node with a zero embedding and no neighbors in any snapshot."""
        config = self.config
        structure_1TD = self.network.node.new_zeros(1, config.snapshots, config.width)
        vector_1TD: Tensor = self.network.temporal(structure_1TD)
        return vector_1TD[0, -1]
