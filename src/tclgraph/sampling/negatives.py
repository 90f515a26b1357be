"""Targets that did not happen."""

import numpy as np

from tclgraph.arrays import IntArray


def uniform_negatives(
    true: IntArray, candidates: IntArray, count: int, random: np.random.Generator
) -> IntArray:
    """For each true target, candidates drawn uniformly from all others, [event, count].

    `candidates` ascend and hold every true target. One candidate alone leaves nothing to draw.

    >>> random = np.random.default_rng(0)
    >>> uniform_negatives(np.array([2, 7]), np.array([2, 7]), 3, random).tolist()
    [[7, 7, 7], [2, 2, 2]]
    """
    if len(candidates) < 2:
        return np.empty((len(true), 0), dtype=np.int64)
    drawn = random.integers(len(candidates) - 1, size=(len(true), count))
    # Those from the true one on move up by one, which skips it.
    drawn += drawn >= np.searchsorted(candidates, true)[:, None]
    return candidates[drawn]


def pooled_negatives(
    true: IntArray, candidates: IntArray, count: int, pool_size: int, random: np.random.Generator
) -> IntArray:
    """The same from a few candidates that are drawn first, for all events together.

    Every other candidate is still equally likely to be an event's negative, but the events of a
    batch now meet the same ones.
    """
    if len(candidates) < 2:
        return np.empty((len(true), 0), dtype=np.int64)
    # At least two, so that something is left when an event's own target is in the pool.
    pool_size = min(max(pool_size, 2), len(candidates))
    pool = np.sort(random.choice(candidates, size=pool_size, replace=False))
    place = np.searchsorted(pool, true)
    is_inside = pool[np.minimum(place, pool_size - 1)] == true
    drawn = random.integers((pool_size - is_inside)[:, None], size=(len(true), count))
    drawn += is_inside[:, None] & (drawn >= place[:, None])
    return pool[drawn]
