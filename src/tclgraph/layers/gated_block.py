"""A Transformer block with learned gates on its residual branches (LiGR).

Shapes: B sequences, L positions, Q positions that are computed, D width, H heads, F width of the
hidden layer.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from tclgraph.layers.temporal_attention import dropout_mask


class GatedBlock(nn.Module):
    """Compute z = h + σ(G h) ⊙ MHA(LN h), then z + σ(G' z) ⊙ W₃ (SiLU(W₁ LN z) ⊙ W₂ LN z).

    The hidden layer is four times as wide as the states, and its matrices have no biases. Dropout
    is applied to both branches and to the hidden layer.
    Published: also to the attention weights. Here: not to them. Because: attention without it runs
    in a fused kernel that stores no weights.
    """

    def __init__(self, width: int, num_heads: int, dropout: float) -> None:
        super().__init__()
        self.num_heads, self.dropout = num_heads, dropout
        self.attention_norm = nn.LayerNorm(width)
        self.query = nn.Linear(width, width)
        self.key_value = nn.Linear(width, 2 * width)
        self.output = nn.Linear(width, width)
        self.attention_gate = nn.Linear(width, width)
        self.feed_forward_norm = nn.LayerNorm(width)
        # W₁ and W₂ side by side: one matrix product is faster than two.
        self.expand = nn.Linear(width, 8 * width, bias=False)
        self.contract = nn.Linear(4 * width, width, bias=False)
        self.feed_forward_gate = nn.Linear(width, width)

    def forward(
        self, hidden_BLD: Tensor, mask_BQL: Tensor, generator: torch.Generator | None = None
    ) -> Tensor:
        """Return the new states of the last Q positions, [B, Q, D].

        The mask says which positions these attend to; each has at least one. Without a generator
        there is no dropout.
        """
        normed_BLD = self.attention_norm(hidden_BLD)
        start = hidden_BLD.shape[1] - mask_BQL.shape[1]
        hidden_BQD, normed_BQD = hidden_BLD[:, start:], normed_BLD[:, start:]
        attended_BQD = self._attend(normed_BQD, normed_BLD, mask_BQL)
        gate_BQD = self.attention_gate(hidden_BQD).sigmoid()
        hidden_BQD = hidden_BQD + gate_BQD * dropped(attended_BQD, self.dropout, generator)
        first_BQF, second_BQF = self.expand(self.feed_forward_norm(hidden_BQD)).chunk(2, dim=2)
        inner_BQF = dropped(functional.silu(first_BQF) * second_BQF, self.dropout, generator)
        gate_BQD = self.feed_forward_gate(hidden_BQD).sigmoid()
        added_BQD = gate_BQD * dropped(self.contract(inner_BQF), self.dropout, generator)
        states_BQD: Tensor = hidden_BQD + added_BQD
        return states_BQD

    def _attend(self, query_BQD: Tensor, key_BLD: Tensor, mask_BQL: Tensor) -> Tensor:
        """Return the multi-head attention of the queries."""
        key_BLD, value_BLD = self.key_value(key_BLD).chunk(2, dim=2)
        query_BHQE, key_BHLE, value_BHLE = (
            states.unflatten(2, (self.num_heads, -1)).transpose(1, 2)
            for states in (self.query(query_BQD), key_BLD, value_BLD)
        )
        attended_BHQE = functional.scaled_dot_product_attention(
            query_BHQE, key_BHLE, value_BHLE, attn_mask=mask_BQL[:, None]
        )
        attended_BQD: Tensor = self.output(attended_BHQE.transpose(1, 2).flatten(2))
        return attended_BQD


def dropped(states: Tensor, dropout: float, generator: torch.Generator | None) -> Tensor:
    """Apply dropout with random numbers of a generator; without one, return the states."""
    if generator is None or not dropout:
        return states
    return states * dropout_mask(tuple(states.shape), dropout, generator).to(states)
