"""The table and the series of a figure over one setting of TCL."""

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
    return Series.of_seeds(
        "TCL",
        {
            point.value: {metric: results[point.entry].figures(metric) for metric in metrics}
            for point in study.points
            if results[point.entry].outcomes
        },
    )
