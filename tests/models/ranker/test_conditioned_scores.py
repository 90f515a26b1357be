"""Compare the scores and hand-written gradients with the formula and torch's autograd."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from tclgraph.arrays import ScoreArray
from tclgraph.features.block import NUM_MOVING, NUM_STEADY, CandidateFeatures
from tclgraph.features.columns import NUM_CANDIDATE_FEATURES
from tclgraph.models.ranker import conditioned_scores
from tclgraph.models.ranker.conditioned_scores import ConditionedScores, dense_scores

Inputs = tuple[CandidateFeatures, Tensor, Tensor, Tensor]
Score = Callable[[CandidateFeatures, Tensor, Tensor, Tensor], Tensor]

HIDDEN = 6


def random_network() -> ConditionedScores:
    torch.manual_seed(0)
    return ConditionedScores(NUM_CANDIDATE_FEATURES, HIDDEN).double()


def random_features(num_queries: int, num_candidates: int, seed: int) -> CandidateFeatures:
    """Return features of which every query changes up to three candidates."""
    random = np.random.default_rng(seed)
    num_changes = random.integers(0, min(num_candidates, 3) + 1, size=num_queries)
    changed = [random.permutation(num_candidates)[:number] for number in num_changes]

    def normal(*shape: int) -> ScoreArray:
        return random.normal(1, 3, size=shape).astype(np.float32)

    return CandidateFeatures(
        steady=normal(num_candidates, NUM_STEADY),
        change_start=np.concatenate([[0], np.cumsum(num_changes)]).astype(np.int64),
        change_column=np.concatenate([np.empty(0, np.int64), *changed]),
        change=normal(int(num_changes.sum()), NUM_STEADY),
        moving=normal(num_queries, NUM_MOVING, num_candidates),
    )


def inputs(num_queries: int, num_candidates: int, seed: int) -> Inputs:
    random = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=random, dtype=torch.float64)

    features = random_features(num_queries, num_candidates, seed)
    mean, inverse = normal(NUM_CANDIDATE_FEATURES), normal(NUM_CANDIDATE_FEATURES).exp()
    return features, mean, inverse, normal(num_queries, HIDDEN).requires_grad_()


def formula(network: ConditionedScores) -> Score:
    """Return a function that scores one candidate of one query at a time."""

    def score(
        features: CandidateFeatures, mean: Tensor, inverse: Tensor, coefficient: Tensor
    ) -> Tensor:
        dense = torch.from_numpy(features.to_dense()).double()
        scores = torch.zeros(len(dense), dense.shape[2], dtype=torch.float64)
        for query in range(len(dense)):
            for candidate in range(dense.shape[2]):
                standard = (dense[query, :, candidate] - mean) * inverse
                hidden = torch.clamp_min(network.weight @ standard + network.bias, 0)
                scores[query, candidate] = (coefficient[query] * hidden).sum()
        return scores

    return score


def scores_and_gradients(
    score: Score, network: ConditionedScores, arguments: Inputs
) -> list[Tensor]:
    scores = score(*arguments)
    # Every element has its own weight, so that swapped gradients do not go unnoticed.
    weight = torch.linspace(-1, 2, scores.numel(), dtype=scores.dtype).reshape(scores.shape)
    # Without queries the formula uses no parameter; adding 0 gives it a gradient of 0.
    learned = [network.weight, network.bias, arguments[3]]
    total = (scores * weight).sum() + 0 * sum(parameter.sum() for parameter in learned)
    return [scores, *torch.autograd.grad(total, learned)]


@given(st.integers(0, 6), st.integers(1, 20), st.integers(0, 999), st.booleans())
def test_scores_and_gradients_equal_the_formula(
    num_queries: int, num_candidates: int, seed: int, is_shared: bool
) -> None:
    network, arguments = random_network(), inputs(num_queries, num_candidates, seed)
    slow = scores_and_gradients(formula(network), network, arguments)
    with pytest.MonkeyPatch.context() as patch:
        if is_shared:  # several threads, each with some of the candidates
            patch.setattr(conditioned_scores, "_num_parts", lambda _: min(3, num_candidates))
        fast = scores_and_gradients(network, network, arguments)
    assert fast[0].shape == (num_queries, num_candidates)
    assert_close(fast, slow, rtol=1e-10, atol=1e-10)


def test_dense_scores_equal_the_formula() -> None:
    network, arguments = random_network(), inputs(4, 7, seed=0)
    features, mean, inverse, coefficient = arguments
    dense = torch.from_numpy(features.to_dense()).double()
    weight = network.weight * inverse
    scores = dense_scores(dense, weight, network.bias - weight @ mean, coefficient)
    assert_close(scores, formula(network)(*arguments))


def test_a_second_backward_pass_gives_the_same_gradients() -> None:
    network, arguments = random_network(), inputs(3, 7, seed=0)
    scores = network(*arguments)
    first = torch.autograd.grad(scores.sum(), [network.weight, arguments[3]], retain_graph=True)
    again = torch.autograd.grad(scores.sum(), [network.weight, arguments[3]])
    assert_close(first, again, rtol=0, atol=0)
