"""The choice of negatives: targets that an event is trained to score below its true target.

TCL draws its negatives with `draw_negatives`, as its settings `negatives` and `negative_pool` say.
With `negatives="all"` nothing is drawn: every other target is a negative. TDIG-MPNN and
DeepCoevolve use `uniform_negatives`.
"""

import numpy as np

from tclgraph.arrays import IntArray


def draw_negatives(
    true: IntArray,
    candidates: IntArray,
    count: int,
    random: np.random.Generator,
    *,
    pool_size: int | None,
) -> IntArray:
    """Draw negatives of each true target, from all others or from a shared pool, [event, count]."""
    if pool_size is None:
        return uniform_negatives(true, candidates, count, random)
    return pooled_negatives(true, candidates, count, pool_size, random)


def uniform_negatives(
    true: IntArray, candidates: IntArray, count: int, random: np.random.Generator
) -> IntArray:
    """Draw negatives for each true target uniformly from all other candidates, [event, count].

    Negatives are drawn with replacement. `candidates` is ascending and contains every true target.
    With fewer than two candidates there are no negatives: the result has no columns.

    >>> random = np.random.default_rng(0)
    >>> uniform_negatives(np.array([2, 7]), np.array([2, 7]), 3, random).tolist()
    [[7, 7, 7], [2, 2, 2]]
    """
    if len(candidates) < 2:
        return np.empty((len(true), 0), dtype=np.int64)
    drawn = random.integers(len(candidates) - 1, size=(len(true), count))
    # Indices from the true target on move up by one, which skips the true target.
    drawn += drawn >= np.searchsorted(candidates, true)[:, None]
    return candidates[drawn]


def pooled_negatives(
    true: IntArray, candidates: IntArray, count: int, pool_size: int, random: np.random.Generator
) -> IntArray:
    """Draw negatives as `uniform_negatives` does, but from a random pool that all events share.

    Every candidate other than the true target is still equally likely to be an event's negative.
    The events of a batch share negatives, so fewer sub-graphs have to be encoded.
    """
    if len(candidates) < 2:
        return np.empty((len(true), 0), dtype=np.int64)
    # With at least two candidates a negative remains when the pool contains the true target.
    pool_size = min(max(pool_size, 2), len(candidates))
    pool = np.sort(random.choice(candidates, size=pool_size, replace=False))
    position = np.searchsorted(pool, true)
    is_in_pool = pool[np.minimum(position, pool_size - 1)] == true
    drawn = random.integers((pool_size - is_in_pool)[:, None], size=(len(true), count))
    drawn += is_in_pool[:, None] & (drawn >= position[:, None])
    return pool[drawn]
