"""What a node makes of itself and of a few neighbors: the five aggregators of GraphSAGE.

Each is called with the states of all rows below it, with the row that every node has there, and
with the rows of its neighbors, of which all nodes have equally many. The first four are those of
"Inductive Representation Learning on Large Graphs", the last is a graph attention layer. None has
an activation of its own at the end.

Shapes: R rows below, Q nodes asked for, S neighbors of each, D width, E what is known of neighbors
together, H heads, F width of a head.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional


class GCNAggregator(nn.Module):
    """W · mean of the neighbors and the node itself, all alike."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.project = _glorot(width, width)

    def forward(self, state_RD: Tensor, own_Q: Tensor, neighbor_QS: Tensor) -> Tensor:
        everyone = torch.cat([own_Q[:, None], neighbor_QS], dim=1)
        mean_QD = functional.embedding_bag(everyone, state_RD, mode="mean")
        projected: Tensor = self.project(mean_QD)
        return projected


class MeanAggregator(nn.Module):
    """[W_own · the node ; W_neighbors · mean of the neighbors]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.halves = _Halves(width, width)

    def forward(self, state_RD: Tensor, own_Q: Tensor, neighbor_QS: Tensor) -> Tensor:
        mean_QD = functional.embedding_bag(neighbor_QS, state_RD, mode="mean")
        joined: Tensor = self.halves(state_RD.index_select(0, own_Q), mean_QD)
        return joined


class MaxAggregator(nn.Module):
    """The same with the largest value, in each dimension, of ReLU(W · neighbor + b).

    Published: 512 dimensions beside halves of 128. Here: four to one as well.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.pool = nn.Linear(width, 2 * width)
        nn.init.xavier_uniform_(self.pool.weight)
        nn.init.zeros_(self.pool.bias)
        self.halves = _Halves(width, 2 * width)

    def forward(self, state_RD: Tensor, own_Q: Tensor, neighbor_QS: Tensor) -> Tensor:
        # Of every row once, in however many places it is a neighbor.
        pooled_RE = torch.relu(self.pool(state_RD))
        highest_QE = functional.embedding_bag(neighbor_QS, pooled_RE, mode="max")
        joined: Tensor = self.halves(state_RD.index_select(0, own_Q), highest_QE)
        return joined


class LSTMAggregator(nn.Module):
    """The same with where an LSTM ends that reads the neighbors in the order given.

    Published: 128 dimensions beside halves of 128. Here: as wide as a half as well.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.hidden = width - width // 2
        # Input, forget and output gate, then the candidate.
        self.read = nn.Linear(width, 4 * self.hidden)
        self.recall = _glorot(self.hidden, 4 * self.hidden)
        nn.init.xavier_uniform_(self.read.weight)
        # A gate that is open at first forgets little, as published.
        bias = torch.zeros(4, self.hidden)
        bias[1] = 1.0
        self.read.bias = nn.Parameter(bias.flatten())
        self.halves = _Halves(width, self.hidden)

    def forward(self, state_RD: Tensor, own_Q: Tensor, neighbor_QS: Tensor) -> Tensor:
        # What is read depends on the row alone: made once, not once for every place. torch's own
        # LSTM makes it for every place, and takes nearly twice as long.
        read_R4E = self.read(state_RD)
        hidden_QE = cell_QE = state_RD.new_zeros(len(own_Q), self.hidden)
        for neighbor_Q in neighbor_QS.T:
            gates = torch.addmm(
                read_R4E.index_select(0, neighbor_Q), hidden_QE, self.recall.weight.T
            )
            opened = gates[:, : 3 * self.hidden].sigmoid()
            let_in, kept, let_out = opened.chunk(3, dim=1)
            cell_QE = kept * cell_QE + let_in * gates[:, 3 * self.hidden :].tanh()
            hidden_QE = let_out * cell_QE.tanh()
        joined: Tensor = self.halves(state_RD.index_select(0, own_Q), hidden_QE)
        return joined


class GATAggregator(nn.Module):
    """Σ α_j W n_j over the neighbors and the node itself, by how much attention each is given.

    α = softmax of LeakyReLU(a_own · W x + a_neighbor · W n_j), for each head on its own.
    """

    def __init__(self, width: int, num_heads: int) -> None:
        super().__init__()
        self.project = _glorot(width, width)
        self.own = nn.Parameter(torch.empty(num_heads, width // num_heads))
        self.neighbor = nn.Parameter(torch.empty(num_heads, width // num_heads))
        nn.init.xavier_uniform_(self.own)
        nn.init.xavier_uniform_(self.neighbor)

    def forward(self, state_RD: Tensor, own_Q: Tensor, neighbor_QS: Tensor) -> Tensor:
        everyone = torch.cat([own_Q[:, None], neighbor_QS], dim=1)
        value_RHF = self.project(state_RD).unflatten(1, self.own.shape)
        asking_RH = (value_RHF * self.own).sum(2)
        asked_RH = (value_RHF * self.neighbor).sum(2)
        match = asking_RH.index_select(0, own_Q)[:, None] + _gather(asked_RH, everyone)
        share_QSH = functional.leaky_relu(match, 0.2).softmax(dim=1)
        value_QSHF = _gather(value_RHF, everyone)
        return (share_QSH[..., None] * value_QSHF).sum(1).flatten(1)


class _Halves(nn.Module):
    """Half of the width from the node, half from its neighbors."""

    def __init__(self, width: int, neighbors_width: int) -> None:
        super().__init__()
        self.own = _glorot(width, width // 2)
        self.neighbors = _glorot(neighbors_width, width - width // 2)

    def forward(self, own_QD: Tensor, found_QE: Tensor) -> Tensor:
        return torch.cat([self.own(own_QD), self.neighbors(found_QE)], dim=1)


def _glorot(inputs: int, outputs: int) -> nn.Linear:
    linear = nn.Linear(inputs, outputs, bias=False)
    nn.init.xavier_uniform_(linear.weight)
    return linear


def _gather(rows: Tensor, place_QS: Tensor) -> Tensor:
    """Rows at these places; its gradient is much quicker than that of plain indexing."""
    return rows.index_select(0, place_QS.flatten()).view(*place_QS.shape, *rows.shape[1:])
