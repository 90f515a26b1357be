"""An MLP-mixer: a fixed number of slots per row, mixed across slots and then across channels.

Slots are the first axis. So the slots of all rows and channels are mixed by a single matrix
product, without a transposed copy.

Shapes: K slots, R rows, D width, M = R · D, J hidden width across slots, F hidden width across
channels.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from tclgraph.layers.temporal_attention import dropout_mask

_CHANNEL_EXPANSION = 4


class Mixer(nn.Module):
    """Mix the slots of each row with some blocks, and return the mean over normalized slots."""

    def __init__(self, slots: int, width: int, *, layers: int, dropout: float) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(MixerBlock(slots, width, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, slot_KRD: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Return a vector per row, [R, D]; a generator enables dropout."""
        for block in self.blocks:
            slot_KRD = block(slot_KRD, generator)
        mean_RD: Tensor = self.norm(slot_KRD).mean(dim=0)
        return mean_RD


class MixerBlock(nn.Module):
    """Compute Z + MLP(LN(Z)) across slots, and then across channels.

    Each MLP has a hidden layer with GELU: half as wide as the slots, or four times as wide as the
    channels. Dropout applies to the hidden layer and to the output of each MLP.
    """

    def __init__(self, slots: int, width: int, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        hidden = max(1, slots // 2)
        self.slot_norm = nn.LayerNorm(width)
        self.slot_expand = nn.Linear(slots, hidden)
        self.slot_contract = nn.Linear(hidden, slots)
        self.channel_norm = nn.LayerNorm(width)
        self.channel_expand = nn.Linear(width, _CHANNEL_EXPANSION * width)
        self.channel_contract = nn.Linear(_CHANNEL_EXPANSION * width, width)

    def forward(self, slot_KRD: Tensor, generator: torch.Generator | None) -> Tensor:
        normed_KM = self.slot_norm(slot_KRD).flatten(1)
        hidden_JM = functional.gelu(_mix_slots(self.slot_expand, normed_KM))
        mixed_KM = _mix_slots(self.slot_contract, self._dropped(hidden_JM, generator))
        slot_KRD = slot_KRD + self._dropped(mixed_KM, generator).view_as(slot_KRD)
        hidden_KRF = functional.gelu(self.channel_expand(self.channel_norm(slot_KRD)))
        mixed_KRD = self.channel_contract(self._dropped(hidden_KRF, generator))
        return slot_KRD + self._dropped(mixed_KRD, generator)

    def _dropped(self, values: Tensor, generator: torch.Generator | None) -> Tensor:
        if generator is None or not self.dropout:
            return values
        return values * dropout_mask(values.shape, self.dropout, generator).to(values)


def _mix_slots(layer: nn.Linear, slot_KM: Tensor) -> Tensor:
    """Apply a linear layer to the first axis."""
    return torch.addmm(layer.bias[:, None], layer.weight, slot_KM)
