"""An LSTM whose past branches: parts of TDIG-MPNN, over trees that lie level by level.

Shapes: N rows, I inputs (what rows are, each once), R trees (two to an event), M places in a tree,
W events, D width.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

_FORGET_BIAS = 1.0
_BENT = 0.2  # slope of LeakyReLU below zero, as attention over graphs has it


class DependencyLSTM(nn.Module):
    """One state per row from its input and the states of the two rows below it.

    Each of the two, own and partner, has weights of its own, a forget gate, and a gate for the time
    that has passed: cell = z ⊙ s + Σ_i f_i ⊙ g_i ⊙ cell_i, state = o ⊙ tanh(cell). Nothing below
    counts as zeros. Names: z input gate, o output gate, s what could be written, f and g as above.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.written = nn.Linear(width, 3 * width)  # z, o, s
        self.kept = nn.Linear(width, 4 * width)  # f and g of own, f and g of partner
        self.from_own = nn.Linear(width, 5 * width, bias=False)  # z, o, s, f, g
        self.from_partner = nn.Linear(width, 5 * width, bias=False)
        self.from_interval = nn.Parameter(torch.zeros(2, width))
        nn.init.zeros_(self.written.bias)
        # Paper: not said. Here: open at first, because both gates close in on what is remembered.
        nn.init.constant_(self.kept.bias, _FORGET_BIAS)

    def forward(
        self,
        input_ID: Tensor,
        which_N: Tensor,
        gate_N: Tensor,
        interval_N: Tensor,
        children: Sequence[Tensor],
    ) -> Tensor:
        """States of all rows, [N, D]; row n has the input `gate_N[n] * input_ID[which_N[n]]`.

        `children` says for each level but the last where the rows below are in the next level,
        [rows, 2]. Inputs are multiplied with weights before rows take them, each once.
        """
        written_IW = functional.linear(input_ID, self.written.weight)
        kept_IW = functional.linear(input_ID, self.kept.weight) if children else input_ID
        sizes = [len(one) for one in children]
        sizes.append(len(which_N) - sum(sizes))
        per_row = (which_N, gate_N[:, None], interval_N[:, None])
        rows = list(zip(*(torch.split(one, sizes) for one in per_row), strict=True))
        which, gate, _ = rows[-1]
        hidden, cell = self._leaf(_gated(self.written.bias, gate, which, written_IW))
        found = [hidden]
        for below, (which, gate, interval) in zip(children[::-1], rows[-2::-1], strict=True):
            write = _gated(self.written.bias, gate, which, written_IW)
            keep = _gated(self.kept.bias, gate, which, kept_IW)
            hidden, cell = self._branch(write, keep, interval, below, hidden, cell)
            found.append(hidden)
        return torch.cat(found[::-1])

    def _leaf(self, write: Tensor) -> tuple[Tensor, Tensor]:
        z, o, s = write.chunk(3, dim=1)
        cell = z.sigmoid() * s.tanh()
        return o.sigmoid() * cell.tanh(), cell

    def _branch(
        self,
        write: Tensor,
        keep: Tensor,
        interval: Tensor,
        below: Tensor,
        hidden: Tensor,
        cell: Tensor,
    ) -> tuple[Tensor, Tensor]:
        width = hidden.shape[1]
        # One row of zeros for what is not there.
        hidden, cell = (functional.pad(one, (0, 0, 0, 1)) for one in (hidden, cell))
        remembered = []
        parties = zip(
            (self.from_own, self.from_partner),
            below.unbind(1),
            keep.chunk(2, dim=1),
            self.from_interval,
            strict=True,
        )
        for weights, which, gates, by_interval in parties:
            hidden_below = functional.embedding(which, hidden)
            # Products and sums in one: half of the work here is moving numbers about.
            for_write, for_gates = torch.split(weights.weight, [3 * width, 2 * width])
            write = torch.addmm(write, hidden_below, for_write.T)
            f, g = torch.addmm(gates, hidden_below, for_gates.T).chunk(2, dim=1)
            g = torch.addcmul(g, interval, by_interval)
            remembered.append(f.sigmoid() * g.sigmoid() * functional.embedding(which, cell))
        z, o, s = write.chunk(3, dim=1)
        cell = z.sigmoid() * s.tanh() + remembered[0] + remembered[1]
        return o.sigmoid() * cell.tanh(), cell


def _gated(bias: Tensor, gate: Tensor, which: Tensor, table: Tensor) -> Tensor:
    """Rows of a table, each times its gate, and a bias."""
    return torch.addcmul(bias, gate, functional.embedding(which, table))


