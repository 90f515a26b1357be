"""DySAT: attention within snapshots of the graph, then over the snapshots of each node.

Sankar et al., "DySAT: Deep Neural Representation Learning on Dynamic Graphs via Self-Attention
Networks" (WSDM 2020). Vectors are those of the last training snapshot, and stay.

Shapes: N nodes, T snapshots, D width, H heads, W = D / H; R rows, a node in a snapshot each; B
nodes of a batch that have neighbors in a snapshot, P partners and Q negatives of each.
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
from tclgraph.events.split import Split
from tclgraph.layers.structural_attention import StructuralAttention, WeightedEdges
from tclgraph.objectives.pairwise import logistic_loss
from tclgraph.sampling.context_pairs import ContextPairs
from tclgraph.sampling.snapshots import Adjacency, snapshots
from tclgraph.training.config import TrainingConfig


@dataclass(frozen=True, kw_only=True)
class DySATConfig(TrainingConfig):
    """The defaults are those of the published code, but for width, negatives and rate."""

    epochs: PositiveInt = 100
    """Passes over the nodes, at most. Published: 200."""
    patience: PositiveInt | None = 10
    """Epochs without a better validation figure before training stops early; None: never."""
    batch_size: PositiveInt = 512
    """Nodes in a batch; each brings partners and negatives in every snapshot."""
    learning_rate: Annotated[float, Field(gt=0)] = 5e-3
    """Of Adam. Published: 0.001. Here: more. Because: an epoch has few steps, five on CollegeMsg,
    and learning hardly begins in a dozen epochs of these."""
    max_gradient_norm: Annotated[float, Field(gt=0)] | None = 1.0
    """Longer gradients are shortened to this; None leaves them as they are."""
    width: PositiveInt = 64
    """Size of every embedding."""
    heads: PositiveInt = 16
    """Of both kinds of attention; they share the width between them."""
    snapshots: PositiveInt = 10
    """Windows of equal duration that the training stream is cut into, T."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """In structural attention, of shares and values."""
    positives: PositiveInt = 10
    """Partners on random walks that a node is told from its negatives by, per snapshot."""
    negatives: PositiveInt = 5
    """Drawn for each node and snapshot, by degree to the power of 0.75."""
    weight_penalty: NonNegativeFloat = 5e-4
    """Times half the squared length of the weights of structural attention."""

    def __post_init__(self) -> None:
        if self.width % self.heads:
            raise ValueError(
                f"{self.heads} heads cannot split a width of {self.width} evenly; "
                "give a width that is a multiple of the number of heads"
            )


class SnapshotAttention(nn.Module):
    """Every node's snapshots attend to those before them and to themselves.

    Paper: logits are divided by the root of a head's width. Here: by the root of the number of
    snapshots. Because: the published code does so, and its figures came of that.
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
        share_NHTT = logit_NHTT.masked_fill(is_later_TT, -torch.inf).softmax(dim=3)
        attended_NTD = (share_NHTT @ value_NHTW).transpose(1, 2).flatten(2)
        mixed: Tensor = torch.relu(self.mix(attended_NTD)) + attended_NTD
        return mixed


class DySATNetwork(nn.Module):
    """One layer of either attention. Nodes have no features but who they are: a learned table."""

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
        """Vectors of all nodes in all snapshots, [N, T, D]; with a generator, as in training."""
        structure_RD = self.structural(self.node, edges, dropout=self.dropout, generator=generator)
        found: Tensor = self.temporal(nn.functional.embedding(row_NT, structure_RD))
        return found

    def structural_length(self) -> Tensor:
        """Half the squared length of the weights that are penalised."""
        penalised = [self.node, *self.structural.parameters()]
        return torch.stack([one.square().sum() for one in penalised]).sum() / 2


