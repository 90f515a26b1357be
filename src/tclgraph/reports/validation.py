"""What tables of variants on validation events have in common."""

from tclgraph.reports.cells import METRICS, mean_and_deviation
from tclgraph.reports.table import Cell
from tclgraph.studies.study import Results

SEEDS_AND_METRICS = ("seeds", *METRICS)
"""Columns that follow the name of a variant."""


def variant_cells(row: Results) -> tuple[Cell, ...]:
    """Return the name of a variant, its number of seeds, and its metrics."""
    return (
        Cell(row.entry.name),
        Cell(str(len(row.outcomes))),
        *(Cell(mean_and_deviation(row.figures(metric), metric)) for metric in METRICS),
    )


def validation_note(row: Results, remark: str) -> str:
    """Say which events were ranked, given the results of one variant, and add a remark."""
    if not row.outcomes:
        return "Nothing has been computed yet."
    outcome = row.outcomes[0]
    return (
        f"Validation: {outcome.report.events:,} events, each ranked among all "
        f"{outcome.report.targets:,} targets; graph {outcome.kind}, split {outcome.split}. {remark}"
    )
