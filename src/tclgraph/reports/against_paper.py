"""The measured figures of the overall comparison beside those that the paper prints."""

from collections.abc import Mapping

from tclgraph.evaluation.report import decimals
from tclgraph.evaluation.significance import difference_of_means
from tclgraph.reports.cells import NONE, evaluation_sentence, interval, mean_and_deviation
from tclgraph.reports.table import Cell, Table
from tclgraph.studies.overall import OverallStudy
from tclgraph.studies.published import published_overall
from tclgraph.studies.study import Entry, Results

_METRICS = ("MR", "Hit@10")
_RUNS_OF_PAPER = 5


def against_paper_table(study: OverallStudy, results: Mapping[Entry, Results]) -> Table | None:
    """Return measured minus printed figures; None if the paper has none of the trained models.

    A variant with settings of its own is compared with the figures of its model.
    """
    rows = [row for row in results.values() if row.outcomes and _published(row)]
    if not rows:
        return None
    columns = [(metric, f"paper: {metric}", f"{metric}, difference [95 %]") for metric in _METRICS]
    return Table(
        name=f"{study.file_name}-against-paper",
        title=f"Measured and printed figures on {study.log_title}",
        columns=("model", "seeds", *(column for names in columns for column in names)),
        rows=tuple(_row(row) for row in rows),
        note=f"{evaluation_sentence(rows)} A difference is the measured mean minus the printed "
        f"one, with the interval of Welch's t-test; the paper has {_RUNS_OF_PAPER} runs for each "
        "figure. With one seed there is no interval.",
        is_shown_in_terminal=False,
    )


def _published(row: Results) -> dict[str, tuple[float, float]]:
    """Return mean and deviation of the paper's figures by metric."""
    job = row.entry.jobs[0]
    printed = published_overall(job.model, job.spec.name)
    return {
        metric: (figure.mean, figure.deviation)
        for metric, figure in printed.items()
        if figure.deviation is not None
    }


def _row(row: Results) -> tuple[Cell, ...]:
    cells = [row.entry.name, str(len(row.outcomes))]
    for metric, (mean, deviation) in _published(row).items():
        figures, digits = row.figures(metric), decimals(metric)
        difference = NONE
        if len(figures) > 1:
            estimate = difference_of_means(figures, mean, deviation, _RUNS_OF_PAPER)
            difference = interval(estimate, digits)
        printed = f"{mean:.{digits}f} ± {deviation:.{digits}f}"
        cells += [mean_and_deviation(figures, metric), printed, difference]
    return tuple(map(Cell, cells))
