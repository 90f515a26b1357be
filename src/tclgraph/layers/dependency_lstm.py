"""The layers of TDIG-MPNN: an LSTM over dependency trees, whose rows are stored level by level.

Shapes: N rows, I distinct inputs of rows, R trees (two per event), M places in a tree, W events,
D width.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

_FORGET_BIAS = 1.0
_NEGATIVE_SLOPE = 0.2  # of LeakyReLU, as in graph attention networks


class DependencyLSTM(nn.Module):
    """Compute the state of each row from its input and the states of its two children.

    The children, own and partner, have separate weights, and each has a forget gate f and a gate g
    for elapsed time: cell = z ⊙ s + Σ_i f_i ⊙ g_i ⊙ cell_i and state = o ⊙ tanh(cell), with the
    input gate z, the output gate o and the candidate s. A missing child counts as zeros.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.written = nn.Linear(width, 3 * width)  # z, o, s
        self.forget = nn.Linear(width, 4 * width)  # f and g of own, f and g of partner
        self.from_own = nn.Linear(width, 5 * width, bias=False)  # z, o, s, f, g
        self.from_partner = nn.Linear(width, 5 * width, bias=False)
        self.from_interval = nn.Parameter(torch.zeros(2, width))
        nn.init.zeros_(self.written.bias)
        # Paper: does not say. Here: both gates start open, because their product scales the memory.
        nn.init.constant_(self.forget.bias, _FORGET_BIAS)

    def forward(
        self,
        input_ID: Tensor,
        input_N: Tensor,
        gate_N: Tensor,
        interval_N: Tensor,
        children: Sequence[Tensor],
    ) -> Tensor:
        """Return the states of all rows, [N, D]; row n has the input `gate[n] · input[input_N[n]]`.

        `children` has an array [rows, 2] for each level but the last: the positions of each row's
        children in the next level. Each distinct input is multiplied with the weights once.
        """
        written_IW = functional.linear(input_ID, self.written.weight)
        forget_IW = functional.linear(input_ID, self.forget.weight) if children else input_ID
        sizes = [len(level) for level in children]
        sizes.append(len(input_N) - sum(sizes))
        columns = (input_N, gate_N[:, None], interval_N[:, None])
        levels = list(zip(*(torch.split(column, sizes) for column in columns), strict=True))
        index, gate, _ = levels[-1]
        hidden, cell = self._leaf(_gated(self.written.bias, gate, index, written_IW))
        hidden_by_level = [hidden]
        for child, (index, gate, interval) in zip(children[::-1], levels[-2::-1], strict=True):
            write = _gated(self.written.bias, gate, index, written_IW)
            keep = _gated(self.forget.bias, gate, index, forget_IW)
            hidden, cell = self._branch(write, keep, interval, child, hidden, cell)
            hidden_by_level.append(hidden)
        return torch.cat(hidden_by_level[::-1])

    def _leaf(self, write: Tensor) -> tuple[Tensor, Tensor]:
        z, o, s = write.chunk(3, dim=1)
        cell = z.sigmoid() * s.tanh()
        return o.sigmoid() * cell.tanh(), cell

    def _branch(
        self,
        write: Tensor,
        keep: Tensor,
        interval: Tensor,
        child: Tensor,
        hidden: Tensor,
        cell: Tensor,
    ) -> tuple[Tensor, Tensor]:
        width = hidden.shape[1]
        # A last row of zeros stands for missing children.
        hidden, cell = (functional.pad(rows, (0, 0, 0, 1)) for rows in (hidden, cell))
        remembered = []
        parties = zip(
            (self.from_own, self.from_partner),
            child.unbind(1),
            keep.chunk(2, dim=1),
            self.from_interval,
            strict=True,
        )
        for weights, index, gates, by_interval in parties:
            child_hidden = functional.embedding(index, hidden)
            # Fused products and sums: half of the time here is memory traffic.
            for_write, for_gates = torch.split(weights.weight, [3 * width, 2 * width])
            write = torch.addmm(write, child_hidden, for_write.T)
            f, g = torch.addmm(gates, child_hidden, for_gates.T).chunk(2, dim=1)
            g = torch.addcmul(g, interval, by_interval)
            remembered.append(f.sigmoid() * g.sigmoid() * functional.embedding(index, cell))
        z, o, s = write.chunk(3, dim=1)
        cell = z.sigmoid() * s.tanh() + remembered[0] + remembered[1]
        return o.sigmoid() * cell.tanh(), cell


def _gated(bias: Tensor, gate: Tensor, index: Tensor, table: Tensor) -> Tensor:
    """Return rows of a table, each multiplied by its gate, plus a bias."""
    return torch.addcmul(bias, gate, functional.embedding(index, table))


