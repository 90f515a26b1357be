"""The table and the series of a figure over one setting of TCL."""

import statistics
from collections.abc import Mapping

from tclgraph.reports.cells import (
    INTERVALS,
    METRICS,
    NONE,
    evaluation_sentence,
    improvement,
    metric_columns,
    with_interval,
)
from tclgraph.reports.figures import Series
from tclgraph.reports.table import Cell, Table
from tclgraph.studies.study import Entry, Results
from tclgraph.studies.sweep import SweepStudy


def sweep_table(study: SweepStudy, results: Mapping[Entry, Results]) -> Table:
    """Return the metrics for each value, and the improvement from value to value."""
    rows = list(results.values())
    cells = []
    for number, (row, metric_cells) in enumerate(zip(rows, metric_columns(rows), strict=True)):
        step = NONE
        if number and row.ranks and rows[number - 1].ranks:
            step = with_interval(improvement(row, rows[number - 1], "MR"), "MR")
        cells.append(
            (Cell(row.entry.name), Cell(str(len(row.outcomes))), *metric_cells, Cell(step))
        )
    return Table(
        name=study.file_name,
        title=f"TCL by {study.swept.label} on {study.log_title}",
        columns=(
            study.swept.name,
            "seeds",
            *METRICS,
            "MR improvement over the row above [95 %]",
        ),
        rows=tuple(cells),
        note=f"{evaluation_sentence(rows)} {INTERVALS}",
    )


def sweep_series(
    study: SweepStudy, results: Mapping[Entry, Results], metrics: tuple[str, ...]
) -> Series:
    """Return the points that have results."""
    points = [
        (point.value, results[point.entry])
        for point in study.points
        if results[point.entry].outcomes
    ]
    return Series(
        name="TCL",
        x=tuple(value for value, _ in points),
        mean={
            metric: tuple(statistics.fmean(row.figures(metric)) for _, row in points)
            for metric in metrics
        },
        deviation={
            metric: tuple(_deviation(row.figures(metric)) for _, row in points)
            for metric in metrics
        },
    )


def _deviation(figures: list[float]) -> float:
    return statistics.stdev(figures) if len(figures) > 1 else 0.0
