"""The table of the leave-one-out study of the ranker."""

from collections.abc import Mapping

from tclgraph.reports.cells import mean_and_deviation
from tclgraph.reports.table import Cell, Table
from tclgraph.reports.validation import SEEDS_AND_METRICS, validation_note, variant_cells
from tclgraph.studies.parts import PartsStudy
from tclgraph.studies.study import Entry, Results

_REMARK = (
    "All variants are trained for the same few epochs. A difference matters if it is large "
    "compared with the deviation of the complete model."
)


def parts_table(study: PartsStudy, results: Mapping[Entry, Results]) -> Table:
    """Return the validation metrics of the ranker, complete and without each of its parts."""
    return Table(
        name=study.file_name,
        title=f"The ranker without each of its parts on {study.log_title}",
        columns=("variant", *SEEDS_AND_METRICS, "new pairs: MR"),
        rows=tuple(
            (*variant_cells(row), Cell(mean_and_deviation(_new_pairs(row), "MR")))
            for row in results.values()
        ),
        groups=(1,),
        note=validation_note(results[study.complete], _REMARK),
    )


def _new_pairs(row: Results) -> list[float]:
    """Return the MR over events whose source has not interacted with the target before."""
    return [outcome.report.new["MR"] for outcome in row.outcomes if outcome.report.new is not None]
