"""Attention of a node at a update over the neighbours that it met before.

A key, and a value, is a neighbour's vector and the code of how long ago it was met. As there are
many neighbours, they are never projected: the query is brought to where they are, (W_Q q) · (W_K k)
= (W_Kᵀ W_Q q) · k, and the values' mean is projected instead of every value.

Shapes: R rows (nodes), B moments at which each is asked for, N neighbours of a row, H heads, D
width of a node, T width of a time code, E = D + T, P = 2T (see `TimeEncoding.turns`), F output.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from tclgraph.layers.time_encoding import TimeEncoding

_NEVER = -1e9
# Rows at a time: all that is made of the neighbours of so many stays near the processor.
_ROWS_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Past:
    """Neighbours of rows, latest first, and when they were met, as `TimeEncoding.turns`."""

    neighbor: Tensor
    """[R, N, D]."""
    turns: Tensor
    """[R, N, P]."""
    is_real: Tensor
    """[R, N]; there may be fewer than N."""


class TemporalAttention(nn.Module):
    """Multi-head attention over neighbours and their time codes; zero for who has none.

    A node asks with its own vector and the code of now. Projections have no bias but the last: the
    query's would do what the code of now does; the keys' would cancel; the values' would be the
    last one's.
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
        """What rows make of their neighbours, each at one update, [R, output width].

        With a generator weights are dropped out.
        """
        kept_RHN = None
        if generator is not None and self.dropout:
            rows, count = is_real_RN.shape
            kept_RHN = kept((rows, self.heads, count), self.dropout, generator).to(own_RD)
        mean_RHE: Tensor = _Means.apply(  # type: ignore[no-untyped-call]
            self._query(own_RD, encoding),
            neighbor_RND,
            encoding.frequency,
            encoding.phase,
            interval_RN,
            is_real_RN,
            kept_RHN,
        )
        attended_RF = mean_RHE.flatten(1) @ self._value().flatten(0, 1)
        return attended_RF + self.bias * is_real_RN.any(dim=1)[:, None]

    def at_moments(
        self, own_RBD: Tensor, past: Past, now: Tensor, encoding: TimeEncoding
    ) -> Tensor:
        """The same at many moments, [R, B, output width], not to be learned by.

        `now` are the moments' turns, [B, P] or [R, B, P]. `own_RBD` may have one update only, if it
        is the same at all.
        """
        query_RBHE = self._query(own_RBD, encoding)
        by_neighbor, by_time = query_RBHE[..., : self.width], query_RBHE[..., self.width :]
        cosine, sine = now[..., None, :].chunk(2, dim=-1)
        by_turn_RBHP = torch.cat([by_time * cosine, by_time * sine], dim=3)
        match_RBHN = _product(by_neighbor, past.neighbor.transpose(1, 2)) + _product(
            by_turn_RBHP, past.turns.transpose(1, 2)
        )
        weight_RBHN = _softmax(match_RBHN, past.is_real[:, None, None])
        cosines_RBHT, sines_RBHT = _product(weight_RBHN, past.turns).chunk(2, dim=3)
        code_RBHT = (cosines_RBHT * cosine).addcmul_(sines_RBHT, sine)
        value_HEF = self._value()
        attended_RBF = code_RBHT.flatten(2) @ value_HEF[:, self.width :].flatten(0, 1)
        attended_RBF += self._mean_values(weight_RBHN, past.neighbor, value_HEF[:, : self.width])
        return attended_RBF + self.bias * past.is_real.any(dim=1)[:, None, None]

    def _mean_values(self, weight_RBHN: Tensor, neighbor_RND: Tensor, value_HDF: Tensor) -> Tensor:
        if weight_RBHN.shape[1] <= weight_RBHN.shape[3]:
            return _product(weight_RBHN, neighbor_RND).flatten(2) @ value_HDF.flatten(0, 1)
        # There are fewer neighbours than means of them: these are projected after all.
        value_RNG = neighbor_RND @ value_HDF.transpose(0, 1).flatten(1)
        value_RGF = value_RNG.view(len(neighbor_RND), -1, value_HDF.shape[2])
        return torch.bmm(weight_RBHN.transpose(2, 3).flatten(2), value_RGF)

    def _query(self, own: Tensor, encoding: TimeEncoding) -> Tensor:
        """By head, where neighbours are, and scaled by the root of a head's width: [..., H, E]."""
        query_HWE, key_HWE = (
            torch.unflatten(one, 0, (self.heads, -1)) for one in (self.query, self.key)
        )
        both_HEE = query_HWE.transpose(1, 2) @ key_HWE * query_HWE.shape[1] ** -0.5
        both_EHE = both_HEE.transpose(0, 1).flatten(1)
        asking = own @ both_EHE[: self.width] + encoding.of_now @ both_EHE[self.width :]
        return torch.unflatten(asking, -1, (self.heads, -1))

    def _value(self) -> Tensor:
        """From every head's mean neighbour and code to the output, [H, E, F]."""
        value_HWE, output_HWF = (
            torch.unflatten(one, 0, (self.heads, -1)) for one in (self.value, self.output)
        )
        return value_HWE.transpose(1, 2) @ output_HWF


