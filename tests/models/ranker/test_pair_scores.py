"""Compare the scores of pairs and their hand-written gradients with plain torch."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional
from torch.testing import assert_close

from tclgraph.arrays import IntArray
from tclgraph.models.ranker import pair_score_kernels as kernels
from tclgraph.models.ranker import pair_scores as module
from tclgraph.models.ranker.pair_scores import PairWeights, pair_scores, pair_scores_by_steps

NUM_INPUTS, HIDDEN = 5, 6

Inputs = tuple[Tensor, IntArray, Tensor, PairWeights]


def inputs(num_pairs: list[int], seed: int, dtype: torch.dtype = torch.float64) -> Inputs:
    random = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=random, dtype=torch.float64).to(dtype)

    weights = PairWeights(
        normal(HIDDEN, NUM_INPUTS),
        normal(HIDDEN, HIDDEN),
        normal(HIDDEN),
        normal(1, HIDDEN),
        normal(1),
    )
    start = np.concatenate([[0], np.cumsum(num_pairs)]).astype(np.int64)
    query_bias = normal(len(num_pairs), HIDDEN).requires_grad_()
    weights = PairWeights(*(weight.requires_grad_() for weight in weights))
    return normal(int(start[-1]), NUM_INPUTS), start, query_bias, weights


def gradients(score: Tensor, case: Inputs, seed: int) -> tuple[Tensor, ...]:
    _, _, query_bias, weights = case
    direction = torch.randn(
        len(score), generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )
    return torch.autograd.grad(score, [query_bias, *weights], direction.to(score))


@pytest.mark.parametrize("pairs_per_chunk", [1, 4, 2048])
@given(num_pairs=st.lists(st.integers(0, 7), min_size=1, max_size=6), seed=st.integers(0, 99))
def test_scores_and_gradients_equal_those_of_torch(
    pairs_per_chunk: int, num_pairs: list[int], seed: int
) -> None:
    case = inputs(num_pairs, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_PAIRS_PER_CHUNK", pairs_per_chunk)
        score = pair_scores(*case)
        expected = pair_scores_by_steps(*case)
        assert_close(score, expected, rtol=1e-11, atol=1e-11)
        assert_close(
            gradients(score, case, seed), gradients(expected, case, seed), rtol=1e-10, atol=1e-10
        )
        with torch.no_grad():
            assert_close(pair_scores(*case), expected.detach(), rtol=1e-11, atol=1e-11)


def test_single_precision_is_as_exact_as_torchs() -> None:
    case = inputs([300, 0, 200], 0, torch.float32)
    score, expected = pair_scores(*case), pair_scores_by_steps(*case)
    assert_close(score, expected, rtol=1e-5, atol=1e-5)
    assert_close(gradients(score, case, 1), gradients(expected, case, 1), rtol=1e-4, atol=1e-4)


def test_the_activation_in_single_precision_has_an_error_below_5e_7() -> None:
    value = torch.linspace(-12.0, 12.0, 9001, requires_grad=True)
    expected = functional.gelu(value.double())
    (expected_slope,) = torch.autograd.grad(expected.sum(), value)
    hidden = value.detach().numpy()[:, None].copy()
    slope = np.empty_like(hidden)
    kernels.activate(np.array([0, len(hidden)]), np.zeros((1, 1), np.float32), hidden, slope)
    assert_close(hidden[:, 0], expected.detach().float().numpy(), rtol=2e-7, atol=5e-7)
    assert_close(slope[:, 0], expected_slope.numpy(), rtol=2e-7, atol=5e-7)
