"""The table of readings of the paper."""

from collections.abc import Mapping

from tclgraph.reports.table import Cell, Table
from tclgraph.reports.validation import SEEDS_AND_METRICS, validation_note, variant_cells
from tclgraph.studies.reading import ReadingStudy
from tclgraph.studies.study import Entry, Results


def reading_table(study: ReadingStudy, results: Mapping[Entry, Results]) -> Table:
    """Return the validation metrics of every reading, with the epochs that were chosen."""
    return Table(
        name=study.file_name,
        title=f"Readings of the paper on {study.log_title}",
        columns=("TCL with", *SEEDS_AND_METRICS, "best epochs"),
        rows=tuple((*variant_cells(row), Cell(_best_epochs(row))) for row in results.values()),
        groups=(1,),
        note=validation_note(
            results[study.defaults], "Every row differs from the first in one point."
        ),
    )


def _best_epochs(row: Results) -> str:
    """Return the epoch that validation chose, of every seed."""
    epochs = [outcome.learning.best_epoch for outcome in row.outcomes if outcome.learning]
    return ", ".join(map(str, epochs))
