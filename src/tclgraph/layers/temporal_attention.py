"""Attention of a node at a point in time over the neighbors of its earlier events.

A key, which is also a value, is a neighbor's vector and the time code of the interval since the
event. There are many neighbors, so they are not projected. Instead the query is projected into
their space, (W_Q q) · (W_K k) = (W_Kᵀ W_Q q) · k, and the weighted mean of the values is projected
instead of each value.

Shapes: R rows (nodes), N neighbors of a row, H heads, D width of a node, T width of a time code,
E = D + T, J = H · E, F output width.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from tclgraph.layers.time_encoding import TimeEncoding

MASKED = -1e9
# Rows are processed in chunks whose intermediate arrays fit in cache.
_CHUNK_SIZE = 64


class TemporalAttention(nn.Module):
    """Multi-head attention over neighbors and their time codes; zero for a row without neighbors.

    The query is the node's own vector and the time code of an interval of 0. Only the output
    projection has a bias: a bias of the query would duplicate the time code, a bias of the keys
    would cancel in the softmax, and a bias of the values would duplicate the output bias.
    """

    def __init__(
        self, width: int, time_width: int, heads: int, *, output_width: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        full = width + time_width
        self.width, self.heads, self.dropout = width, heads, dropout
        self.query = nn.Parameter(torch.empty(full, full))
        self.key = nn.Parameter(torch.empty(full, full))
        self.value = nn.Parameter(torch.empty(full, full))
        self.output = nn.Parameter(torch.empty(full, output_width))
        self.bias = nn.Parameter(torch.zeros(output_width))
        for weight in (self.query, self.key, self.value, self.output):
            nn.init.xavier_uniform_(weight)

    def forward(
        self,
        own_RD: Tensor,
        neighbor_RND: Tensor,
        interval_RN: Tensor,
        is_real_RN: Tensor,
        encoding: TimeEncoding,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Return the attention output of each row at one point in time, [R, F].

        With a generator, dropout is applied to the attention weights.
        """
        mask_RHN = None
        if generator is not None and self.dropout:
            rows, count = is_real_RN.shape
            mask_RHN = dropout_mask((rows, self.heads, count), self.dropout, generator).to(own_RD)
        query_DJ, constant_J = self.query_weights(encoding)
        mean_RHE: Tensor = _Means.apply(  # type: ignore[no-untyped-call]
            torch.unflatten(own_RD @ query_DJ + constant_J, 1, (self.heads, -1)),
            neighbor_RND,
            encoding.frequency,
            encoding.phase,
            interval_RN,
            is_real_RN,
            mask_RHN,
        )
        attended_RF = mean_RHE.flatten(1) @ self.value_weights().flatten(0, 1)
        return attended_RF + self.bias * is_real_RN.any(dim=1)[:, None]

    def query_weights(self, encoding: TimeEncoding) -> tuple[Tensor, Tensor]:
        """Return the map from a node's vector to its queries, [D, H · E], and their constant part.

        The queries are in the space of the keys and scaled. The constant part, [H · E], is that of
        the time code of an interval of 0.
        """
        query_HWE, key_HWE = (
            torch.unflatten(weight, 0, (self.heads, -1)) for weight in (self.query, self.key)
        )
        product_HEE = query_HWE.transpose(1, 2) @ key_HWE * query_HWE.shape[1] ** -0.5
        product_EJ = product_HEE.transpose(0, 1).flatten(1)
        return product_EJ[: self.width], encoding.of_now @ product_EJ[self.width :]

    def value_weights(self) -> Tensor:
        """Return the projection from the mean key of every head to the output, [H, E, F]."""
        value_HWE, output_HWF = (
            torch.unflatten(weight, 0, (self.heads, -1)) for weight in (self.value, self.output)
        )
        return value_HWE.transpose(1, 2) @ output_HWF


def dropout_mask(shape: tuple[int, ...], dropout: float, generator: torch.Generator) -> Tensor:
    """Return a dropout mask: 0 or 1 / (1 - dropout), drawn from the generator."""
    return torch.empty(shape).bernoulli_(1 - dropout, generator=generator) / (1 - dropout)


def masked_softmax(match: Tensor, is_real: Tensor) -> Tensor:
    """Return the softmax over existing neighbors along the last axis; zeros if there are none."""
    return match.masked_fill(~is_real, MASKED).softmax(dim=-1) * is_real


