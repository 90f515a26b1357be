"""DynGEM: an autoencoder of adjacency rows, trained on one snapshot after another.

Goyal et al., "DynGEM: Deep Embedding Method for Dynamic Graphs" (2018). Snapshots are cumulative:
each one holds all events until its end. Training on a snapshot starts from the weights after the
previous snapshot. The vectors are the codes of the rows of the last snapshot; they do not change
after training.

Shapes: N nodes, R rows to reconstruct, M rows to encode (those and their neighbors), P pairs of a
row and a neighbor, F width of the decoder's last hidden layer, D width of a code, B queries, T
targets.
"""

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
import torch
from pydantic import Field, NonNegativeFloat, PositiveInt
from torch import Tensor, nn

from tclgraph.arrays import FloatArray, IntArray, ScoreArray
from tclgraph.baselines.frozen import FrozenModel
from tclgraph.baselines.own_target import measure_own_targets
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream
from tclgraph.layers.node_tables import NodeModule, NodeTable
from tclgraph.models.stream_state import StreamState
from tclgraph.objectives.reconstruction import closeness_loss, row_loss
from tclgraph.sampling.snapshots import Adjacency, snapshots
from tclgraph.training.config import TrainingConfig


@dataclass(frozen=True, kw_only=True)
class DynGEMConfig(TrainingConfig):
    """Settings of DynGEM; defaults as in the published examples, except for width and Adam."""

    epochs: PositiveInt = 1
    """Passes over all snapshots. One pass is a complete training as published; a second pass begins
    with the first snapshot again, from the weights after the last one."""
    batch_size: PositiveInt = 512
    """Number of rows that a batch reconstructs."""
    learning_rate: Annotated[float, Field(gt=0)] = 1e-3
    """Learning rate of Adam."""
    width: PositiveInt = 64
    """Size of a code."""
    hidden_widths: tuple[PositiveInt, PositiveInt] = (500, 300)
    """Widths of the encoder's hidden layers; the decoder has them in reverse order."""
    snapshots: PositiveInt = 10
    """Number of windows of equal duration into which the training stream is divided."""
    first_iterations: PositiveInt = 30
    """Passes over the rows of the first snapshot that has any edge."""
    iterations: PositiveInt = 5
    """Passes over the rows of every later snapshot."""
    emphasis: Annotated[float, Field(ge=1)] = 5.0
    """Factor of the reconstruction error of an edge, β in the paper."""
    closeness: NonNegativeFloat = 1e-5
    """Weight of the squared distances between the codes of neighbors, α in the paper."""
    weight_penalty: NonNegativeFloat = 1e-6
    """Weight of the L1 and L2 penalties on all matrices, ν₁ and ν₂ in the paper."""


class Autoencoder(NodeModule):
    """Encodes rows of the adjacency matrix and reconstructs them, with mirrored layer widths.

    Paper: ReLU after every layer. Here: not after the last layer, which gives the rows. Because: an
    output below zero would have no gradient. Nearly all entries of a row are zero, so most outputs
    would become negative, those of edges too, and stay negative.
    """

    def __init__(self, num_nodes: int, hidden_widths: tuple[int, int], width: int) -> None:
        super().__init__()
        first, second = hidden_widths
        # The first layer's weights, one row per neighbor, for a product with sparse rows.
        self.neighbor = nn.Parameter(torch.empty(num_nodes, first))
        self.neighbor_bias = nn.Parameter(torch.zeros(first))
        self.encoder = nn.Sequential(
            nn.ReLU(), nn.Linear(first, second), nn.ReLU(), nn.Linear(second, width), nn.ReLU()
        )
        self.decoder = nn.Sequential(
            nn.Linear(width, second), nn.ReLU(), nn.Linear(second, first), nn.ReLU()
        )
        self.output = nn.Linear(first, num_nodes)
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.xavier_uniform_(parameter)
            else:
                nn.init.zeros_(parameter)

    def node_tables(self) -> list[NodeTable]:
        """Return all tables; a node that training did not know is in no reconstructed edge."""
        return [NodeTable(name=name) for name in ("neighbor", "output.weight", "output.bias")]

    def encode(self, graph: Adjacency, rows: IntArray) -> Tensor:
        """Return the codes of these rows, [M, D]."""
        entries = graph.entries(rows)
        row_index = np.repeat(np.arange(len(rows)), graph.degree[rows])
        sparse_MN = torch.sparse_coo_tensor(
            torch.from_numpy(np.stack([row_index, graph.neighbor[entries]])),
            torch.from_numpy(graph.weight[entries]),
            (len(rows), len(self.neighbor)),
            is_coalesced=True,
            check_invariants=False,
        ).to(self.neighbor.device, self.neighbor.dtype)
        code_MD: Tensor = self.encoder(
            torch.sparse.mm(sparse_MN, self.neighbor) + self.neighbor_bias
        )
        return code_MD

    def penalty(self) -> Tensor:
        """Return the sum of the absolute values and squares of all matrices."""
        matrices = [parameter for parameter in self.parameters() if parameter.dim() == 2]
        return torch.stack(
            [matrix.abs().sum() + matrix.square().sum() for matrix in matrices]
        ).sum()