def attended_rows(graphs: list[Adjacency]) -> tuple[WeightedEdges, Tensor]:
    """What each node attends to in each snapshot, and its row there, [N, T].

    A node that meets nobody in a snapshot attends to itself alone. It then looks the same in all
    such snapshots, so that these have one row, the node's own number; rows of others come after.
    Weights are those of the adjacency matrix with ones on its diagonal, divided by the roots of
    both ends' sums.
    """
    num_nodes = len(graphs[0].start) - 1
    nodes = np.arange(num_nodes)
    row_NT = np.repeat(nodes[:, None], len(graphs), axis=1)
    rows, neighbors, weights, node_of = [nodes], [nodes], [np.ones(num_nodes)], [nodes]
    first = num_nodes
    for at, graph in enumerate(graphs):
        active = np.flatnonzero(graph.degree)
        row_NT[active, at] = first + np.arange(len(active))
        row = row_NT[:, at]
        root = np.sqrt(1 + np.bincount(graph.row, graph.weight, minlength=num_nodes))
        rows += [row[graph.row], row[active]]
        neighbors += [graph.neighbor, active]
        weights += [graph.weight / (root[graph.row] * root[graph.neighbor]), root[active] ** -2]
        node_of.append(active)
        first += len(active)
    edges = WeightedEdges(
        torch.from_numpy(np.concatenate(rows)),
        torch.from_numpy(np.concatenate(neighbors)),
        torch.from_numpy(np.concatenate(weights)).float(),
        torch.from_numpy(np.concatenate(node_of)),
    )
    return edges, torch.from_numpy(row_NT)


class SnapshotPairs:
    """What is told apart in one snapshot: partners on walks, and nodes drawn by their degree."""

    def __init__(self, graph: Adjacency) -> None:
        self._degree = graph.degree
        self._contexts = ContextPairs(graph)
        up_to = np.cumsum(self._degree**0.75)
        # By its own last, so that what is below 1 never leads beyond the last that has neighbors.
        self._up_to = up_to / max(up_to[-1], 1.0)

    def draw(
        self, node: IntArray, config: DySATConfig, random: np.random.Generator
    ) -> tuple[IntArray, IntArray, IntArray]:
        """Those of the nodes that have neighbors here, their partners and their negatives."""
        node = node[self._degree[node] > 0]
        partner_BP = self._contexts.draw(node, config.positives, random)
        drawn_BQ = random.random((len(node), config.negatives))
        return node, partner_BP, np.searchsorted(self._up_to, drawn_BQ, side="right")


class DySAT(FrozenModel):
    """Dynamic self-attention network.

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
        self.start(split.events)
        graphs = snapshots(split.train, self.config.snapshots, cumulative=False)
        edges, row_NT = attended_rows(graphs)
        self._edges, self._row_NT = edges.to(self.config.device), row_NT.to(self.config.device)
        self._pairs = [SnapshotPairs(graph) for graph in graphs]
        # Only who has neighbors can learn from them. A shuffle once for all: what is drawn for a
        # node differs from epoch to epoch anyway.
        active = np.flatnonzero(sum(graph.degree for graph in graphs))
        np.random.default_rng(self.config.seed).shuffle(active)
        num_batches = max(1, -(-len(active) // self.config.batch_size))
        self._batches = np.array_split(active, num_batches)
        return num_batches

    def build_network(self) -> DySATNetwork:
        return DySATNetwork(self.config, self.graph.space.num_nodes)

    def loss(self, batch: int, random: np.random.Generator) -> Tensor:
        generator = torch.Generator().manual_seed(int(random.integers(2**63)))
        vectors_NTD = self.network(self._edges, self._row_NT, generator)
        total = self.config.weight_penalty * self.network.structural_length()
        for pairs, vectors_ND in zip(self._pairs, vectors_NTD.unbind(1), strict=True):
            drawn = pairs.draw(self._batches[batch], self.config, random)
            if len(drawn[0]):
                node, partner, negative = (
                    torch.from_numpy(one).to(vectors_ND.device) for one in drawn
                )
                own_BD = vectors_ND.index_select(0, node)
                match_BP, match_BQ = (
                    torch.einsum("bd,bpd->bp", own_BD, nn.functional.embedding(one, vectors_ND))
                    for one in (partner, negative)
                )
                total = total + logistic_loss(match_BP.flatten(), match_BQ)
        return total

    def make_vectors(self) -> Tensor:
        vectors_NTD: Tensor = self.network(self._edges, self._row_NT)
        return vectors_NTD[:, -1].contiguous()

    def state_tensors(self) -> dict[str, Tensor]:
        edges = {name: getattr(self._edges, name) for name in WeightedEdges.__slots__}
        return {**super().state_tensors(), **edges, "row_NT": self._row_NT}

    def load_state_tensors(self, tensors: dict[str, Tensor]) -> None:
        super().load_state_tensors(tensors)
        self._edges = WeightedEdges(*(tensors[name] for name in WeightedEdges.__slots__)).to(
            self.config.device
        )
        self._row_NT = tensors["row_NT"].to(self.config.device)
