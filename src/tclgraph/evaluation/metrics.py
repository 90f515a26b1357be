"""Metrics over ranks, and their bootstrap intervals.

To add a metric, add a line to `METRICS`. A metric is the mean of a value per event, which depends
only on the rank of the event's true target. Hit@k is a percentage.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from tclgraph.arrays import FloatArray

Metrics: TypeAlias = dict[str, float]
Intervals: TypeAlias = dict[str, tuple[float, float]]

_RESAMPLES = 1_000


@dataclass(frozen=True, slots=True)
class Metric:
    """A mean over events, and how to print it."""

    contribution: Callable[[FloatArray], FloatArray]
    """Value of each event, given the ranks of all events."""
    decimals: int = 2
    """Number of decimals to print."""
    lower_is_better: bool = False


def _hit_at(depth: int) -> Callable[[FloatArray], FloatArray]:
    return lambda ranks: np.where(ranks <= depth, 100.0, 0.0)


def _ndcg_at(depth: int) -> Callable[[FloatArray], FloatArray]:
    return lambda ranks: np.where(ranks <= depth, 1 / np.log2(1 + ranks), 0.0)


METRICS = {
    "MR": Metric(lambda ranks: ranks, lower_is_better=True),
    "MRR": Metric(lambda ranks: 1 / ranks, decimals=4),
    "Hit@1": Metric(_hit_at(1)),
    "Hit@5": Metric(_hit_at(5)),
    "Hit@10": Metric(_hit_at(10)),
    "Hit@20": Metric(_hit_at(20)),
    "NDCG@10": Metric(_ndcg_at(10), decimals=4),
}
METRIC_NAMES = tuple(METRICS)
LOWER_IS_BETTER = frozenset(name for name, metric in METRICS.items() if metric.lower_is_better)


def contributions(ranks: FloatArray) -> FloatArray:
    """Return the value of each event (row) for each metric (column, as in `METRIC_NAMES`)."""
    return np.stack([metric.contribution(ranks) for metric in METRICS.values()], axis=1)


def metrics(ranks: FloatArray) -> Metrics:
    """Return all metrics of the ranks of some events.

    >>> metrics(np.array([1.0, 4.0]))["MRR"]
    0.625
    """
    means = contributions(ranks).mean(axis=0)
    return dict(zip(METRIC_NAMES, means.tolist(), strict=True))


def bootstrap_intervals(ranks: FloatArray, seed: int) -> Intervals:
    """Return the central 95 % of each metric over events drawn with replacement.

    Events with the same rank contribute the same values. So instead of drawing events, it is
    enough to draw how often each distinct rank occurs, which has the same distribution and is much
    faster.
    """
    values, counts = np.unique(ranks, return_counts=True)
    random = np.random.default_rng(seed)
    drawn = random.multinomial(len(ranks), counts / len(ranks), size=_RESAMPLES)
    means = drawn @ contributions(values) / len(ranks)
    low, high = np.percentile(means, [2.5, 97.5], axis=0).tolist()
    return dict(zip(METRIC_NAMES, zip(low, high, strict=True), strict=True))
