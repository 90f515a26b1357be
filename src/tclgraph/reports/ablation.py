"""The table of the ablation (Table 3)."""

from collections.abc import Mapping

from tclgraph.reports.cells import (
    INTERVALS,
    METRICS,
    NONE,
    evaluation_sentence,
    improvement,
    mean_and_deviation,
    metric_columns,
    with_interval,
)
from tclgraph.reports.table import Cell, Table
from tclgraph.studies.ablation import AblationStudy
from tclgraph.studies.study import Entry, Results

MODEL_TITLES = {"tcl": "TCL", "ranker": "the ranker"}
"""Models as a title names them."""


def ablation_table(study: AblationStudy, results: Mapping[Entry, Results]) -> Table:
    """Return the metrics of every variant, and how much worse than the full model it is."""
    rows = list(results.values())
    cells = []
    for row, metric_cells in zip(rows, metric_columns(rows), strict=True):
        valid = [outcome.valid["MR"] for outcome in row.outcomes]
        published = row.entry.published
        cells.append(
            (
                Cell(row.entry.name),
                Cell(str(len(row.outcomes))),
                *metric_cells,
                Cell(_increase(row, results[study.full])),
                Cell(mean_and_deviation(valid, "MR")),
                Cell(str(published["MR"]) if published else NONE),
            )
        )
    note = f"{evaluation_sentence(rows)} {INTERVALS}"
    if study.without_history is not None:
        note += (
            " The point process has no history features: compare it with the row without them. The "
            "paper's figures are those of TCL."
        )
    return Table(
        name=study.file_name,
        title=f"Ablation of {MODEL_TITLES[study.model]} on {study.log_title}",
        columns=(
            "variant",
            "seeds",
            *METRICS,
            "MR above full [95 %]",
            "valid: MR",
            "paper: MR",
        ),
        rows=tuple(cells),
        groups=(len(cells) - 1,),
        note=note,
    )


def _increase(row: Results, full: Results) -> str:
    """Format the MR of a variant minus the MR of the full model."""
    if row is full or not row.ranks or not full.ranks:
        return NONE
    return with_interval(improvement(full, row, "MR"), "MR")
