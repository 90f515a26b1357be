"""The skip-gram against automatic differentiation, and the pairs and negatives it draws."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from torch.nn import functional

from tclgraph.arrays import FloatArray, IntArray, ScoreArray
from tclgraph.baselines.skip_gram import Noise, noise_of, train_pair, train_walks


def shares_of(noise: Noise, num_nodes: int) -> FloatArray:
    shares = np.zeros(num_nodes)
    np.add.at(shares, noise.node, noise.node_probability)
    np.add.at(shares, noise.alias, 1 - noise.node_probability)
    return shares / len(noise.node)


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=50).filter(any))
def test_nodes_are_drawn_in_proportion_to_their_count_to_the_power(counts: list[int]) -> None:
    count = np.array(counts)
    shares = shares_of(noise_of(count), len(count))
    assert_allclose(shares, count**0.75 / (count**0.75).sum(), atol=1e-12)
    assert (shares[count == 0] == 0).all()


def test_a_step_on_a_pair_equals_automatic_differentiation() -> None:
    tables = np.random.default_rng(0).normal(size=(2, 7, 5))
    center, contexts, rate = 3, np.array([3, 0, 6, 2]), 0.3  # the true context may be the center
    vectors = torch.tensor(tables, requires_grad=True)
    score = vectors[1, torch.from_numpy(contexts)] @ vectors[0, center]
    loss = -functional.logsigmoid(score[0]) - functional.logsigmoid(-score[1:]).sum()
    (gradient,) = torch.autograd.grad(loss, vectors)

    pair_loss = train_pair(center, contexts, tables[0], tables[1], rate, np.empty(5))
    assert pair_loss == pytest.approx(loss.item(), rel=1e-12)
    assert_allclose(tables, (vectors - rate * gradient).detach(), rtol=1e-12)


@pytest.mark.parametrize("score", [-200.0, 200.0])
def test_large_scores_do_not_overflow(score: float) -> None:
    tables = np.ones((2, 3, 1), np.float32)
    tables[0] = score
    loss = train_pair(0, np.array([1, 2]), tables[0], tables[1], 0.1, np.empty(1, np.float32))
    assert loss == pytest.approx(200.0, rel=1e-6)
    assert np.isfinite(tables).all()


def count_pairs(
    walks: IntArray, window: int, noise: Noise, num_negatives: int, num_nodes: int
) -> FloatArray:
    """Return how often each pair is trained on, [context, center]; negatives count as -1.

    All scores are zero and the steps are tiny. Input vectors are one-hot codes, so a step adds half
    the learning rate to the context's output vector, in the column of the center.
    """
    output, rate = np.zeros((num_nodes, num_nodes)), 1e-9
    train_walks(walks, window, num_negatives, noise, np.eye(num_nodes), output, rate, 1)
    return output / (rate / 2)


def test_pairs_are_within_the_window_and_near_pairs_are_more_frequent() -> None:
    count = 20_000
    walks = np.tile([0, 1, 2, 3, 4, -1, -1], (count, 1))
    frequency = count_pairs(walks, 3, noise_of(np.ones(5, int)), 0, 5) / count
    distance = np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
    # A reach of 1, 2 or 3 is drawn for every center; a position is not in its own window.
    expected = np.where(distance > 0, np.clip(4 - distance, 0, 3) / 3, 0.0)
    assert np.abs(frequency - expected).max() < 0.02


def test_negatives_follow_the_noise_and_are_never_the_true_context() -> None:
    count = 20_000
    walks = np.tile([0, 1], (count, 1))
    noise = noise_of(np.array([0, 5, 1, 20, 7]))
    frequency = count_pairs(walks, 1, noise, 3, 5) / count
    expected = -3 * shares_of(noise, 5)
    assert np.abs(frequency[2:, 0] - expected[2:]).max() < 0.02
    assert np.abs(frequency[2:, 1] - expected[2:]).max() < 0.02
    assert frequency[1, 0] == pytest.approx(1.0, abs=1e-4)  # the true context is no negative
    assert frequency[1, 1] == pytest.approx(expected[1], abs=0.02)


def test_loss_is_the_mean_over_pairs() -> None:
    walks = np.array([[0, 1, 2, -1], [2, 1, -1, -1]])
    tables = np.zeros((2, 4, 8), np.float32)
    only_other, only_true = noise_of(np.array([0, 0, 0, 1])), noise_of(np.array([0, 1]))
    loss = train_walks(walks, 2, 5, only_other, tables[0], tables[1], 0.0, 0)
    assert loss == pytest.approx(6 * np.log(2), rel=1e-6)
    loss = train_walks(np.array([[0, 1]]), 1, 5, only_true, tables[0], tables[1], 0.0, 0)
    assert loss == pytest.approx((1 + 6) / 2 * np.log(2), rel=1e-6)


def test_equal_seeds_give_equal_tables() -> None:
    random = np.random.default_rng(0)
    walks = random.integers(9, size=(50, 12))
    noise = noise_of(np.bincount(walks.ravel()))
    start = random.normal(size=(2, 9, 16)).astype(np.float32)

    def trained(seed: int) -> ScoreArray:
        tables = start.copy()
        train_walks(walks, 4, 5, noise, tables[0], tables[1], 0.05, seed)
        return tables

    assert_array_equal(trained(1), trained(1))
    assert (trained(1) != trained(2)).any()
    assert (trained(1) != start).any()
