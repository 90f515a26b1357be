"""Test which negatives are drawn, and how likely each is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tclgraph.arrays import IntArray
from tclgraph.sampling.negatives import pooled_negatives, uniform_negatives


def drawn(candidates: IntArray, true: IntArray, pool: int | None, seed: int) -> IntArray:
    random = np.random.default_rng(seed)
    if pool is None:
        return uniform_negatives(true, candidates, 5, random)
    return pooled_negatives(true, candidates, 5, pool, random)


@given(
    st.sets(st.integers(0, 30), min_size=2),
    st.one_of(st.none(), st.integers(1, 40)),
    st.integers(0, 99),
)
def test_negatives_are_candidates_other_than_the_true_target(
    members: set[int], pool: int | None, seed: int
) -> None:
    candidates = np.array(sorted(members))
    true = np.random.default_rng(seed).choice(candidates, size=50)
    negatives = drawn(candidates, true, pool, seed)
    assert negatives.shape == (50, 5)
    assert set(negatives.ravel().tolist()) <= members
    assert (negatives != true[:, None]).all()
    if pool is not None:
        assert len(np.unique(negatives)) <= max(pool, 2)


@pytest.mark.parametrize("pool", [None, 3])
def test_every_other_candidate_is_equally_likely(pool: int | None) -> None:
    candidates = np.arange(10, 18)
    true = np.full(40, 12)
    rounds = [drawn(candidates, true, pool, seed) for seed in range(2000)]
    counts = np.bincount(np.concatenate(rounds).ravel(), minlength=18)[10:]
    assert counts[2] == 0
    share = np.delete(counts, 2) / counts.sum()
    assert np.abs(share - 1 / 7).max() < 0.02


def test_a_single_candidate_gives_no_negatives() -> None:
    random = np.random.default_rng(0)
    assert uniform_negatives(np.zeros(3, int), np.zeros(1, int), 5, random).shape == (3, 0)
    assert pooled_negatives(np.zeros(3, int), np.zeros(1, int), 5, 9, random).shape == (3, 0)
