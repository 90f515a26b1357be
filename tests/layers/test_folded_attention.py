"""Compare attention for inference with the layer that is trained, in double precision.

Shapes: R rows, N neighbors, D width, H heads, F output width.
"""

import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor

from tclgraph.layers.folded_attention import FoldedAttention, Past
from tclgraph.layers.temporal_attention import TemporalAttention
from tclgraph.layers.time_encoding import TimeEncoding

R, N, D, T, H, F = 40, 4, 3, 5, 2, 6


@pytest.fixture
def layer() -> tuple[TemporalAttention, TimeEncoding]:
    torch.manual_seed(0)
    attention = TemporalAttention(D, T, H, output_width=F).double()
    attention.bias.data.normal_()
    encoding = TimeEncoding(T).double()
    encoding.log_frequency.data = torch.randn(T).double()
    encoding.phase.data.normal_()
    return attention.requires_grad_(False), encoding.requires_grad_(False)


def past_of(encoding: TimeEncoding, fewest: int) -> tuple[Past, Tensor]:
    """Return rows with `fewest` to N neighbors, and the times of the events."""
    time = 7 - 5 * torch.rand(R, N).double()
    is_real = torch.arange(N) < torch.randint(fewest, N + 1, (R, 1))
    neighbor = torch.randn(R, N, D).double()
    return Past(neighbor, encoding.turns(time, at_end=False), is_real), time


@pytest.mark.parametrize("fewest", [0, 1])
def test_own_times(layer: tuple[TemporalAttention, TimeEncoding], fewest: int) -> None:
    attention, encoding = layer
    past, event_time = past_of(encoding, fewest)
    own_RD, now = torch.randn(R, D).double(), 7 + torch.rand(R).double()
    ours = FoldedAttention(attention, encoding).at_own_times(
        own_RD, past, encoding.turns(now, at_end=True)
    )
    interval = now[:, None] - event_time
    theirs = attention(own_RD, past.neighbor, interval, past.is_real, encoding)
    assert_allclose(ours, theirs, atol=1e-10)
