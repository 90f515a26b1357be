"""Test that the halves of a pair network equal a network over the concatenated pair."""

import torch
from numpy.testing import assert_allclose

from tclgraph.layers.pair_decoder import PairDecoder, PairMerge


def test_merging_equals_an_mlp_of_the_concatenated_vectors() -> None:
    merge = PairMerge(3, 2, 4, 5).double()
    merge.first_half.bias.data.normal_()
    merge.output.bias.data.normal_()
    first, second = torch.randn(6, 3).double(), torch.randn(6, 2).double()
    weight = torch.cat([merge.first_half.weight, merge.second_half.weight], dim=1)
    hidden = torch.relu(torch.cat([first, second], dim=1) @ weight.T + merge.first_half.bias)
    expected = hidden @ merge.output.weight.T + merge.output.bias
    assert_allclose(merge(first, second).detach(), expected.detach(), atol=1e-12)


def test_all_pairs_from_halves_equal_pair_by_pair() -> None:
    decoder = PairDecoder(4).double()
    first, second = torch.randn(3, 4).double(), torch.randn(5, 4).double()
    together = decoder.of_halves(decoder.first_half(first)[:, None], decoder.second_half(second))
    assert together.shape == (3, 5)
    for row in range(3):
        for column in range(5):
            alone = decoder(first[row], second[column])
            assert_allclose(together[row, column].item(), alone.item(), atol=1e-12)
