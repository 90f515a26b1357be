"""A causal Transformer over sequences of tokens that stand for targets.

Token 0 starts a sequence, and token 1 + i stands for target i. In a one-mode graph, token
1 + T + i may stand for an event that was received from node i.

Shapes: T targets, W windows, P positions of a window, the newest last, D width.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from tclgraph.layers.gated_block import GatedBlock, dropped
from tclgraph.layers.node_tables import NodeModule, NodeTable


class TokenTransformer(NodeModule):
    """Vectors of tokens and of ages, and gated blocks that read them.

    Targets that are not marked as known share a vector.
    """

    is_known: Tensor

    def __init__(
        self,
        num_targets: int,
        width: int,
        *,
        num_heads: int,
        num_blocks: int,
        max_length: int,
        dropout: float,
        has_received_tokens: bool,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.target = nn.Parameter(torch.empty(num_targets, width))
        self.register_buffer("is_known", torch.zeros(num_targets))
        self.unknown = nn.Parameter(torch.empty(width))
        self.start = nn.Parameter(torch.empty(width))
        self.received = nn.Parameter(torch.empty(width)) if has_received_tokens else None
        self.position = nn.Parameter(torch.empty(max_length, width))
        self.blocks = nn.ModuleList(
            GatedBlock(width, num_heads, dropout) for _ in range(num_blocks)
        )
        self._initialize(deviation=(2 / (num_targets + width)) ** 0.5)

    def _initialize(self, deviation: float) -> None:
        """Draw matrices by Glorot's rule, and single vectors like those of targets."""
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.xavier_normal_(parameter)
        for vector in (self.unknown, self.start, self.received):
            if vector is not None:
                nn.init.normal_(vector, std=deviation)

    def node_tables(self) -> list[NodeTable]:
        """Return the tables of targets; an added target is not known, so its entry is not used."""
        return [NodeTable(name=name, side="targets") for name in ("target", "is_known")]

    def token_vectors(self, is_hidden_T: Tensor | None = None) -> Tensor:
        """Return the vectors of all tokens; hidden targets have the vector of unknown ones."""
        is_known_T = self.is_known > 0
        if is_hidden_T is not None:
            is_known_T = is_known_T & ~is_hidden_T
        target_TD = torch.where(is_known_T[:, None], self.target, self.unknown)
        vectors = [self.start[None], target_TD]
        if self.received is not None:
            vectors.append(target_TD + self.received)
        return torch.cat(vectors)

    def forward(
        self,
        vectors: Tensor,
        token_WP: Tensor,
        length_W: Tensor,
        *,
        only_newest: bool = False,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Return the states of all positions, [W, P, D], or of the newest ones, [W, 1, D].

        `vectors` are those of all tokens. The positions before the last `length_W` are padding.
        Without a generator there is no dropout.
        """
        # The embedding of a position belongs to its age, so padding does not change it.
        age_P = torch.arange(token_WP.shape[1] - 1, -1, -1, device=token_WP.device)
        hidden_WPD = functional.embedding(token_WP, vectors) + self.position[age_P]
        hidden_WPD = dropped(hidden_WPD, self.dropout, generator)
        # A position attends to itself and to earlier positions that are not padding.
        mask_WPP = (age_P[:, None] < age_P) & (age_P < length_W[:, None])[:, None]
        mask_WPP = mask_WPP | (age_P[:, None] == age_P)
        for number, block in enumerate(self.blocks, start=1):
            if only_newest and number == len(self.blocks):
                mask_WPP = mask_WPP[:, -1:]
            hidden_WPD = block(hidden_WPD, mask_WPP, generator)
        return hidden_WPD