class _Means(torch.autograd.Function):
    """Compute the mean of neighbors and time codes, weighted by softmax attention, [R, H, E].

    The time codes are computed for a chunk of rows at a time, and again in the backward pass. For a
    whole batch they would take hundreds of megabytes, and the time would be spent on moving them.
    """

    @staticmethod
    def forward(
        ctx: Any,
        query_RHE: Tensor,
        neighbor_RND: Tensor,
        frequency_T: Tensor,
        phase_T: Tensor,
        interval_RN: Tensor,
        is_real_RN: Tensor,
        mask_RHN: Tensor | None,
    ) -> Tensor:
        mean_RHE = torch.zeros_like(query_RHE)
        weight_RHN = query_RHE.new_zeros(*query_RHE.shape[:2], is_real_RN.shape[1])
        for rows, count in _by_count(is_real_RN):
            angle = interval_RN[:, :count][rows, :, None] * frequency_T + phase_T
            token = torch.cat([neighbor_RND[:, :count][rows], angle.cos()], dim=2)
            match = torch.bmm(query_RHE[rows], token.transpose(1, 2))
            weight = masked_softmax(match, is_real_RN[:, :count][rows, None])
            weight_RHN[:, :, :count][rows] = weight
            if mask_RHN is not None:
                weight = weight * mask_RHN[:, :, :count][rows]
            mean_RHE[rows] = torch.bmm(weight, token)
        ctx.save_for_backward(
            query_RHE, neighbor_RND, frequency_T, phase_T, interval_RN, is_real_RN, weight_RHN
        )
        ctx.mask = mask_RHN
        return mean_RHE

    @staticmethod
    def backward(ctx: Any, gradient_RHE: Tensor) -> Any:
        query, neighbor, frequency_T, phase_T, interval, is_real, all_weights = ctx.saved_tensors
        query_gradient, neighbor_gradient = torch.zeros_like(query), torch.zeros_like(neighbor)
        frequency_gradient, phase_gradient = (
            torch.zeros_like(frequency_T),
            torch.zeros_like(phase_T),
        )
        width = neighbor.shape[2]
        for rows, count in _by_count(is_real):
            interval_rows = interval[:, :count][rows]
            angle = interval_rows[..., None] * frequency_T + phase_T
            token = torch.cat([neighbor[:, :count][rows], angle.cos()], dim=2)
            weight, gradient = all_weights[:, :, :count][rows], gradient_RHE[rows]
            dropped, weight_gradient = weight, torch.bmm(gradient, token.transpose(1, 2))
            if ctx.mask is not None:
                mask = ctx.mask[:, :, :count][rows]
                dropped, weight_gradient = weight * mask, weight_gradient * mask
            mean_gradient = (weight * weight_gradient).sum(dim=2, keepdim=True)
            match_gradient = weight * (weight_gradient - mean_gradient)
            query_gradient[rows] = torch.bmm(match_gradient, token)
            # A token is both a value and a key, so its gradient has two parts.
            token_gradient = torch.bmm(
                torch.cat([dropped, match_gradient], dim=1).transpose(1, 2),
                torch.cat([gradient, query[rows]], dim=1),
            )
            neighbor_gradient[:, :count][rows] = token_gradient[..., :width]
            angle_gradient = (token_gradient[..., width:] * angle.sin()).flatten(0, 1)
            phase_gradient -= angle_gradient.sum(dim=0)
            frequency_gradient -= interval_rows.flatten() @ angle_gradient
        return (
            query_gradient,
            neighbor_gradient,
            frequency_gradient,
            phase_gradient,
            None,
            None,
            None,
        )


def _by_count(is_real_RN: Tensor) -> Iterator[tuple[Tensor, int]]:
    """Yield chunks of rows with similar numbers of neighbors, and the largest number in each."""
    count_R = is_real_RN.sum(dim=1)
    chunks = torch.split(count_R.argsort(stable=True), _CHUNK_SIZE)
    most = count_R[torch.stack([chunk[-1] for chunk in chunks])].tolist() if len(count_R) else []
    for rows, count in zip(chunks, most, strict=False):
        if count:
            yield rows, count
