"""Compare temporal attention with plain loops and with torch's attention.

Shapes: R rows, N neighbors, D width, T width of a time code, H heads, F output width.
"""

from typing import Any

import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn

from tclgraph.layers.temporal_attention import TemporalAttention, _Means, dropout_mask
from tclgraph.layers.time_encoding import TimeEncoding

R, N, D, T, H, F = 70, 4, 3, 5, 2, 6
Given = tuple[TemporalAttention, TimeEncoding, Tensor, Tensor, Tensor, Tensor]


@pytest.fixture
def given() -> Given:
    """Return a layer and more rows than a chunk, with 0 to N neighbors, in double precision."""
    torch.manual_seed(0)
    attention = TemporalAttention(D, T, H, output_width=F).double()
    attention.bias.data.normal_()
    encoding = TimeEncoding(T).double()
    encoding.log_frequency.data = torch.randn(T).double()
    encoding.phase.data.normal_()
    own, neighbor = torch.randn(R, D).double(), torch.randn(R, N, D).double()
    interval = torch.rand(R, N).double() * 5
    is_real = torch.arange(N) < torch.randint(0, N + 1, (R, 1))
    return attention, encoding, own.requires_grad_(), neighbor.requires_grad_(), interval, is_real


def attend(
    attention: TemporalAttention,
    encoding: TimeEncoding,
    own: Tensor,
    neighbors: list[tuple[Tensor, Any]],
) -> Tensor:
    """Return the attention output of a node over (neighbor vector, interval) pairs, by loops."""
    output: Tensor = torch.zeros_like(attention.bias)
    if not neighbors:
        return output
    keys = [
        torch.cat([vector, encoding(torch.as_tensor(interval, dtype=vector.dtype))])
        for vector, interval in neighbors
    ]
    asking = torch.cat([own, encoding(torch.zeros(()).to(own))])
    width = len(asking) // attention.heads
    for head in range(attention.heads):
        part = slice(head * width, (head + 1) * width)
        query = attention.query[part] @ asking
        match = torch.stack([query @ (attention.key[part] @ key) for key in keys]) / width**0.5
        for share, key in zip(match.exp() / match.exp().sum(), keys, strict=True):
            output = output + share * (attention.value[part] @ key) @ attention.output[part]
    return output + attention.bias


def by_loops(given: Given, row: int) -> Tensor:
    attention, encoding, own, neighbor, interval, is_real = given
    neighbors = [
        (neighbor[row, place], interval[row, place]) for place in range(N) if is_real[row, place]
    ]
    return attend(attention, encoding, own[row], neighbors)


def test_values_and_gradients_equal_plain_loops(given: Given) -> None:
    attention, encoding, own, neighbor, interval, is_real = given
    learned = [*attention.parameters(), *encoding.parameters(), own, neighbor]
    ours = attention(own, neighbor, interval, is_real, encoding)
    theirs = torch.stack([by_loops(given, row) for row in range(R)])
    assert_allclose(ours.detach(), theirs.detach(), atol=1e-10)
    mixed = torch.randn(R, F, dtype=torch.float64)
    for gradient, expected in zip(
        torch.autograd.grad((ours * mixed).sum(), learned),
        torch.autograd.grad((theirs * mixed).sum(), learned),
        strict=True,
    ):
        assert_allclose(gradient, expected, atol=1e-10)


def test_attention_equals_that_of_torch(given: Given) -> None:
    """The authors of TGN use torch's attention."""
    attention, encoding, own, neighbor, interval, is_real = given
    theirs = nn.MultiheadAttention(D + T, H, bias=False, batch_first=True).double()
    theirs.in_proj_weight.data = torch.cat([attention.query, attention.key, attention.value]).data
    has_neighbor = is_real.any(dim=1)  # torch returns NaN for the other rows
    now = encoding.of_now.expand(R, T)
    key = torch.cat([neighbor, encoding(interval)], dim=2)[has_neighbor]
    theirs.out_proj.weight.data = torch.eye(D + T).double()
    mean, _ = theirs(
        torch.cat([own, now], dim=1)[has_neighbor, None],
        key,
        key,
        key_padding_mask=~is_real[has_neighbor],
    )
    expected = mean[:, 0] @ attention.output + attention.bias
    ours = attention(own, neighbor, interval, is_real, encoding)[has_neighbor]
    assert_allclose(ours.detach(), expected.detach(), atol=1e-10)


def test_gradients_with_dropout() -> None:
    torch.manual_seed(0)

    def random(*shape: int) -> Tensor:
        return torch.randn(*shape, dtype=torch.float64, requires_grad=True)

    is_real = torch.arange(3) < torch.tensor([[0], [1], [3], [2]])
    mask = dropout_mask((4, H, 3), 0.4, torch.Generator().manual_seed(1)).double()
    interval = torch.rand(4, 3, dtype=torch.float64)
    given: tuple[Any, ...] = (random(4, H, D + T), random(4, 3, D), random(T), random(T))
    assert torch.autograd.gradcheck(_Means.apply, (*given, interval, is_real, mask))


def test_dropout_is_drawn_from_the_generator_and_keeps_the_mean(given: Given) -> None:
    attention, encoding, own, neighbor, interval, is_real = given
    attention.dropout = 0.5

    def dropped(seed: int) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        output: Tensor = attention(own, neighbor, interval, is_real, encoding, generator)
        return output.detach()

    without_dropout = attention(own, neighbor, interval, is_real, encoding).detach()
    assert torch.equal(dropped(1), dropped(1))
    assert not torch.equal(dropped(1), dropped(2))
    mean = torch.stack([dropped(seed) for seed in range(400)]).mean(dim=0)
    assert_allclose(mean, without_dropout, atol=0.5)
    assert (mean - without_dropout).abs().mean() < 0.05


def test_rows_without_neighbors_get_zero(given: Given) -> None:
    attention, encoding, own, neighbor, interval, _ = given
    no_neighbor = torch.zeros(R, N, dtype=torch.bool)
    assert not attention(own, neighbor, interval, no_neighbor, encoding).any()