def dense_rows(graph: Adjacency, rows: IntArray) -> FloatArray:
    """Return rows of the adjacency matrix as a dense array."""
    dense = np.zeros((len(rows), len(graph.start) - 1))
    entries = graph.entries(rows)
    dense[np.repeat(np.arange(len(rows)), graph.degree[rows]), graph.neighbor[entries]] = (
        graph.weight[entries]
    )
    return dense


class DynGEM(FrozenModel):
    """Deep embedding of dynamic graphs (DynGEM).

    >>> from tclgraph.events.synthetic import SyntheticConfig, synthesize
    >>> split = synthesize(SyntheticConfig(events=300, sources=8, targets=9)).split(0.6, 0.2)
    >>> model = DynGEM(width=4, hidden_widths=(16, 8), snapshots=2).fit(split)
    >>> len(model.recommend(0, top=5)), model.embed([0, 1]).shape
    (5, (2, 4))
    """

    name = "dyngem"
    config_type = DynGEMConfig
    search_space = {  # noqa: RUF012  # a ClassVar of the base
        "learning_rate": (1e-4, 5e-4, 1e-3, 5e-3, 1e-2, 1e-1),
        "batch_size": (128, 256, 512),
        "snapshots": (1, 5, 10, 15),
    }
    in_order = True
    config: DynGEMConfig
    network: Autoencoder
    _hidden: Tensor | None = None

    # Training

    def prepare(self, split: Split) -> int:
        self.start(split.events, **measure_own_targets(split.train))
        # Paper: entries are the weights of edges, mostly 0 or 1 in its data. Here: log(1 + number
        # of events). Because: a pair may have a hundred events, and the square of that would
        # dominate the loss.
        self._graphs = [
            replace(graph, weight=np.log1p(graph.weight))
            for graph in snapshots(split.train, self.config.snapshots, cumulative=True)
        ]
        self._batches = self._make_batches()
        return len(self._batches)

    def _make_batches(self) -> list[tuple[int, IntArray]]:
        """Return the snapshot and rows of every batch: all iterations of a snapshot, then the next.

        Every iteration has the rows in a new random order.
        """
        random = np.random.default_rng(self.config.seed)
        batches: list[tuple[int, IntArray]] = []
        for number, graph in enumerate(self._graphs):
            rows = np.flatnonzero(graph.degree)
            num_parts = -(-len(rows) // self.config.batch_size)
            config = self.config
            for _ in range(config.iterations if batches else config.first_iterations):
                if num_parts:
                    parts = np.array_split(random.permutation(rows), num_parts)
                    batches += [(number, part) for part in parts]
        # A stream of self-loops has no edges; its only batch has no rows, just the weight penalty.
        return batches or [(0, np.empty(0, dtype=np.int64))]

    def build_network(self) -> Autoencoder:
        return Autoencoder(self.graph.space.num_nodes, self.config.hidden_widths, self.config.width)

    def loss(self, batch: int, random: np.random.Generator) -> Tensor:
        number, rows = self._batches[batch]
        return self.snapshot_loss(self._graphs[number], rows)

    def snapshot_loss(self, graph: Adjacency, rows: IntArray) -> Tensor:
        """Return the published objective, mean over rows, relative to the loss of all-zero outputs.

        Paper: the absolute objective. Here: a share of the loss that all-zero reconstructions have.
        Because: snapshots grow, and a learning rate that suits the first would be too large for the
        last; also, the loss then shows which share of the edges is not yet reconstructed.
        """
        config, network = self.config, self.network
        penalty = config.weight_penalty * network.penalty()
        num_rows = np.count_nonzero(graph.degree)
        if not num_rows:
            return penalty
        entries = graph.entries(rows)
        encoded = np.union1d(rows, graph.neighbor[entries])
        code_MD = network.encode(graph, encoded)

        def on_device(array: IntArray) -> Tensor:
            return torch.from_numpy(array).to(code_MD.device)

        def codes_of(node: IntArray) -> Tensor:
            return code_MD.index_select(0, on_device(np.searchsorted(encoded, node)))

        true_RN = torch.from_numpy(dense_rows(graph, rows)).to(code_MD.dtype).to(code_MD.device)
        reconstructed_RN = network.output(network.decoder(codes_of(rows)))
        weight_P = torch.from_numpy(graph.weight[entries]).to(code_MD.dtype).to(code_MD.device)
        closeness = closeness_loss(
            codes_of(np.repeat(rows, graph.degree[rows])),
            codes_of(graph.neighbor[entries]),
            weight_P,
        )
        objective = 2 * row_loss(reconstructed_RN, true_RN, config.emphasis)
        objective = objective + config.closeness * closeness
        loss_of_zeros = 2 * config.emphasis**2 * float(np.square(graph.weight).sum()) / num_rows
        return (objective / len(rows) + penalty) / loss_of_zeros

    # Ranking

    def start(self, events: EventStream, **measured: Any) -> None:
        self._hidden = None
        super().start(events, **measured)

    def extend(self, state: StreamState) -> None:
        super().extend(state)
        self._hidden = None

    def make_vectors(self) -> Tensor:
        return self.network.encode(self._graphs[-1], np.arange(self.graph.space.num_nodes))

    def unseen_vector(self) -> Tensor:
        """Return the code of an empty row."""
        code_D: Tensor = self.network.encoder(self.network.neighbor_bias)
        return code_D

    @property
    def _all_hidden(self) -> Tensor:
        """Last hidden layer of the decoder for all nodes, computed at the first use."""
        code_ND = self._all_vectors
        if self._hidden is None:
            self._hidden = self.network.decoder(code_ND)
        return self._hidden

    @torch.no_grad()
    def score(self, source: IntArray, time: FloatArray) -> ScoreArray:
        """Return the mean of two reconstructed entries: in the source's and target's row."""
        hidden_NF = self._all_hidden
        weight_NF, bias_N = self.network.output.weight, self.network.output.bias
        query_B = torch.tensor(source, device=hidden_NF.device)
        first = self.graph.space.first_target
        source_row_BT = hidden_NF[query_B] @ weight_NF[first:].T + bias_N[first:]
        target_row_BT = weight_NF[query_B] @ hidden_NF[first:].T + bias_N[query_B, None]
        return ((source_row_BT + target_row_BT) / 2).cpu().numpy()

    def state_tensors(self) -> dict[str, Tensor]:
        return {**super().state_tensors(), "hidden": self._all_hidden}

    def load_state_tensors(self, tensors: dict[str, Tensor]) -> None:
        super().load_state_tensors(tensors)
        self._hidden = tensors["hidden"].to(self.config.device, copy=True)
