import numpy as np
import pytest

from tclgraph.arrays import BoolArray
from tclgraph.encoding.dropout_kernels import NUM_RANDOM_VALUES, choose_kept

NUM_ROWS, WIDTH = 2_000, 64


def choose(seed: int, share: float) -> BoolArray:
    """Return the choice for rows of 500 instances, singletons among them, at four depths."""
    instance, depth = np.divmod(np.arange(NUM_ROWS), 4)
    is_kept = np.empty((NUM_ROWS, WIDTH), dtype=bool)
    choose_kept(seed, round(share * NUM_RANDOM_VALUES), instance - 100, depth, is_kept)
    return is_kept


@pytest.mark.parametrize("share", [0.1, 0.4, 0.9])
def test_the_share_of_numbers_is_kept(share: float) -> None:
    is_kept = choose(5, share)
    deviation = (share * (1 - share)) ** 0.5
    assert abs(is_kept.mean() - share) < 5 * deviation / is_kept.size**0.5
    assert abs(is_kept.mean(axis=0) - share).max() < 5 * deviation / NUM_ROWS**0.5
    assert abs(is_kept.mean(axis=1) - share).max() < 6 * deviation / WIDTH**0.5


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("distance", [1, 2, 4, 16])
def test_numbers_nearby_are_independent(axis: int, distance: int) -> None:
    signs = np.where(choose(7, 0.5), 1, -1)
    product = signs * np.roll(signs, distance, axis=axis)
    assert abs(product.mean()) < 5 / product.size**0.5


def test_another_seed_is_another_choice() -> None:
    share_of_equal = (choose(1, 0.5) == choose(2, 0.5)).mean()
    assert abs(share_of_equal - 0.5) < 5 * 0.5 / (NUM_ROWS * WIDTH) ** 0.5
    assert (choose(1, 0.5) == choose(1, 0.5)).all()


def test_a_row_has_the_same_choice_in_any_batch() -> None:
    is_kept = np.empty((1, WIDTH), dtype=bool)
    choose_kept(3, NUM_RANDOM_VALUES // 2, np.array([7]), np.array([2]), is_kept)
    np.testing.assert_array_equal(is_kept[0], choose(3, 0.5)[4 * 107 + 2])
