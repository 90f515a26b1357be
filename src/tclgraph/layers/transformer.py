"""A Transformer layer whose queries each attend to a list of rows (section "Graph Transformer").

Used twice: with the structure of a sub-graph as lists it is the paper's graph Transformer block,
with the members of the other stream as lists its cross-attentional block. D is the width, R rows
come in, Q queries come out.
"""

from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn

from tclgraph.layers.packed_attention import KeyLists, packed_attention

Residual: TypeAlias = Literal["query", "input"]
HeadWidth: TypeAlias = Literal["split", "full"]


class TransformerLayer(nn.Module):
    """LN(FFN(Z) + Z) where Z = LN(O + Q), O is the attention and Q the projected query.

    Paper: the residual is Q; usual elsewhere is the layer's input (`residual="input"`).
    Paper: Q, K and V are projected once as H·W and again by each head. Here: once, which is the
    same function, as a product of two learned matrices is one learned matrix.
    Paper: a head's matrices are d × d, for which the text says √d as scale (`head_width="full"`);
    elsewhere, and by default here, the heads split the width between them, at a seventh of the
    cost. The scale is the root of a head's width in both.
    """

    def __init__(
        self,
        width: int,
        num_heads: int,
        *,
        feed_forward_width: int,
        residual: Residual = "query",
        head_width: HeadWidth = "split",
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.residual = residual
        inner = width if head_width == "split" else width * num_heads
        self.query = nn.Linear(width, width, bias=False)
        # With full-width heads Q is too wide to be a residual: here the heads project it again.
        self.head_query = (
            nn.Identity() if head_width == "split" else nn.Linear(width, inner, bias=False)
        )
        # W_K and W_V side by side: one product is quicker than two.
        self.key_value = nn.Linear(width, 2 * inner, bias=False)
        self.output = nn.Linear(inner, width, bias=False)
        self.attention_norm = nn.LayerNorm(width)
        self.expand = nn.Linear(width, feed_forward_width)
        self.contract = nn.Linear(feed_forward_width, width)
        self.output_norm = nn.LayerNorm(width)

    def forward(self, hidden_RD: Tensor, asking_Q: Tensor, lists: KeyLists) -> Tensor:
        """New states of the rows that ask, each having looked at the rows on its list."""
        asking_QD = hidden_RD.index_select(0, asking_Q)
        query_QD = self.query(asking_QD)
        attended_QD = packed_attention(
            self.head_query(query_QD), self.key_value(hidden_RD), lists, self.num_heads
        )
        residual_QD = query_QD if self.residual == "query" else asking_QD
        attended_QD = self.attention_norm(self.output(attended_QD) + residual_QD)
        expanded = torch.relu(self.expand(attended_QD))
        normed: Tensor = self.output_norm(self.contract(expanded) + attended_QD)
        return normed
