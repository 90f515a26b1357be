import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from torch.nn import functional

from tclgraph.arrays import FloatArray, IntArray, ScoreArray
from tclgraph.baselines.skip_gram import Noise, learn_pair, learn_walks, noise_of


def shares_of(noise: Noise, num_nodes: int) -> FloatArray:
    shares = np.zeros(num_nodes)
    np.add.at(shares, noise.node, noise.own_share)
    np.add.at(shares, noise.other, 1 - noise.own_share)
    return shares / len(noise.node)


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=50).filter(any))
def test_noise_has_the_shares_that_counts_say(counts: list[int]) -> None:
    count = np.array(counts)
    shares = shares_of(noise_of(count), len(count))
    assert_allclose(shares, count**0.75 / (count**0.75).sum(), atol=1e-12)
    assert (shares[count == 0] == 0).all()


def test_a_step_for_a_pair_is_that_of_automatic_differentiation() -> None:
    tables = np.random.default_rng(0).normal(size=(2, 7, 5))
    middle, others, rate = 3, np.array([3, 0, 6, 2]), 0.3  # the true one may be the same node
    vectors = torch.tensor(tables, requires_grad=True)
    score = vectors[1, torch.from_numpy(others)] @ vectors[0, middle]
    loss = -functional.logsigmoid(score[0]) - functional.logsigmoid(-score[1:]).sum()
    (gradient,) = torch.autograd.grad(loss, vectors)

    ours = learn_pair(middle, others, tables[0], tables[1], rate, np.empty(5))
    assert ours == pytest.approx(loss.item(), rel=1e-12)
    assert_allclose(tables, (vectors - rate * gradient).detach(), rtol=1e-12)


@pytest.mark.parametrize("score", [-200.0, 200.0])
def test_large_scores_do_no_harm(score: float) -> None:
    tables = np.ones((2, 3, 1), np.float32)
    tables[0] = score
    loss = learn_pair(0, np.array([1, 2]), tables[0], tables[1], 0.1, np.empty(1, np.float32))
    assert loss == pytest.approx(200.0, rel=1e-6)
    assert np.isfinite(tables).all()


def pairs_learned(
    walks: IntArray, window: int, noise: Noise, num_negatives: int, num_nodes: int
) -> FloatArray:
    """How often each node was the middle of each other one: [other, middle], less as noise.

    All scores are zero and the steps next to nothing, so each adds half of one to the other's
    output, where the middle has its one.
    """
    learned, rate = np.zeros((num_nodes, num_nodes)), 1e-9
    learn_walks(walks, window, num_negatives, noise, np.eye(num_nodes), learned, rate, 1)
    return learned / (rate / 2)


def test_pairs_are_those_within_a_window_near_ones_more_often() -> None:
    count = 20_000
    walks = np.tile([0, 1, 2, 3, 4, -1, -1], (count, 1))
    learned = pairs_learned(walks, 3, noise_of(np.ones(5, int)), 0, 5) / count
    distance = np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
    # A reach of 1, 2 or 3 is drawn for every middle; nobody is their own context.
    expected = np.where(distance > 0, np.clip(4 - distance, 0, 3) / 3, 0.0)
    assert np.abs(learned - expected).max() < 0.02


def test_negatives_come_from_the_noise_but_never_are_the_true_one() -> None:
    count = 20_000
    walks = np.tile([0, 1], (count, 1))
    noise = noise_of(np.array([0, 5, 1, 20, 7]))
    learned = pairs_learned(walks, 1, noise, 3, 5) / count
    expected = -3 * shares_of(noise, 5)
    assert np.abs(learned[2:, 0] - expected[2:]).max() < 0.02
    assert np.abs(learned[2:, 1] - expected[2:]).max() < 0.02
    assert learned[1, 0] == pytest.approx(1.0, abs=1e-4)  # true, and therefore never noise
    assert learned[1, 1] == pytest.approx(expected[1], abs=0.02)


def test_the_loss_is_the_mean_over_pairs() -> None:
    walks = np.array([[0, 1, 2, -1], [2, 1, -1, -1]])
    tables = np.zeros((2, 4, 8), np.float32)
    only_other, only_true = noise_of(np.array([0, 0, 0, 1])), noise_of(np.array([0, 1]))
    loss = learn_walks(walks, 2, 5, only_other, tables[0], tables[1], 0.0, 0)
    assert loss == pytest.approx(6 * np.log(2), rel=1e-6)
    loss = learn_walks(np.array([[0, 1]]), 1, 5, only_true, tables[0], tables[1], 0.0, 0)
    assert loss == pytest.approx((1 + 6) / 2 * np.log(2), rel=1e-6)


def test_equal_seeds_give_equal_tables() -> None:
    random = np.random.default_rng(0)
    walks = random.integers(9, size=(50, 12))
    noise = noise_of(np.bincount(walks.ravel()))
    start = random.normal(size=(2, 9, 16)).astype(np.float32)

    def learned(seed: int) -> ScoreArray:
        tables = start.copy()
        learn_walks(walks, 4, 5, noise, tables[0], tables[1], 0.05, seed)
        return tables

    assert_array_equal(learned(1), learned(1))
    assert (learned(1) != learned(2)).any()
    assert (learned(1) != start).any()
