"""A Transformer layer whose queries each attend to a list of rows (section "Graph Transformer").

The layer is used twice. With the structural mask as lists it is the paper's graph Transformer
block; with the members of the other stream as lists it is the cross-attention block. Shapes: D
width, I inner width of all heads, R input rows, Q queries: P that attend to
several rows, then N that attend to their own row only.
"""

from typing import Literal, TypeAlias

from torch import Tensor, nn

from tclgraph.layers.absorbed_attention import absorbed_attention, is_absorbing_faster
from tclgraph.layers.feed_forward import FeedForwardWeights, feed_forward
from tclgraph.layers.packed_attention import KeyLists, packed_attention
from tclgraph.layers.row_projections import project_rows

Residual: TypeAlias = Literal["query", "input"]
HeadWidth: TypeAlias = Literal["split", "full"]
AttentionScale: TypeAlias = Literal["head", "width"]


class TransformerLayer(nn.Module):
    """Compute LN(FFN(Z) + Z) with Z = LN(O + Q): O is the attention, Q the projected query.

    Paper: the residual is Q. Most other Transformers use the layer's input (`residual="input"`).
    Paper: Q, K and V are projected once as H·W and again by each head. Here: once, which is the
    same function, because the product of two learned matrices is one learned matrix.
    Paper: the matrices of a head are d × d, and the scale is √d (`head_width="full"`). The default
    here, as in other Transformers, splits the width among the heads, at a seventh of the cost. The
    scale is the square root of the width of a head, or √d with `attention_scale="width"`.
    """

    def __init__(
        self,
        width: int,
        num_heads: int,
        *,
        feed_forward_width: int,
        residual: Residual = "query",
        head_width: HeadWidth = "split",
        attention_scale: AttentionScale = "head",
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.residual = residual
        inner = width if head_width == "split" else width * num_heads
        # Attention divides by the square root of the width of a head.
        scaled_width = width if attention_scale == "width" else inner / num_heads
        self.query_factor = (inner / num_heads / scaled_width) ** 0.5
        self.query = nn.Linear(width, width, bias=False)
        # With full-width heads the residual Q and the heads' queries differ in width, so the heads
        # project Q once more.
        self.head_query = (
            nn.Identity() if head_width == "split" else nn.Linear(width, inner, bias=False)
        )
        # W_K and W_V side by side: one matrix product is faster than two.
        self.key_value = nn.Linear(width, 2 * inner, bias=False)
        self.output = nn.Linear(inner, width, bias=False)
        self.attention_norm = nn.LayerNorm(width)
        self.expand = nn.Linear(width, feed_forward_width)
        self.contract = nn.Linear(feed_forward_width, width)
        self.output_norm = nn.LayerNorm(width)

    def forward(self, hidden_RD: Tensor, query_Q: Tensor, lists: KeyLists) -> Tensor:
        """Return the new states of the query rows; each attends to the rows of its list."""
        attending_P, single_N = query_Q.tensor_split([len(query_Q) - lists.num_single])
        # The attention over a single key is its value, so all projections are one matrix.
        value_ID = self.key_value.weight.chunk(2)[1]
        direct_DD = self.output.weight @ value_ID
        if self.residual == "query":
            direct_DD = direct_DD + self.query.weight
        hidden_RD, query_PD, direct_ND = project_rows(
            hidden_RD, [attending_P, single_N], [self.query.weight, direct_DD]
        )
        residual_PD = query_PD
        if self.residual == "input":
            residual_PD = hidden_RD.index_select(0, attending_P)
            direct_ND = direct_ND + hidden_RD.index_select(0, single_N)
        head_query_PI = self.head_query(query_PD)
        if self.query_factor != 1.0:
            head_query_PI = head_query_PI * self.query_factor
        attended_PI = self._attend(head_query_PI, hidden_RD, lists)
        weights = FeedForwardWeights(
            output=self.output.weight,
            attention_norm_scale=self.attention_norm.weight,
            attention_norm_shift=self.attention_norm.bias,
            expand=self.expand.weight,
            expand_bias=self.expand.bias,
            contract=self.contract.weight,
            contract_bias=self.contract.bias,
            output_norm_scale=self.output_norm.weight,
            output_norm_shift=self.output_norm.bias,
        )
        return feed_forward(attended_PI, residual_PD, direct_ND, weights)

    def _attend(self, query_PI: Tensor, hidden_RD: Tensor, lists: KeyLists) -> Tensor:
        """Return the attention of all queries but those with a single key."""
        start = lists.start[: len(query_PI) + 1]
        lists = KeyLists(start, lists.keys[: len(lists.keys) - lists.num_single])
        num_queries, inner = query_PI.shape
        if hidden_RD.device.type == "cpu" and is_absorbing_faster(
            num_queries, inner, len(hidden_RD), len(lists.keys), self.num_heads
        ):
            return absorbed_attention(
                query_PI, hidden_RD, self.key_value.weight, lists, self.num_heads
            )
        return packed_attention(query_PI, self.key_value(hidden_RD), lists, self.num_heads)
