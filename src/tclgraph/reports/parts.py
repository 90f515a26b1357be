"""The table of the leave-one-out study of the ranker."""

from collections.abc import Mapping

from tclgraph.reports.cells import METRICS, mean_and_deviation
from tclgraph.reports.table import Cell, Table
from tclgraph.studies.parts import PartsStudy
from tclgraph.studies.study import Entry, Results


def parts_table(study: PartsStudy, results: Mapping[Entry, Results]) -> Table:
    """Return the validation metrics of the ranker, complete and without each of its parts."""
    rows = list(results.values())
    return Table(
        name=study.file_name,
        title=f"The ranker without each of its parts on {study.log_title}",
        columns=("variant", "seeds", *METRICS, "new pairs: MR"),
        rows=tuple(
            (
                Cell(row.entry.name),
                Cell(str(len(row.outcomes))),
                *(Cell(mean_and_deviation(row.figures(metric), metric)) for metric in METRICS),
                Cell(mean_and_deviation(_new_pairs(row), "MR")),
            )
            for row in rows
        ),
        groups=(1,),
        note=_note(results[study.complete]),
    )


def _new_pairs(row: Results) -> list[float]:
    """Return the MR over events whose source has not interacted with the target before."""
    return [outcome.report.new["MR"] for outcome in row.outcomes if outcome.report.new is not None]


def _note(complete: Results) -> str:
    if not complete.outcomes:
        return "Nothing has been computed yet."
    outcome = complete.outcomes[0]
    return (
        f"Validation: {outcome.report.events:,} events, each ranked among all "
        f"{outcome.report.targets:,} targets; graph {outcome.kind}, split {outcome.split}."
        " All variants are trained for the same few epochs. A difference matters if it is large "
        "compared with the deviation of the complete model."
    )
