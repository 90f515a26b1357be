"""DynGEM: an autoencoder of adjacency rows that is trained on one snapshot after the other.

Goyal et al., "DynGEM: Deep Embedding Method for Dynamic Graphs" (2018). Snapshots are cumulative:
each is all that has happened until its end. Training on one starts from the weights that the one
before has left. Vectors are the codes of the last snapshot's rows, and stay.

Shapes: N nodes, R rows that are reconstructed, M rows that are encoded (those and their neighbors),
P pairs of a row and a neighbor, F width of the last hidden layer, D width of a code, B queries, I
targets.
"""

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import torch
from pydantic import Field, NonNegativeFloat, PositiveInt
from torch import Tensor, nn

from tclgraph.arrays import FloatArray, IntArray, ScoreArray
from tclgraph.baselines.frozen import FrozenModel
from tclgraph.events.split import Split
from tclgraph.objectives.reconstruction import closeness_loss, row_loss
from tclgraph.sampling.snapshots import Adjacency, snapshots
from tclgraph.training.config import TrainingConfig


@dataclass(frozen=True, kw_only=True)
class DynGEMConfig(TrainingConfig):
    """The defaults are those of the published examples, but for 64 columns and Adam."""

    epochs: PositiveInt = 1
    """Passes over all snapshots. One pass is a whole training as published; another one begins
    with the first snapshot again, and with the weights that the last has left."""
    batch_size: PositiveInt = 512
    """Rows that are reconstructed in a batch."""
    learning_rate: Annotated[float, Field(gt=0)] = 1e-3
    """Of Adam."""
    width: PositiveInt = 64
    """Size of a code."""
    hidden_widths: tuple[PositiveInt, PositiveInt] = (500, 300)
    """Of the layers between a row and its code; the decoder has them in reverse."""
    snapshots: PositiveInt = 10
    """Windows of equal duration that the training stream is cut into."""
    first_iterations: PositiveInt = 30
    """Passes over the rows of the first snapshot that has any."""
    iterations: PositiveInt = 5
    """Passes over the rows of each later one, which begins where the one before has ended."""
    emphasis: Annotated[float, Field(ge=1)] = 5.0
    """How much more an error counts where there is an edge, β in the paper."""
    closeness: NonNegativeFloat = 1e-5
    """Weight of the squared distances between neighbors' codes, α in the paper."""
    weight_penalty: NonNegativeFloat = 1e-6
    """Of the matrices' absolute values and of their squares, ν₁ and ν₂ in the paper."""