class Selection(nn.Module):
    """Gate every row by what the two trees of an event have in common.

    Each row is compared with all rows of the other tree, and a softmax over the best matches gives
    the weight of the row in a summary of its own tree. The gate of a row, a number between 0 and 1,
    is computed from that summary and the row.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.match = nn.Linear(width, width, bias=False)
        self.by_summary = nn.Linear(width, 1, bias=False)
        self.by_row = nn.Linear(width, 1, bias=False)

    def forward(self, hidden_ND: Tensor, tree_N: Tensor, rows_RM: Tensor) -> Tensor:
        """Return the gates of all rows, [N]; `rows_RM` has N at unused places."""
        width = hidden_ND.shape[1]
        is_unused = (rows_RM == len(hidden_ND)).view(-1, 2, rows_RM.shape[1])
        hidden_RMD = functional.embedding(rows_RM, functional.pad(hidden_ND, (0, 0, 0, 1)))
        first_WMD, second_WMD = hidden_RMD.view(-1, 2, rows_RM.shape[1], width).unbind(1)
        match_WMM = self.match(second_WMD) @ first_WMD.transpose(1, 2)  # [second, first]
        match_WMM = match_WMM.masked_fill(
            is_unused[:, 1, :, None] | is_unused[:, 0, None], -torch.inf
        )
        # tanh is increasing, so it is applied after the maximum, to fewer values.
        best_W2M = torch.stack([match_WMM.amax(1), match_WMM.amax(2)], dim=1).tanh()
        share_RM = best_W2M.masked_fill(is_unused, -torch.inf).softmax(2).flatten(0, 1)
        summary_RD = (share_RM[:, None] @ hidden_RMD)[:, 0]
        by_tree_R = self.by_summary(summary_RD)[:, 0]
        gate_N: Tensor = (self.by_row(hidden_ND)[:, 0] + by_tree_R[tree_N]).sigmoid()
        return gate_N


class DependencyEncoder(nn.Module):
    """Stack LSTM layers, with a selection before each, and mix the states of the roots.

    The output of a layer is added to a linear projection of its input. The state of a root is an
    average of its states after all layers and of its input, with learned weights.
    """

    def __init__(self, width: int, num_layers: int, *, selects: bool) -> None:
        super().__init__()
        # All layers share one selection.
        self.selection = Selection(width) if selects else None
        self.layers = nn.ModuleList(DependencyLSTM(width) for _ in range(num_layers))
        self.skips = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(num_layers))
        self.fusion = nn.Parameter(torch.zeros(num_layers + 1))
        self.fusion_scale = nn.Parameter(torch.ones(()))

    def forward(
        self,
        input_ID: Tensor,
        interval_I: Tensor,
        input_N: Tensor,
        tree_N: Tensor,
        rows_RM: Tensor,
        children: Sequence[Tensor],
    ) -> Tensor:
        """Return the states of the roots, [R, D]: the first rows. Row n has input `input_N[n]`."""
        num_trees, interval_N = len(rows_RM), interval_I[input_N]
        gate_N = torch.ones_like(interval_N)
        hidden_ND = functional.embedding(input_N, input_ID)
        root_states = [hidden_ND[:num_trees]]
        for layer, skip in zip(self.layers, self.skips, strict=True):
            if self.selection is not None:
                gate_N = self.selection(hidden_ND, tree_N, rows_RM)
            output_ND = layer(input_ID, input_N, gate_N, interval_N, children)
            hidden_ND = output_ND + skip(hidden_ND)
            root_states.append(hidden_ND[:num_trees])
            input_ID, input_N = hidden_ND, torch.arange(len(hidden_ND), device=hidden_ND.device)
        share = self.fusion.softmax(0)
        return self.fusion_scale * torch.einsum("j,jrd->rd", share, torch.stack(root_states))


class LocalAttention(nn.Module):
    """Add to each input an attention over its neighbors, of which there are several kinds.

    Each kind of neighbor has its own projection, and a softmax over the existing neighbors weighs
    them. The time since the previous event of the input's node enters the logits.
    """

    def __init__(self, width: int, num_kinds: int) -> None:
        super().__init__()
        self.value = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(num_kinds))
        self.by_own = nn.Linear(width, num_kinds, bias=False)
        self.by_other = nn.Parameter(torch.zeros(num_kinds, width))
        self.by_interval = nn.Parameter(torch.zeros(num_kinds))

    def forward(
        self, own_ID: Tensor, others_IKD: Tensor, is_there_IK: Tensor, interval_I: Tensor
    ) -> Tensor:
        """Return the inputs plus the attention output; an input without neighbors is unchanged."""
        value_IKD = torch.stack(
            [value(others_IKD[:, kind]) for kind, value in enumerate(self.value)], dim=1
        )
        logit_IK = self.by_own(own_ID) + (value_IKD * self.by_other).sum(2)
        logit_IK = logit_IK + interval_I[:, None] * self.by_interval
        logit_IK = functional.leaky_relu(logit_IK, _NEGATIVE_SLOPE)
        # Minus infinity would give NaN for an input without neighbors; the last factor removes its
        # weights.
        share_IK = logit_IK.masked_fill(~is_there_IK, -1e9).softmax(1) * is_there_IK
        return own_ID + (share_IK[:, None] @ value_IKD)[:, 0]
