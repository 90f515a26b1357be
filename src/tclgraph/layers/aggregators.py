"""The five aggregators of GraphSAGE: they combine a node's state with those of sampled neighbors.

An aggregator receives the states of all rows of the layer below, the row of each queried node
there, and the rows of the node's neighbors; all nodes have the same number of neighbors. The first
four aggregators are those of "Inductive Representation Learning on Large Graphs", the last one is a
graph attention layer. None of them ends with an activation.

Shapes: R rows of the layer below, Q queried nodes, S neighbors of each (in `members_QS` also the
node itself), D width, E width of the aggregated neighbors, H heads, F width of a head.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional


class GCNAggregator(nn.Module):
    """Compute W · mean of the neighbors and the node itself, with equal weights."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.project = _glorot(width, width)

    def forward(self, state_RD: Tensor, own_Q: Tensor, neighbor_QS: Tensor) -> Tensor:
        members_QS = torch.cat([own_Q[:, None], neighbor_QS], dim=1)
        mean_QD = functional.embedding_bag(members_QS, state_RD, mode="mean")
        projected: Tensor = self.project(mean_QD)
        return projected


class MeanAggregator(nn.Module):
    """Compute [W_own · node ; W_neighbors · mean of the neighbors]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.halves = _Halves(width, width)

    def forward(self, state_RD: Tensor, own_Q: Tensor, neighbor_QS: Tensor) -> Tensor:
        mean_QD = functional.embedding_bag(neighbor_QS, state_RD, mode="mean")
        joined: Tensor = self.halves(state_RD.index_select(0, own_Q), mean_QD)
        return joined


class MaxAggregator(nn.Module):
    """Compute [W_own · node ; W_neighbors · max of ReLU(W · neighbor + b)], maximum by dimension.

    Paper: 512 dimensions before the maximum and halves of 128. Here: the same ratio of four to one.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.pool = nn.Linear(width, 2 * width)
        nn.init.xavier_uniform_(self.pool.weight)
        nn.init.zeros_(self.pool.bias)
        self.halves = _Halves(width, 2 * width)

    def forward(self, state_RD: Tensor, own_Q: Tensor, neighbor_QS: Tensor) -> Tensor:
        # A row that is a neighbor of several nodes is projected once.
        pooled_RE = torch.relu(self.pool(state_RD))
        highest_QE = functional.embedding_bag(neighbor_QS, pooled_RE, mode="max")
        joined: Tensor = self.halves(state_RD.index_select(0, own_Q), highest_QE)
        return joined


class LSTMAggregator(nn.Module):
    """Compute [W_own · node ; W_neighbors · final state of an LSTM over the neighbors].

    The LSTM reads the neighbors in the given order.
    Paper: 128 hidden dimensions and halves of 128. Here: the LSTM is as wide as a half, too.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.hidden = width - width // 2
        # Columns: input gate, forget gate, output gate, candidate.
        self.read = nn.Linear(width, 4 * self.hidden)
        self.recall = _glorot(self.hidden, 4 * self.hidden)
        nn.init.xavier_uniform_(self.read.weight)
        # As published, the forget gate starts open, so that little is forgotten.
        bias = torch.zeros(4, self.hidden)
        bias[1] = 1.0
        self.read.bias = nn.Parameter(bias.flatten())
        self.halves = _Halves(width, self.hidden)

    def forward(self, state_RD: Tensor, own_Q: Tensor, neighbor_QS: Tensor) -> Tensor:
        # The input projection depends on the row only, so it is computed once per row. torch's own
        # LSTM computes it once per neighbor, which takes nearly twice as long.
        read_R4E = self.read(state_RD)
        hidden_QE = cell_QE = state_RD.new_zeros(len(own_Q), self.hidden)
        for neighbor_Q in neighbor_QS.T:
            gates = torch.addmm(
                read_R4E.index_select(0, neighbor_Q), hidden_QE, self.recall.weight.T
            )
            open_gates = gates[:, : 3 * self.hidden].sigmoid()
            input_gate, forget_gate, output_gate = open_gates.chunk(3, dim=1)
            cell_QE = forget_gate * cell_QE + input_gate * gates[:, 3 * self.hidden :].tanh()
            hidden_QE = output_gate * cell_QE.tanh()
        joined: Tensor = self.halves(state_RD.index_select(0, own_Q), hidden_QE)
        return joined


class GATAggregator(nn.Module):
    """Compute Σ α_j W n_j over the neighbors n_j and the node x itself, separately for each head.

    The attention weights are α = softmax of LeakyReLU(a_own · W x + a_neighbor · W n_j).
    """

    def __init__(self, width: int, num_heads: int) -> None:
        super().__init__()
        self.project = _glorot(width, width)
        self.own = nn.Parameter(torch.empty(num_heads, width // num_heads))
        self.neighbor = nn.Parameter(torch.empty(num_heads, width // num_heads))
        nn.init.xavier_uniform_(self.own)
        nn.init.xavier_uniform_(self.neighbor)

    def forward(self, state_RD: Tensor, own_Q: Tensor, neighbor_QS: Tensor) -> Tensor:
        members_QS = torch.cat([own_Q[:, None], neighbor_QS], dim=1)
        value_RHF = self.project(state_RD).unflatten(1, self.own.shape)
        own_logit_RH = (value_RHF * self.own).sum(2)
        neighbor_logit_RH = (value_RHF * self.neighbor).sum(2)
        own_logit_QH = own_logit_RH.index_select(0, own_Q)
        logit_QSH = own_logit_QH[:, None] + _gather(neighbor_logit_RH, members_QS)
        share_QSH = functional.leaky_relu(logit_QSH, 0.2).softmax(dim=1)
        value_QSHF = _gather(value_RHF, members_QS)
        return (share_QSH[..., None] * value_QSHF).sum(1).flatten(1)


class _Halves(nn.Module):
    """Concatenate projections of the node and of its neighbors, each half of the width."""

    def __init__(self, width: int, neighbors_width: int) -> None:
        super().__init__()
        self.own = _glorot(width, width // 2)
        self.neighbors = _glorot(neighbors_width, width - width // 2)

    def forward(self, own_QD: Tensor, aggregated_QE: Tensor) -> Tensor:
        return torch.cat([self.own(own_QD), self.neighbors(aggregated_QE)], dim=1)


def _glorot(inputs: int, outputs: int) -> nn.Linear:
    linear = nn.Linear(inputs, outputs, bias=False)
    nn.init.xavier_uniform_(linear.weight)
    return linear


def _gather(rows: Tensor, index_QS: Tensor) -> Tensor:
    """Return rows by index; the gradient is much faster than that of plain indexing."""
    return rows.index_select(0, index_QS.flatten()).view(*index_QS.shape, *rows.shape[1:])
