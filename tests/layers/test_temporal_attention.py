"""Against plain loops, against torch's own attention, and the quick way against the slow one.

Shapes: R rows, N neighbours, D width, T width of a time code, H heads, F output.
"""

from typing import Any

import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn

from tclgraph.layers.temporal_attention import Past, TemporalAttention, _Means, kept
from tclgraph.layers.time_encoding import TimeEncoding

R, N, D, T, H, F = 70, 4, 3, 5, 2, 6
Given = tuple[TemporalAttention, TimeEncoding, Tensor, Tensor, Tensor, Tensor]


@pytest.fixture
def given() -> Given:
    """Rows with 0 to N neighbours, more than are done at once, in double precision."""
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
    attention: TemporalAttention, encoding: TimeEncoding, own: Tensor, met: list[tuple[Tensor, Any]]
) -> Tensor:
    """One node over its neighbours, each a vector and an interval, in plain loops."""
    output: Tensor = torch.zeros_like(attention.bias)
    if not met:
        return output
    keys = [
        torch.cat([one, encoding(torch.as_tensor(interval, dtype=one.dtype))])
        for one, interval in met
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
    met = [(neighbor[row, at], interval[row, at]) for at in range(N) if is_real[row, at]]
    return attend(attention, encoding, own[row], met)


def test_it_is_what_the_formula_says_with_its_gradients(given: Given) -> None:
    attention, encoding, own, neighbor, interval, is_real = given
    learned = [*attention.parameters(), *encoding.parameters(), own, neighbor]
    ours = attention(own, neighbor, interval, is_real, encoding)
    theirs = torch.stack([by_loops(given, row) for row in range(R)])
    assert_allclose(ours.detach(), theirs.detach(), atol=1e-10)
    mixed = torch.randn(R, F, dtype=torch.float64)
    for one, other in zip(
        torch.autograd.grad((ours * mixed).sum(), learned),
        torch.autograd.grad((theirs * mixed).sum(), learned),
        strict=True,
    ):
        assert_allclose(one, other, atol=1e-10)


def test_it_is_the_attention_that_torch_has(given: Given) -> None:
    """That is what TGN's authors took."""
    attention, encoding, own, neighbor, interval, is_real = given
    theirs = nn.MultiheadAttention(D + T, H, bias=False, batch_first=True).double()
    theirs.in_proj_weight.data = torch.cat([attention.query, attention.key, attention.value]).data
    some = is_real.any(dim=1)  # torch has NaN for the others
    now = encoding.of_now.expand(R, T)
    key = torch.cat([neighbor, encoding(interval)], dim=2)[some]
    theirs.out_proj.weight.data = torch.eye(D + T).double()
    mean, _ = theirs(
        torch.cat([own, now], dim=1)[some, None], key, key, key_padding_mask=~is_real[some]
    )
    expected = mean[:, 0] @ attention.output + attention.bias
    ours = attention(own, neighbor, interval, is_real, encoding)[some]
    assert_allclose(ours.detach(), expected.detach(), atol=1e-10)


@pytest.mark.parametrize("moments", [1, N, 2 * N])
@pytest.mark.parametrize("own_moves", [False, True])
def test_many_moments_equal_one_at_a_time(given: Given, moments: int, own_moves: bool) -> None:
    attention, encoding, own, neighbor, interval, is_real = given
    met = 7 - interval
    now = 7 + torch.rand(moments).double()
    turns = encoding.turns(met, at_end=False)
    own_RBD = own[:, None]
    if own_moves:
        own_RBD = own_RBD + torch.randn(R, moments, D).double()
    past = Past(neighbor, turns, is_real)
    together = attention.at_moments(own_RBD, past, encoding.turns(now, at_end=True), encoding)
    assert together.shape == (R, moments, F)
    for at in range(moments):
        own_RD = own_RBD[:, at if own_moves else 0]
        alone = attention(own_RD, neighbor, now[at] - met, is_real, encoding)
        assert_allclose(together[:, at].detach(), alone.detach(), atol=1e-10)


def test_rows_may_have_moments_of_their_own(given: Given) -> None:
    attention, encoding, own, neighbor, interval, is_real = given
    now = 7 + torch.rand(R).double()
    past = Past(neighbor, encoding.turns(7 - interval, at_end=False), is_real)
    turns = encoding.turns(now, at_end=True)[:, None]
    ours = attention.at_moments(own[:, None], past, turns, encoding)[:, 0]
    theirs = attention(own, neighbor, now[:, None] - (7 - interval), is_real, encoding)
    assert_allclose(ours.detach(), theirs.detach(), atol=1e-10)


def test_gradients_with_dropout() -> None:
    torch.manual_seed(0)

    def random(*shape: int) -> Tensor:
        return torch.randn(*shape, dtype=torch.float64, requires_grad=True)

    is_real = torch.arange(3) < torch.tensor([[0], [1], [3], [2]])
    share = kept((4, H, 3), 0.4, torch.Generator().manual_seed(1)).double()
    interval = torch.rand(4, 3, dtype=torch.float64)
    given: tuple[Any, ...] = (random(4, H, D + T), random(4, 3, D), random(T), random(T))
    assert torch.autograd.gradcheck(_Means.apply, (*given, interval, is_real, share))


def test_dropout_is_drawn_from_the_generator_and_keeps_the_mean(given: Given) -> None:
    attention, encoding, own, neighbor, interval, is_real = given
    attention.dropout = 0.5

    def dropped(seed: int) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        found: Tensor = attention(own, neighbor, interval, is_real, encoding, generator)
        return found.detach()

    whole = attention(own, neighbor, interval, is_real, encoding).detach()
    assert torch.equal(dropped(1), dropped(1))
    assert not torch.equal(dropped(1), dropped(2))
    mean = torch.stack([dropped(seed) for seed in range(400)]).mean(dim=0)
    assert_allclose(mean, whole, atol=0.5)
    assert (mean - whole).abs().mean() < 0.05


def test_who_has_no_neighbours_gets_zero(given: Given) -> None:
    attention, encoding, own, neighbor, interval, _ = given
    nobody = torch.zeros(R, N, dtype=torch.bool)
    assert not attention(own, neighbor, interval, nobody, encoding).any()
    past = Past(neighbor, encoding.turns(interval, at_end=False), nobody)
    now = encoding.turns(torch.ones(3).double(), at_end=True)
    assert not attention.at_moments(own[:, None], past, now, encoding).any()
