"""Compare the mixer with loops over rows, slots and channels."""

import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn
from torch.nn import functional

from tclgraph.layers.mixer import Mixer, MixerBlock

WIDTH = 4


def random_mixer(slots: int, dropout: float = 0.0) -> Mixer:
    """Return a mixer in double precision, with no weight at a special value such as 0."""
    torch.manual_seed(slots)
    mixer = Mixer(slots, WIDTH, layers=2, dropout=dropout).double()
    with torch.no_grad():
        for weight in mixer.parameters():
            weight.add_(0.3 * torch.randn_like(weight))
    return mixer


def normed(norm: nn.LayerNorm, vector: Tensor) -> Tensor:
    return functional.layer_norm(vector, vector.shape, norm.weight, norm.bias, norm.eps)


def perceptron(expand: nn.Linear, contract: nn.Linear, vector: Tensor) -> Tensor:
    hidden = functional.gelu(expand.weight @ vector + expand.bias)
    return contract.weight @ hidden + contract.bias


def mix_by_loops(mixer: Mixer, slots: list[Tensor]) -> Tensor:
    """Return the vector of a single row, given as a list of slots."""
    for block in mixer.blocks:
        assert isinstance(block, MixerBlock)
        before = torch.stack([normed(block.slot_norm, slot) for slot in slots])
        columns = [
            perceptron(block.slot_expand, block.slot_contract, before[:, channel])
            for channel in range(before.shape[1])
        ]
        mixed = torch.stack(columns, dim=1)
        slots = [slot + mixed[number] for number, slot in enumerate(slots)]
        slots = [
            slot
            + perceptron(
                block.channel_expand, block.channel_contract, normed(block.channel_norm, slot)
            )
            for slot in slots
        ]
    total = torch.zeros_like(slots[0])
    for slot in slots:
        total = total + normed(mixer.norm, slot)
    return total / len(slots)


@pytest.mark.parametrize("slots", [1, 3, 4])
def test_mixing_equals_loops(slots: int) -> None:
    mixer = random_mixer(slots)
    inputs = torch.randn(slots, 5, WIDTH, dtype=torch.float64)
    expected = torch.stack([mix_by_loops(mixer, list(inputs[:, row])) for row in range(5)])
    assert_allclose(mixer(inputs).detach(), expected.detach(), atol=1e-12)


def test_rows_are_independent() -> None:
    mixer = random_mixer(3)
    inputs = torch.randn(3, 5, WIDTH, dtype=torch.float64)
    assert_allclose(mixer(inputs[:, 2:4]).detach(), mixer(inputs)[2:4].detach(), atol=1e-12)


def test_dropout_comes_from_the_given_generator() -> None:
    mixer = random_mixer(3, dropout=0.5)
    inputs = torch.randn(3, 5, WIDTH, dtype=torch.float64)
    generators = (torch.Generator().manual_seed(seed) for seed in (1, 1, 2))
    first, second, third = (mixer(inputs, generator) for generator in generators)
    assert torch.equal(first, second)
    assert not torch.equal(first, third)
    assert torch.equal(random_mixer(3)(inputs, torch.Generator()), mixer(inputs))
