"""Cells and sentences that the tables of several studies share."""

import statistics
from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from tclgraph.arrays import BoolArray
from tclgraph.evaluation.metrics import LOWER_IS_BETTER
from tclgraph.evaluation.report import decimals
from tclgraph.evaluation.significance import Difference, Resamples
from tclgraph.reports.table import Cell, emphasize
from tclgraph.studies.study import Results

METRICS = ("MR", "MRR", "Hit@10")
"""Metrics of most tables, in the order of their columns."""
NONE = "–"
"""Text of a cell without a figure."""
INTERVALS = (
    "Intervals are 95 % paired-bootstrap intervals over test events, with a t distribution over "
    "seeds. For a model with one seed they cover the events only and are too narrow."
)


def mean_and_deviation(figures: Sequence[float], metric: str) -> str:
    """Format the mean, and the sample deviation if there are two figures or more.

    >>> mean_and_deviation([1.0, 2.0], "MR"), mean_and_deviation([0.5], "MRR")
    ('1.50 ± 0.71', '0.5000')
    >>> mean_and_deviation([], "MR")
    '–'
    """
    if not figures:
        return NONE
    digits = decimals(metric)
    mean = f"{statistics.fmean(figures):.{digits}f}"
    return f"{mean} ± {statistics.stdev(figures):.{digits}f}" if len(figures) > 1 else mean


def metric_column(rows: Iterable[Sequence[float]], metric: str) -> list[Cell]:
    """Format a metric of all rows, given by seed, with the best and second best emphasized."""
    rows = list(rows)
    means = [
        round(statistics.fmean(figures), decimals(metric)) if figures else None for figures in rows
    ]
    marks = emphasize(means, lower_is_better=metric in LOWER_IS_BETTER)
    return [
        Cell(mean_and_deviation(figures, metric), mark)
        for figures, mark in zip(rows, marks, strict=True)
    ]


def metric_columns(rows: Sequence[Results]) -> list[tuple[Cell, ...]]:
    """Return the cells of `METRICS` for each row."""
    columns = [metric_column([row.figures(metric) for row in rows], metric) for metric in METRICS]
    return list(zip(*columns, strict=True))


def improvement(better: Results, worse: Results, metric: str) -> Difference:
    """Return by how much the first is better than the second; positive means better."""
    rows = (better, worse)
    return contrast(resamples(rows, metric), rows, ((better, 1.0), (worse, -1.0)), metric)


def resamples(rows: Sequence[Results], metric: str, events: BoolArray | None = None) -> Resamples:
    """Return bootstrap samples of a metric for some models, over all test events or some."""
    chosen = slice(None) if events is None else events
    return Resamples([np.stack(row.ranks)[:, chosen] for row in rows], metric)


def contrast(
    drawn: Resamples,
    rows: Sequence[Results],
    terms: Sequence[tuple[Results, float]],
    metric: str,
) -> Difference:
    """Return the weighted sum of a metric over the rows of `resamples`; positive means better."""
    sign = -1.0 if metric in LOWER_IS_BETTER else 1.0
    weights = [0.0] * len(rows)
    number = {id(row): number for number, row in enumerate(rows)}
    for row, weight in terms:
        weights[number[id(row)]] += sign * weight
    return drawn.contrast(weights)


def verdict(differences: Sequence[Difference]) -> Literal["better", "worse", "unclear"]:
    """Return "better" if all improvements are clear, and "worse" if the opposite of any is."""
    if all(difference.low > 0 for difference in differences):
        return "better"
    return "worse" if any(difference.high < 0 for difference in differences) else "unclear"


HOLDS = {"better": "yes", "worse": "no", "unclear": "unclear"}
"""Whether a claim holds, by its verdict."""


def with_interval(difference: Difference, metric: str) -> str:
    """Format a difference of a metric with its interval."""
    return interval(difference, decimals(metric))


def interval(difference: Difference, digits: int) -> str:
    """Format a difference with its interval, with a number of decimals.

    >>> interval(Difference(mean=0.5, low=-1.0, high=2.0), 1)
    '+0.5 [−1.0, +2.0]'
    """
    mean, low, high = (
        f"{value:+.{digits}f}" for value in (difference.mean, difference.low, difference.high)
    )
    return f"{mean} [{low}, {high}]".replace("-", "−")


def evaluation_sentence(rows: Iterable[Results]) -> str:
    """Return a sentence that says how the figures were computed."""
    outcome = next((row.outcomes[0] for row in rows if row.outcomes), None)
    if outcome is None:
        return "Nothing has been computed yet."
    return (
        f"Test: {outcome.report.events:,} events, each ranked among all {outcome.report.targets:,} "
        f"targets; graph {outcome.kind}, split {outcome.split}."
    )


def borders(groups: Sequence[object]) -> tuple[int, ...]:
    """Return the rows at which a new group begins.

    >>> borders(["a", "a", "b"])
    (2,)
    """
    return tuple(row for row in range(1, len(groups)) if groups[row] != groups[row - 1])