class Autoencoder(nn.Module):
    """From rows of the adjacency matrix to codes and back, with mirrored widths.

    Paper: ReLU after every layer. Here: not after the last, which gives the rows. Because: an
    output below zero then has no gradient. As nearly everything in a row is zero, that is where
    most outputs go, those of edges too, and there they stay.
    """

    def __init__(self, num_nodes: int, hidden_widths: tuple[int, int], width: int) -> None:
        super().__init__()
        first, second = hidden_widths
        # What each neighbor adds to a row's first layer: rows are sparse, and so is the product.
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

    def encode(self, graph: Adjacency, rows: IntArray) -> Tensor:
        """Codes of these rows, [M, D]."""
        entries = graph.entries(rows)
        place = np.repeat(np.arange(len(rows)), graph.degree[rows])
        sparse_MN = torch.sparse_coo_tensor(
            torch.from_numpy(np.stack([place, graph.neighbor[entries]])),
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
        """Of all matrices, the absolute values and the squares, summed up."""
        matrices = [one for one in self.parameters() if one.dim() == 2]
        return torch.stack([one.abs().sum() + one.square().sum() for one in matrices]).sum()


def dense_rows(graph: Adjacency, rows: IntArray) -> FloatArray:
    """These rows with all their zeros."""
    dense = np.zeros((len(rows), len(graph.start) - 1))
    entries = graph.entries(rows)
    dense[np.repeat(np.arange(len(rows)), graph.degree[rows]), graph.neighbor[entries]] = (
        graph.weight[entries]
    )
    return dense


class DynGEM(FrozenModel):
    """Deep embedding of dynamic graphs.

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

    # Learning

    def prepare(self, split: Split) -> int:
        self.start(split.events)
        # Paper: entries are the weights of edges, mostly 0 or 1 in its data. Here: log(1 + number
        # of events). Because: a pair may have met a hundred times, and squares of that would leave
        # nothing else to learn.
        self._graphs = [
            replace(graph, weight=np.log1p(graph.weight))
            for graph in snapshots(split.train, self.config.snapshots, cumulative=True)
        ]
        self._last = self._graphs[-1]
        self._batches = self._in_turn()
        return len(self._batches)

    def _in_turn(self) -> list[tuple[int, IntArray]]:
        """Snapshot and rows of every batch: all iterations over one snapshot, then the next."""
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
        # A stream of self-loops has no edges; then there is nothing but the penalty to learn from.
        return batches or [(0, np.empty(0, dtype=np.int64))]

    def build_network(self) -> Autoencoder:
        return Autoencoder(self.graph.space.num_nodes, self.config.hidden_widths, self.config.width)

    def loss(self, batch: int, random: np.random.Generator) -> Tensor:
        number, rows = self._batches[batch]
        return self.loss_of(self._graphs[number], rows)

    def loss_of(self, graph: Adjacency, rows: IntArray) -> Tensor:
        """The published objective, mean over rows, as a share of what finding nothing would cost.

        Paper: as it is. Here: as a share. Because: snapshots grow, and what is a good step for the
        first would be too large for the last; and a loss tells how much is still to be found.
        """
        config, network = self.config, self.network
        total = config.weight_penalty * network.penalty()
        num_rows = np.count_nonzero(graph.degree)
        if not num_rows:
            return total
        entries = graph.entries(rows)
        encoded = np.union1d(rows, graph.neighbor[entries])
        code_MD = network.encode(graph, encoded)

        def on_device(array: IntArray) -> Tensor:
            return torch.from_numpy(array).to(code_MD.device)

        def codes_of(node: IntArray) -> Tensor:
            return code_MD.index_select(0, on_device(np.searchsorted(encoded, node)))

        true_RN = torch.from_numpy(dense_rows(graph, rows)).to(code_MD.dtype).to(code_MD.device)
        found_RN = network.output(network.decoder(codes_of(rows)))
        weight_P = torch.from_numpy(graph.weight[entries]).to(code_MD.dtype).to(code_MD.device)
        closeness = closeness_loss(
            codes_of(np.repeat(rows, graph.degree[rows])),
            codes_of(graph.neighbor[entries]),
            weight_P,
        )
        rows_and_pairs = 2 * row_loss(found_RN, true_RN, config.emphasis)
        rows_and_pairs = rows_and_pairs + config.closeness * closeness
        of_nothing = 2 * config.emphasis**2 * float(np.square(graph.weight).sum()) / num_rows
        return (rows_and_pairs / len(rows) + total) / of_nothing

    # Ranking

    def reset_state(self) -> None:
        super().reset_state()
        self._hidden: Tensor | None = None

    def make_vectors(self) -> Tensor:
        return self.network.encode(self._last, np.arange(self.graph.space.num_nodes))

    @property
    def _all_hidden(self) -> Tensor:
        """The last hidden layer of the decoder, of all nodes."""
        code_ND = self._all_vectors
        if self._hidden is None:
            self._hidden = self.network.decoder(code_ND)
        return self._hidden

    @torch.no_grad()
    def score(self, source: IntArray, time: FloatArray) -> ScoreArray:
        """What source and target have in each other's reconstructed rows, the mean of both."""
        hidden_NF = self._all_hidden
        weight_NF, bias_N = self.network.output.weight, self.network.output.bias
        asking_B = torch.tensor(source, device=hidden_NF.device)
        first = self.graph.space.first_target
        forth_BI = hidden_NF[asking_B] @ weight_NF[first:].T + bias_N[first:]
        back_BI = weight_NF[asking_B] @ hidden_NF[first:].T + bias_N[asking_B, None]
        return ((forth_BI + back_BI) / 2).cpu().numpy()

    def state_tensors(self) -> dict[str, Tensor]:
        graph = {name: torch.from_numpy(getattr(self._last, name)) for name in Adjacency.__slots__}
        return {**super().state_tensors(), "hidden": self._all_hidden, **graph}

    def load_state_tensors(self, tensors: dict[str, Tensor]) -> None:
        super().load_state_tensors(tensors)
        self._hidden = tensors["hidden"].to(self.config.device)
        self._last = Adjacency(**{name: tensors[name].numpy() for name in Adjacency.__slots__})
