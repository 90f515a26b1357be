"""A few queries at a time and by hand, against the formula and what torch makes of it."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from tclgraph.layers.conditioned_scores import ConditionedScores

Score = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]

NUM_FACTS, NUM_CANDIDATES, HIDDEN = 5, 7, 6
# Queries are taken eight at a time.
NUM_QUERIES = (0, 1, 7, 8, 9, 16, 21)


def network() -> ConditionedScores:
    torch.manual_seed(0)
    return ConditionedScores(NUM_FACTS, HIDDEN).double()


def inputs(num_queries: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    random = torch.Generator().manual_seed(num_queries)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=random, dtype=torch.float64)

    facts = normal(num_queries, NUM_FACTS, NUM_CANDIDATES) * 3 + 1
    mean, inverse = normal(NUM_FACTS), normal(NUM_FACTS).exp()
    return facts, mean, inverse, normal(num_queries, HIDDEN).requires_grad_()


def formula(one: ConditionedScores) -> Score:
    """One candidate of one query at a time."""

    def score(facts: Tensor, mean: Tensor, inverse: Tensor, by: Tensor) -> Tensor:
        scores = torch.zeros(len(facts), facts.shape[2], dtype=facts.dtype)
        for query in range(len(facts)):
            for candidate in range(facts.shape[2]):
                standard = (facts[query, :, candidate] - mean) * inverse
                hidden = torch.clamp_min(one.weight @ standard + one.bias, 0)
                scores[query, candidate] = (by[query] * hidden).sum()
        return scores

    return score


def scores_and_gradients(
    score: Score, one: ConditionedScores, given: tuple[Tensor, Tensor, Tensor, Tensor]
) -> list[Tensor]:
    scores = score(*given)
    # Every element weighs differently, so that no two gradients can be swapped unseen.
    weight = torch.linspace(-1, 2, scores.numel(), dtype=scores.dtype).reshape(scores.shape)
    # Without queries the formula touches nothing that is learned; so it does, and has a slope of 0.
    learned = [one.weight, one.bias, given[3]]
    total = (scores * weight).sum() + 0 * sum(each.sum() for each in learned)
    return [scores, *torch.autograd.grad(total, learned)]


@pytest.mark.parametrize("num_queries", NUM_QUERIES)
def test_scores_and_gradients_are_those_of_the_formula(num_queries: int) -> None:
    one, given = network(), inputs(num_queries)
    fast = scores_and_gradients(one, one, given)
    slow = scores_and_gradients(formula(one), one, given)
    assert fast[0].shape == (num_queries, NUM_CANDIDATES)
    assert_close(fast, slow, rtol=1e-10, atol=1e-10)


def test_gradients_stay_when_scores_are_used_twice() -> None:
    one, given = network(), inputs(3)
    scores = one(*given)
    first = torch.autograd.grad(scores.sum(), [one.weight, given[3]], retain_graph=True)
    again = torch.autograd.grad(scores.sum(), [one.weight, given[3]])
    assert_close(first, again, rtol=0, atol=0)
