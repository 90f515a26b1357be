"""Compare the scores and hand-written gradients with the formula and torch's autograd."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from tclgraph.layers.conditioned_scores import ConditionedScores

Score = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]

NUM_FEATURES, NUM_CANDIDATES, HIDDEN = 5, 7, 6
# Queries are processed in chunks of eight.
NUM_QUERIES = (0, 1, 7, 8, 9, 16, 21)


def random_network() -> ConditionedScores:
    torch.manual_seed(0)
    return ConditionedScores(NUM_FEATURES, HIDDEN).double()


def inputs(num_queries: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    random = torch.Generator().manual_seed(num_queries)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=random, dtype=torch.float64)

    features = normal(num_queries, NUM_FEATURES, NUM_CANDIDATES) * 3 + 1
    mean, inverse = normal(NUM_FEATURES), normal(NUM_FEATURES).exp()
    return features, mean, inverse, normal(num_queries, HIDDEN).requires_grad_()


def formula(network: ConditionedScores) -> Score:
    """Return a function that scores one candidate of one query at a time."""

    def score(features: Tensor, mean: Tensor, inverse: Tensor, coefficient: Tensor) -> Tensor:
        scores = torch.zeros(len(features), features.shape[2], dtype=features.dtype)
        for query in range(len(features)):
            for candidate in range(features.shape[2]):
                standard = (features[query, :, candidate] - mean) * inverse
                hidden = torch.clamp_min(network.weight @ standard + network.bias, 0)
                scores[query, candidate] = (coefficient[query] * hidden).sum()
        return scores

    return score


def scores_and_gradients(
    score: Score, network: ConditionedScores, arguments: tuple[Tensor, Tensor, Tensor, Tensor]
) -> list[Tensor]:
    scores = score(*arguments)
    # Every element has its own weight, so that swapped gradients do not go unnoticed.
    weight = torch.linspace(-1, 2, scores.numel(), dtype=scores.dtype).reshape(scores.shape)
    # Without queries the formula uses no parameter; adding 0 gives it a gradient of 0.
    learned = [network.weight, network.bias, arguments[3]]
    total = (scores * weight).sum() + 0 * sum(parameter.sum() for parameter in learned)
    return [scores, *torch.autograd.grad(total, learned)]


@pytest.mark.parametrize("num_queries", NUM_QUERIES)
def test_scores_and_gradients_equal_the_formula(num_queries: int) -> None:
    network, arguments = random_network(), inputs(num_queries)
    fast = scores_and_gradients(network, network, arguments)
    slow = scores_and_gradients(formula(network), network, arguments)
    assert fast[0].shape == (num_queries, NUM_CANDIDATES)
    assert_close(fast, slow, rtol=1e-10, atol=1e-10)


def test_a_second_backward_pass_gives_the_same_gradients() -> None:
    network, arguments = random_network(), inputs(3)
    scores = network(*arguments)
    first = torch.autograd.grad(scores.sum(), [network.weight, arguments[3]], retain_graph=True)
    again = torch.autograd.grad(scores.sum(), [network.weight, arguments[3]])
    assert_close(first, again, rtol=0, atol=0)