class Selection(nn.Module):
    """How much of every row counts, by what the two trees of an event have in common.

    Every row is compared with all rows of the other tree, and the best match says how much it adds
    to a summary of its own tree. A gate, one number, then follows from that summary and the row.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.match = nn.Linear(width, width, bias=False)
        self.by_summary = nn.Linear(width, 1, bias=False)
        self.by_row = nn.Linear(width, 1, bias=False)

    def forward(self, hidden_ND: Tensor, tree_N: Tensor, rows_RM: Tensor) -> Tensor:
        """Gates of all rows, [N]; free places of `rows_RM` have N."""
        width = hidden_ND.shape[1]
        is_free = (rows_RM == len(hidden_ND)).view(-1, 2, rows_RM.shape[1])
        hidden_RMD = functional.embedding(rows_RM, functional.pad(hidden_ND, (0, 0, 0, 1)))
        one_WMD, other_WMD = hidden_RMD.view(-1, 2, rows_RM.shape[1], width).unbind(1)
        match_WMM = self.match(other_WMD) @ one_WMD.transpose(1, 2)  # other by one
        match_WMM = match_WMM.masked_fill(is_free[:, 1, :, None] | is_free[:, 0, None], -torch.inf)
        # The tanh after the maximum, as it changes no order: then it is taken of a few.
        best_W2M = torch.stack([match_WMM.amax(1), match_WMM.amax(2)], dim=1).tanh()
        share_RM = best_W2M.masked_fill(is_free, -torch.inf).softmax(2).flatten(0, 1)
        summary_RD = (share_RM[:, None] @ hidden_RMD)[:, 0]
        by_tree_R = self.by_summary(summary_RD)[:, 0]
        gate_N: Tensor = (self.by_row(hidden_ND)[:, 0] + by_tree_R[tree_N]).sigmoid()
        return gate_N


class DependencyEncoder(nn.Module):
    """Layers of LSTM with a selection before each, and the states of roots from all of them.

    What a layer finds is added to a linear image of what it was given. The inputs themselves count
    as the layer below the first; a root's layers are mixed by learned shares.
    """

    def __init__(self, width: int, num_layers: int, *, selects: bool) -> None:
        super().__init__()
        # One for all layers.
        self.selection = Selection(width) if selects else None
        self.layers = nn.ModuleList(DependencyLSTM(width) for _ in range(num_layers))
        self.skips = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(num_layers))
        self.fusion = nn.Parameter(torch.zeros(num_layers + 1))
        self.fusion_scale = nn.Parameter(torch.ones(()))

    def forward(
        self,
        input_ID: Tensor,
        interval_I: Tensor,
        which_N: Tensor,
        tree_N: Tensor,
        rows_RM: Tensor,
        children: Sequence[Tensor],
    ) -> Tensor:
        """States of the roots, [R, D]; they are the first rows, and row n is input `which_N[n]`."""
        num_trees, interval_N = len(rows_RM), interval_I[which_N]
        gate_N = torch.ones_like(interval_N)
        hidden_ND = functional.embedding(which_N, input_ID)
        of_roots = [hidden_ND[:num_trees]]
        for layer, skip in zip(self.layers, self.skips, strict=True):
            if self.selection is not None:
                gate_N = self.selection(hidden_ND, tree_N, rows_RM)
            found_ND = layer(input_ID, which_N, gate_N, interval_N, children)
            hidden_ND = found_ND + skip(hidden_ND)
            of_roots.append(hidden_ND[:num_trees])
            input_ID, which_N = hidden_ND, torch.arange(len(hidden_ND), device=hidden_ND.device)
        share = self.fusion.softmax(0)
        return self.fusion_scale * torch.einsum("j,jrd->rd", share, torch.stack(of_roots))


class LocalAttention(nn.Module):
    """What an input takes from the nodes around it, of which there are a few kinds.

    Every kind has its own matrix, and all that are there share the attention of one input. How long
    ago the input's node acted before counts as well.
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
        """Inputs with what they took added."""
        value_IKD = torch.stack(
            [value(others_IKD[:, kind]) for kind, value in enumerate(self.value)], dim=1
        )
        logit_IK = self.by_own(own_ID) + (value_IKD * self.by_other).sum(2)
        logit_IK = logit_IK + interval_I[:, None] * self.by_interval
        logit_IK = functional.leaky_relu(logit_IK, _BENT)
        # Not minus infinity: who is alone would get NaN. What such a one takes is nothing anyway.
        share_IK = logit_IK.masked_fill(~is_there_IK, -1e9).softmax(1) * is_there_IK
        return own_ID + (share_IK[:, None] @ value_IKD)[:, 0]
