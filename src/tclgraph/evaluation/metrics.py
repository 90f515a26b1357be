"""Figures from ranks, and how sure they are.

Hit@k is a percentage; MRR and NDCG@10 lie between 0 and 1; MR is a rank.
"""

from typing import TypeAlias

import numpy as np

from tclgraph.arrays import FloatArray

Metrics: TypeAlias = dict[str, float]
Intervals: TypeAlias = dict[str, tuple[float, float]]

HIT_DEPTHS = (1, 5, 10, 20)
NDCG_DEPTH = 10
METRIC_NAMES = ("MR", "MRR", *(f"Hit@{depth}" for depth in HIT_DEPTHS), f"NDCG@{NDCG_DEPTH}")
LOWER_IS_BETTER = frozenset({"MR"})

_RESAMPLES = 1_000


def contributions(ranks: FloatArray) -> FloatArray:
    """What a rank adds to each metric's mean; one row per rank, one column per `METRIC_NAMES`."""
    hits = [100.0 * (ranks <= depth) for depth in HIT_DEPTHS]
    gain = np.where(ranks <= NDCG_DEPTH, 1 / np.log2(1 + ranks), 0.0)
    return np.stack([ranks, 1 / ranks, *hits, gain], axis=1)


def metrics(ranks: FloatArray) -> Metrics:
    """Means over events.

    >>> metrics(np.array([1.0, 4.0]))["MRR"]
    0.625
    """
    means = contributions(ranks).mean(axis=0)
    return dict(zip(METRIC_NAMES, means.tolist(), strict=True))


def bootstrap_intervals(ranks: FloatArray, seed: int) -> Intervals:
    """Central 95 % of each metric over resampled sets of events.

    A metric knows an event by its rank alone, so drawing events with replacement is drawing how
    often each distinct rank occurs: the same distribution at a fraction of the work.
    """
    values, counts = np.unique(ranks, return_counts=True)
    random = np.random.default_rng(seed)
    drawn = random.multinomial(len(ranks), counts / len(ranks), size=_RESAMPLES)
    means = drawn @ contributions(values) / len(ranks)
    low, high = np.percentile(means, [2.5, 97.5], axis=0).tolist()
    return dict(zip(METRIC_NAMES, zip(low, high, strict=True), strict=True))
