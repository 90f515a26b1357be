"""Temporal attention for inference: many points in time at once, with weights multiplied once.

`TemporalAttention` is for training. Here the same function is computed without gradients, and from
the *turns* of timestamps instead of intervals: the cosines and sines from which the time codes of
all intervals between two sets of timestamps follow (see `TimeEncoding.turns`). All sums over time
codes become matrix products, most of them over all rows and times together.

Shapes: R rows (nodes), B query times that all rows share, N neighbors of a row, H heads, D width of
a node, T width of a time code, E = D + T, P = 2T turns of a timestamp, F output width, G = H · F,
J = H · E, M = N · H.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from tclgraph.layers.temporal_attention import TemporalAttention, masked_softmax
from tclgraph.layers.time_encoding import TimeEncoding


@dataclass(frozen=True, slots=True)
class Past:
    """Neighbors of rows, latest first, with the times of the events."""

    neighbor: Tensor
    """Vectors of the neighbors, [R, N, D]."""
    turns: Tensor
    """Times of the events, as `TimeEncoding.turns` returns them, [R, N, P]."""
    is_real: Tensor
    """Mask of the existing neighbors, [R, N]; values at other positions are ignored."""


class FoldedAttention:
    """A `TemporalAttention` whose products of weights were computed once.

    It does not follow later changes of the weights.
    """

    def __init__(self, attention: TemporalAttention, encoding: TimeEncoding) -> None:
        width, self.heads = attention.width, attention.heads
        query_DJ, constant_J = attention.query_weights(encoding)
        self.query_DHE = torch.unflatten(query_DJ, 1, (self.heads, -1))
        self.constant_HE = torch.unflatten(constant_J, 0, (self.heads, -1))
        self.value_HEF = attention.value_weights()
        self.bias = attention.bias
        self.width = width
        # The parts of the matrices that meet neighbors and those that meet time codes.
        self.value_by_neighbor = self.value_HEF[:, :width].transpose(0, 1).flatten(1)
        self.value_by_time = self.value_HEF[:, width:].flatten(0, 1).contiguous()
        self.query_by_time = self.query_DHE[..., width:].flatten(1).contiguous()
        self.constant_by_time = self.constant_HE[:, width:].flatten()
        # They map a neighbor to its key by head, in the space of the node's own vector, and to its
        # match with the constant part of the query.
        self.key_by_neighbor = self.query_DHE[..., :width].permute(2, 1, 0).flatten(1).contiguous()
        self.constant_by_neighbor = self.constant_HE[:, :width].T.contiguous()

    def values(self, neighbor: Tensor) -> Tensor:
        """Return the values of neighbors by head, without their time codes, [..., G]."""
        return neighbor @ self.value_by_neighbor

    def at_own_times(self, own_RD: Tensor, past: Past, now_RP: Tensor) -> Tensor:
        """Return the attention output of each row at a time of its own, [R, F]."""
        query_RHE, now_RHP = self.queries(own_RD), now_RP[:, None]
        by_turn_RHP = query_RHE[..., self.width :].repeat(1, 1, 2) * now_RHP
        match_RHN = torch.bmm(query_RHE[..., : self.width], past.neighbor.transpose(1, 2))
        match_RHN.baddbmm_(by_turn_RHP, past.turns.transpose(1, 2))
        weight_RHN = masked_softmax(match_RHN, past.is_real[:, None])
        cosines, sines = (torch.bmm(weight_RHN, past.turns) * now_RHP).chunk(2, dim=2)
        mean_RHE = torch.cat([torch.bmm(weight_RHN, past.neighbor), cosines + sines], dim=2)
        attended_RF = mean_RHE.flatten(1) @ self.value_HEF.flatten(0, 1)
        return attended_RF + self.bias * past.is_real.any(dim=1)[:, None]

    def queries(self, own_RD: Tensor) -> Tensor:
        """Return the queries in the space of the keys, [R, H, E]."""
        query_RJ = own_RD @ self.query_DHE.flatten(1)
        return query_RJ.view(len(own_RD), self.heads, -1) + self.constant_HE
