"""Breakdowns of the overall comparison: by history of the pair and of its nodes, by time, and model
by model.
"""

import statistics
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from tclgraph.arrays import BoolArray
from tclgraph.evaluation.metrics import LOWER_IS_BETTER, metrics
from tclgraph.evaluation.report import decimals
from tclgraph.evaluation.significance import Difference, Resamples
from tclgraph.reports.cells import INTERVALS, borders, with_interval
from tclgraph.reports.table import Cell, Table, emphasize
from tclgraph.studies.overall import OverallStudy
from tclgraph.studies.pair_groups import BOTH_SEEN, pair_groups, unseen_groups
from tclgraph.studies.study import Entry, Results

_DAY = 86_400.0


def pairs_table(study: OverallStudy, results: Mapping[Entry, Results]) -> Table:
    """Group test events by whether the pair occurred in training, only after it, or never."""
    return _groups_table(
        study,
        results,
        pair_groups(study.log.split),
        name="pairs",
        title="Test figures by when the pair first occurred",
    )


def unseen_table(study: OverallStudy, results: Mapping[Entry, Results]) -> Table | None:
    """Group test events by which of their nodes are unseen; return None if none is."""
    groups = unseen_groups(study.log.split)
    if groups[BOTH_SEEN].all():
        return None
    return _groups_table(
        study,
        results,
        groups,
        name="unseen",
        title="Test figures by whether source and target occur in training",
    )


def _groups_table(
    study: OverallStudy,
    results: Mapping[Entry, Results],
    groups: Mapping[str, BoolArray],
    *,
    name: str,
    title: str,
) -> Table:
    """Return the MR and Hit@10 of every model in every group that is not empty."""
    rows = [row for row in results.values() if row.outcomes]
    shown = {group: is_member for group, is_member in groups.items() if is_member.any()}
    columns = [
        _mean_column(rows, is_member, metric)
        for is_member in shown.values()
        for metric in ("MR", "Hit@10")
    ]
    return Table(
        name=f"{study.file_name}-{name}",
        title=f"{title}, on {study.log_title}",
        columns=(
            "model",
            *(f"{group}: {metric}" for group in shown for metric in ("MR", "Hit@10")),
        ),
        rows=_rows(rows, columns),
        groups=borders([row.entry.role for row in rows]),
        note="Number of test events: "
        + ", ".join(f"{group} {is_member.sum():,}" for group, is_member in shown.items())
        + ". Figures are means over seeds.",
        is_shown_in_terminal=False,
    )


def quarters_table(study: OverallStudy, results: Mapping[Entry, Results]) -> Table:
    """Return the MR in each quarter of the test events: does it grow with time since training?"""
    split = study.log.split
    rows = [row for row in results.values() if row.outcomes]
    day = (split.events.time - split.events.time[split.train_end - 1]) / _DAY
    num_events = split.sizes["test"]
    columns, names = [], []
    for start, stop in pairwise(np.linspace(0, num_events, 5).astype(int).tolist()):
        if start < stop:
            is_member = np.zeros(num_events, dtype=bool)
            is_member[start:stop] = True
            columns.append(_mean_column(rows, is_member, "MR"))
            first_day, last_day = day[split.valid_end + start], day[split.valid_end + stop - 1]
            names.append(f"days {first_day:.0f} to {last_day:.0f}")
    return Table(
        name=f"{study.file_name}-quarters",
        title=f"MR by time since training, on {study.log_title}",
        columns=("model", *names),
        rows=_rows(rows, columns),
        groups=borders([row.entry.role for row in rows]),
        note="Columns are quarters of the test events, by days since the last training event; the "
        f"training events cover {-day[0]:.0f} days. Figures are means over seeds.",
        is_shown_in_terminal=False,
    )


def _mean_column(rows: Sequence[Results], is_member: BoolArray, metric: str) -> list[Cell]:
    """Format the mean over seeds of a metric of some test events."""
    digits = decimals(metric)
    means = [
        round(statistics.fmean(metrics(ranks[is_member])[metric] for ranks in row.ranks), digits)
        for row in rows
    ]
    marks = emphasize(means, lower_is_better=metric in LOWER_IS_BETTER)
    return [Cell(f"{mean:.{digits}f}", mark) for mean, mark in zip(means, marks, strict=True)]


def _rows(
    rows: Sequence[Results], columns: Sequence[Sequence[Cell]]
) -> tuple[tuple[Cell, ...], ...]:
    return tuple(
        (Cell(row.entry.name), *(column[number] for column in columns))
        for number, row in enumerate(rows)
    )


def comparison_tables(study: OverallStudy, results: Mapping[Entry, Results]) -> list[Table]:
    """Compare every two models, in a table for each metric."""
    rows = [row for row in results.values() if row.outcomes]
    return [_comparison_table(study, rows, metric) for metric in ("MRR", "MR")]


def _comparison_table(study: OverallStudy, rows: Sequence[Results], metric: str) -> Table:
    drawn = Resamples([np.stack(row.ranks) for row in rows], metric)
    cells = []
    for number, row in enumerate(rows):
        marks = [
            _mark(drawn.difference(number, other), metric) if number != other else Cell("")
            for other in range(len(rows))
        ]
        cells.append((Cell(f"{number + 1} {row.entry.name}"), *marks))
    return Table(
        name=f"{study.file_name}-{metric}-compared",
        title=f"Pairwise comparison by {metric} on {study.log_title}",
        columns=("row against column", *(str(number + 1) for number in range(len(rows)))),
        rows=tuple(cells),
        groups=borders([row.entry.role for row in rows]),
        note="+ the row is better; − the row is worse; · no clear difference: 0 is inside the "
        "interval. The difference (row minus column) and its interval are in the CSV file and in "
        f"the tooltip of each mark in the report. {INTERVALS}",
        is_shown_in_terminal=False,
    )


def _mark(difference: Difference, metric: str) -> Cell:
    mark = "·"
    if difference.is_clear:
        mark = "+" if (difference.mean < 0) == (metric in LOWER_IS_BETTER) else "−"
    return Cell(mark, stands_for=with_interval(difference, metric))