def kept(shape: tuple[int, ...], dropout: float, generator: torch.Generator) -> Tensor:
    """What to multiply with to drop out a share, and to make up for it in the rest."""
    return torch.empty(shape).bernoulli_(1 - dropout, generator=generator) / (1 - dropout)


def _softmax(match: Tensor, is_real: Tensor) -> Tensor:
    """Over real neighbours along the last axis; zero for who has none."""
    return match.masked_fill(~is_real, _NEVER).softmax(dim=-1) * is_real


def _product(left_RBHK: Tensor, right_RKM: Tensor) -> Tensor:
    """Every row's own product of matrices, [R, B, H, M]."""
    rows, moments, heads, inner = left_RBHK.shape
    product = torch.bmm(left_RBHK.reshape(rows, moments * heads, inner), right_RKM)
    return product.view(rows, moments, heads, right_RKM.shape[2])


class _Means(torch.autograd.Function):
    """Mean neighbours and codes, by softmax of their products with queries, [R, H, E].

    Codes are made for a few rows at a time, and again on the way back. For a whole batch they would
    be hundreds of megabytes, and moving them would be all the work.
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
        kept_RHN: Tensor | None,
    ) -> Tensor:
        mean_RHE = torch.zeros_like(query_RHE)
        weight_RHN = query_RHE.new_zeros(*query_RHE.shape[:2], is_real_RN.shape[1])
        for rows, count in _by_count(is_real_RN):
            angle = interval_RN[:, :count][rows, :, None] * frequency_T + phase_T
            token = torch.cat([neighbor_RND[:, :count][rows], angle.cos()], dim=2)
            match = torch.bmm(query_RHE[rows], token.transpose(1, 2))
            weight = _softmax(match, is_real_RN[:, :count][rows, None])
            weight_RHN[:, :, :count][rows] = weight
            if kept_RHN is not None:
                weight = weight * kept_RHN[:, :, :count][rows]
            mean_RHE[rows] = torch.bmm(weight, token)
        ctx.save_for_backward(
            query_RHE, neighbor_RND, frequency_T, phase_T, interval_RN, is_real_RN, weight_RHN
        )
        ctx.kept = kept_RHN
        return mean_RHE

    @staticmethod
    def backward(ctx: Any, slope_RHE: Tensor) -> Any:
        query, neighbor, frequency_T, phase_T, interval, is_real, all_weights = ctx.saved_tensors
        for_query, for_neighbor = torch.zeros_like(query), torch.zeros_like(neighbor)
        for_frequency, for_phase = torch.zeros_like(frequency_T), torch.zeros_like(phase_T)
        width = neighbor.shape[2]
        for rows, count in _by_count(is_real):
            interval_rows = interval[:, :count][rows]
            angle = interval_rows[..., None] * frequency_T + phase_T
            token = torch.cat([neighbor[:, :count][rows], angle.cos()], dim=2)
            weight, slope, asking = all_weights[:, :, :count][rows], slope_RHE[rows], query[rows]
            taken, for_weight = weight, torch.bmm(slope, token.transpose(1, 2))
            if ctx.kept is not None:
                share = ctx.kept[:, :, :count][rows]
                taken, for_weight = weight * share, for_weight * share
            for_match = weight * (for_weight - (weight * for_weight).sum(dim=2, keepdim=True))
            for_query[rows] = torch.bmm(for_match, token)
            # A token counts as a value by its weight, and as a key by its match.
            for_token = torch.bmm(
                torch.cat([taken, for_match], dim=1).transpose(1, 2),
                torch.cat([slope, asking], dim=1),
            )
            for_neighbor[:, :count][rows] = for_token[..., :width]
            for_angle = (for_token[..., width:] * angle.sin()).flatten(0, 1)
            for_phase -= for_angle.sum(dim=0)
            for_frequency -= interval_rows.flatten() @ for_angle
        return for_query, for_neighbor, for_frequency, for_phase, None, None, None


def _by_count(is_real_RN: Tensor) -> Iterator[tuple[Tensor, int]]:
    """A few rows at a time that have about as many neighbours, and how many these are at most."""
    count_R = is_real_RN.sum(dim=1)
    parts = torch.split(count_R.argsort(stable=True), _ROWS_AT_ONCE)
    most = count_R[torch.stack([part[-1] for part in parts])].tolist() if len(count_R) else []
    for rows, count in zip(parts, most, strict=False):
        if count:
            yield rows, count
