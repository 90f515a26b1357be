"""A layer of TGAT, for training and for inference.

Shapes: R rows (nodes), N neighbors of a row, H heads, D width, F = 2D, P = 2D turns of a timestamp.
"""

import torch
from torch import Tensor, nn

from tclgraph.baselines.recent_attention import AttentionConfig
from tclgraph.layers.folded_attention import FoldedAttention, Past
from tclgraph.layers.pair_decoder import PairMerge
from tclgraph.layers.temporal_attention import TemporalAttention, dropout_mask
from tclgraph.layers.time_encoding import TimeEncoding


class TGATLayer(nn.Module):
    """One layer: MLP([LN(attention + q) ; h]).

    h is a node's vector in the layer below, and q = [h ; encoding of interval 0] its query.
    """

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__()
        width, full = config.width, 2 * config.width
        self.dropout = config.dropout
        self.attention = TemporalAttention(
            width, width, config.heads, output_width=full, dropout=config.dropout
        )
        self.norm = nn.LayerNorm(full)
        self.merge = PairMerge(full, width, width, width)

    def forward(
        self,
        node_RD: Tensor,
        neighbor_RND: Tensor,
        interval_RN: Tensor,
        is_real_RN: Tensor,
        encoding: TimeEncoding,
        generator: torch.Generator | None,
    ) -> Tensor:
        """Return the vectors of rows, each at one time, [R, D]; a generator enables dropout."""
        attended = self.attention(
            node_RD, neighbor_RND, interval_RN, is_real_RN, encoding, generator
        )
        if generator is not None and self.dropout:
            attended = attended * dropout_mask(attended.shape, self.dropout, generator).to(attended)
        return self.merged(attended, node_RD, encoding)

    def merged(self, attended: Tensor, node: Tensor, encoding: TimeEncoding) -> Tensor:
        """Return the layer's output, from that of attention and the node's vector."""
        query = torch.cat([node, encoding.of_now.expand_as(node)], dim=-1)
        merged: Tensor = self.merge(self.norm(attended + query), node)
        return merged


class FoldedLayer:
    """A layer for inference, with products of weights that were computed once."""

    def __init__(self, layer: TGATLayer, encoding: TimeEncoding) -> None:
        self.layer, self.encoding = layer, encoding
        self.attention = FoldedAttention(layer.attention, encoding)

    def at_own_times(self, node_RD: Tensor, past: Past, now_RP: Tensor) -> Tensor:
        """Return the vectors of rows, each at its own time, [R, D]."""
        attended_RF = self.attention.at_own_times(node_RD, past, now_RP)
        return self.layer.merged(attended_RF, node_RD, self.encoding)


class RotatedLayer:
    """The matrices of a layer for inference, with less work between attention and hidden layer.

    The norm of a vector x of width F is x - mean(x), divided by the deviation of x. Its product
    with W, of D columns, is W'(x - mean(x)) / deviation. A rotation of the space changes no
    deviation. One rotation leaves all columns of W in the first D of F dimensions, so the product
    needs only these. The matrices here are those of the layer times this rotation and the
    subtraction of the mean, and so the deviation is the root of the mean square.

    All matrices are maps of row vectors, and biases are row vectors.
    """

    def __init__(self, folded: FoldedLayer) -> None:
        layer, attention, heads = folded.layer, folded.attention, folded.attention.heads
        width, norm, merge = attention.width, layer.norm, layer.merge
        full = len(norm.weight)
        centering = torch.eye(full).to(norm.weight) - 1 / full
        weight = centering @ (merge.first_half.weight.T * norm.weight[:, None])
        rotation, rotated = torch.linalg.qr(weight, mode="complete")
        rotation = centering @ rotation
        self.code = attention.value_by_time @ rotation
        value = attention.value_by_neighbor
        self.value = (torch.unflatten(value, 1, (heads, -1)) @ rotation).flatten(1)
        # The weights of a head sum to 1, so a share of the bias in each value adds the bias.
        self.value_bias = (attention.bias @ rotation / heads).repeat(heads)
        self.query, self.query_bias = rotation[:width], folded.encoding.of_now @ rotation[width:]
        self.hidden, self.hidden_bias = rotated[:width], merge.first_half(norm.bias)
        self.own_hidden = merge.second_half.weight.T
        self.output, self.output_bias = merge.output.weight.T, merge.output.bias
