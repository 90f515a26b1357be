"""Attention of nodes over their neighbors in weighted graphs, given as a list of edges.

Shapes: N nodes, R rows (a row is a node in one of several graphs), E edges from a row to a node
that it attends to, H heads, W width of a head, D = H · W.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True, slots=True)
class WeightedEdges:
    """Nodes that each row attends to. Every row has at least one edge, the one to itself."""

    row: Tensor
    neighbor: Tensor
    weight: Tensor
    node: Tensor
    """Node of each row."""

    def to(self, device: torch.device | str) -> "WeightedEdges":
        return WeightedEdges(
            self.row.to(device),
            self.neighbor.to(device),
            self.weight.to(device),
            self.node.to(device),
        )


class StructuralAttention(nn.Module):
    """Compute ELU(Σⱼ αᵢⱼ xⱼ) by heads, α = softmaxⱼ of LeakyReLU(weightᵢⱼ (a₁ · xᵢ + a₂ · xⱼ)).

    As in DySAT, the edge weight scales the logit and not the value.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.asking = nn.Parameter(torch.empty(heads, width // heads))
        self.answering = nn.Parameter(torch.empty(heads, width // heads))
        for weight in (self.asking, self.answering):
            nn.init.xavier_uniform_(weight)

    def forward(
        self,
        value_ND: Tensor,
        edges: WeightedEdges,
        *,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Return [R, D]. With a generator, dropout is applied to values and attention weights."""
        value_NHW = value_ND.view(-1, *self.asking.shape)
        asking_RH = (value_NHW * self.asking).sum(2).index_select(0, edges.node)
        answering_NH = (value_NHW * self.answering).sum(2)
        sum_EH = asking_RH.index_select(0, edges.row) + answering_NH.index_select(0, edges.neighbor)
        logit_EH = functional.leaky_relu(edges.weight[:, None] * sum_EH, 0.2)
        share_EH = softmax_by_row(logit_EH, edges.row, len(edges.node))
        if generator is not None and dropout > 0:
            share_EH = drop(share_EH, dropout, generator)
            value_NHW = drop(value_NHW, dropout, generator)
        weighted_EHW = share_EH[:, :, None] * value_NHW.index_select(0, edges.neighbor)
        sum_RD = value_ND.new_zeros(len(edges.node), value_ND.shape[1])
        return functional.elu(sum_RD.index_add(0, edges.row, weighted_EHW.flatten(1)))


def softmax_by_row(logit_EH: Tensor, row_E: Tensor, num_rows: int) -> Tensor:
    """Return the softmax of the logits over the edges of each row.

    >>> softmax_by_row(torch.zeros(3, 1), torch.tensor([0, 0, 1]), 2).ravel().tolist()
    [0.5, 0.5, 1.0]
    """
    highest_RH = logit_EH.new_full((num_rows, logit_EH.shape[1]), -torch.inf)
    index_EH = row_E[:, None].expand_as(logit_EH)
    highest_RH = highest_RH.scatter_reduce(0, index_EH, logit_EH.detach(), "amax")
    share_EH = (logit_EH - highest_RH.index_select(0, row_E)).exp()
    total_RH = torch.zeros_like(highest_RH).index_add(0, row_E, share_EH)
    return share_EH / total_RH.index_select(0, row_E)


def drop(value: Tensor, dropout: float, generator: torch.Generator) -> Tensor:
    """Apply dropout with random numbers from the given generator."""
    keep_share = 1.0 - dropout
    mask = torch.empty(value.shape).bernoulli_(keep_share, generator=generator)
    return value * (mask.to(value.device, value.dtype) / keep_share)
