"""The Transformer over tokens: causality, padding, ages, and targets that are not known."""

import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor

from tclgraph.layers.token_transformer import TokenTransformer

NUM_TARGETS, WIDTH, LENGTH = 7, 6, 5


@pytest.fixture
def network() -> TokenTransformer:
    torch.manual_seed(0)
    network = TokenTransformer(
        NUM_TARGETS,
        WIDTH,
        num_heads=2,
        num_blocks=2,
        max_length=LENGTH,
        dropout=0.0,
        has_received_tokens=True,
    ).double()
    network.is_known[:-1] = 1.0
    return network


def states(network: TokenTransformer, tokens: list[list[int]], lengths: list[int]) -> Tensor:
    output: Tensor = network(network.token_vectors(), torch.tensor(tokens), torch.tensor(lengths))
    return output.detach()


def test_a_position_depends_on_itself_and_on_earlier_ones(network: TokenTransformer) -> None:
    tokens = [1, 2, 3, 4, 5]
    original = states(network, [tokens], [LENGTH])[0]
    for changed in range(LENGTH):
        other = states(network, [[*tokens[:changed], 6, *tokens[changed + 1 :]]], [LENGTH])[0]
        is_equal = (original == other).all(dim=1)
        assert is_equal.tolist() == [position < changed for position in range(LENGTH)]


def test_padding_changes_nothing(network: TokenTransformer) -> None:
    alone = states(network, [[0, 1, 2]], [3])[0]
    padded = states(network, [[5, 6, 0, 1, 2], [3, 4, 5, 6, 1]], [3, 5])[0]
    assert_allclose(padded[2:], alone, rtol=1e-12)


def test_the_newest_position_alone_is_the_same(network: TokenTransformer) -> None:
    vectors, token, length = network.token_vectors(), torch.tensor([[3, 0, 2], [1, 2, 3]]), [2, 3]
    every = network(vectors, token, torch.tensor(length))
    newest = network(vectors, token, torch.tensor(length), only_newest=True)
    assert_allclose(newest.detach(), every[:, -1:].detach(), rtol=1e-12)


def test_tokens_have_the_vectors_of_their_targets(network: TokenTransformer) -> None:
    is_hidden = torch.arange(NUM_TARGETS) == 2
    vectors = network.token_vectors(is_hidden)
    assert torch.equal(vectors[0], network.start)
    assert torch.equal(vectors[1], network.target[0])
    for unknown in (2, NUM_TARGETS - 1):  # hidden, and never known
        assert torch.equal(vectors[1 + unknown], network.unknown)
    received = vectors[1 + NUM_TARGETS :]
    assert network.received is not None
    assert torch.equal(received, vectors[1 : 1 + NUM_TARGETS] + network.received)
