"""What is behind the figures: who is ranked well and when, what is clear, what parts are worth."""

import statistics
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from tclgraph.arrays import FloatArray
from tclgraph.evaluation.metrics import LOWER_IS_BETTER, metrics
from tclgraph.evaluation.report import decimals
from tclgraph.evaluation.significance import Difference, Resamples
from tclgraph.reports.summaries import (
    INTERVALS,
    NOTHING,
    SHOWN,
    borders_of,
    column_of,
    file_name,
    gain_of,
    rules_of,
    spread,
    titled,
    with_interval,
)
from tclgraph.reports.table import Cell, Table, emphasize
from tclgraph.studies.plans import Results, Study
from tclgraph.studies.published import ABLATION

_DAY = 86_400.0


def table_of_meetings(study: Study, results: dict[str, Results]) -> Table:
    """Of whom a model knows what to expect: pairs of training, pairs since, and strangers."""
    events, first_test = study.split.events, study.split.valid_end
    pair = events.pairs()
    _, first, which = np.unique(pair, return_index=True, return_inverse=True)
    met = first[which][first_test:]
    groups = {
        "met in train": met < study.split.train_end,
        "met since": (met >= study.split.train_end) & (met < np.arange(first_test, len(events))),
        "never met": met == np.arange(first_test, len(events)),
    }
    groups = {name: members for name, members in groups.items() if members.any()}
    known = [one for one in results.values() if one.outcomes]
    columns = [
        column
        for members in groups.values()
        for column in _figures_of([[ranks[members] for ranks in one.ranks] for one in known])
    ]
    return Table(
        name=f"{file_name(study)}-meetings",
        title=f"By when source and target first met, on {titled(study)}",
        columns=(
            "model",
            *(f"{name}: {metric}" for name in groups for metric in ("MR", "Hit@10")),
        ),
        rows=tuple(
            (Cell(one.entry.name), *(column[place] for column in columns))
            for place, one in enumerate(known)
        ),
        groups=borders_of([one.entry.group for one in known]),
        note="Test events: "
        + ", ".join(f"{members.sum():,} {name}" for name, members in groups.items())
        + ". Mean over seeds.",
    )


def table_of_quarters(study: Study, results: dict[str, Results]) -> Table:
    """How models do as training lies further back; intervals grow longer than any it has seen."""
    split = study.split
    borders = np.linspace(0, split.sizes["test"], 5).astype(int)
    time = split.events.time - split.events.time[split.train_end - 1]
    known = [one for one in results.values() if one.outcomes]
    columns, names = [], []
    for start, stop in pairwise(borders.tolist()):
        if start < stop:
            columns.append(
                _figures_of([[one[start:stop] for one in row.ranks] for row in known])[0]
            )
            days = (time[split.valid_end + start] / _DAY, time[split.valid_end + stop - 1] / _DAY)
            names.append(f"days {days[0]:.0f} to {days[1]:.0f}")
    return Table(
        name=f"{file_name(study)}-quarters",
        title=f"MR by time since training, on {titled(study)}",
        columns=("model", *names),
        rows=tuple(
            (Cell(one.entry.name), *(column[place] for column in columns))
            for place, one in enumerate(known)
        ),
        groups=borders_of([one.entry.group for one in known]),
        note="Quarters of the test events, by days since the last training event; training itself "
        f"covers {(time[split.train_end - 1] - time[0]) / _DAY:.0f} days. Mean over seeds.",
    )


def _figures_of(ranks: Sequence[Sequence[FloatArray]]) -> tuple[list[Cell], list[Cell]]:
    """MR and Hit@10 of some events, from each row's ranks by seed."""
    columns = []
    for metric in ("MR", "Hit@10"):
        means = [
            round(statistics.fmean(metrics(one)[metric] for one in seeds), decimals(metric))
            for seeds in ranks
        ]
        marks = emphasize(means, lower_is_better=metric in LOWER_IS_BETTER)
        columns.append(
            [
                Cell(f"{mean:.{decimals(metric)}f}", mark)
                for mean, mark in zip(means, marks, strict=True)
            ]
        )
    return columns[0], columns[1]


def table_of_comparisons(study: Study, results: dict[str, Results]) -> list[Table]:
    """Which differences are clear, of every two models; a table for each metric."""
    known = [one for one in results.values() if one.outcomes]
    tables = []
    for metric in ("MRR", "MR"):
        drawn = Resamples([np.stack(one.ranks) for one in known], metric)
        rows = []
        for place, one in enumerate(known):
            marks = [
                _mark(drawn.difference(place, other), metric) if place != other else Cell("")
                for other in range(len(known))
            ]
            rows.append((Cell(f"{place + 1} {one.entry.name}"), *marks))
        tables.append(
            Table(
                name=f"{file_name(study)}-{metric}-compared",
                title=f"Which {metric} is better on {titled(study)}",
                columns=("row against column", *(str(number + 1) for number in range(len(known)))),
                rows=tuple(rows),
                groups=borders_of([one.entry.group for one in known]),
                note="+ the row is better, − it is worse, · they cannot be told apart, as 0 is in "
                "the interval of their difference. Pointed at, a mark tells the row's less the "
                f"column's, with that interval; the CSV has these in place of marks. {INTERVALS}",
            )
        )
    return tables


def _mark(difference: Difference, metric: str) -> Cell:
    mark = "·"
    if difference.is_clear:
        mark = "+" if (difference.mean < 0) == (metric in LOWER_IS_BETTER) else "−"
    return Cell(mark, stands_for=with_interval(difference, metric))


def table_of_ablation(study: Study, results: dict[str, Results]) -> Table:
    """Table 3 of one preset: every variant, and how much worse it is than the whole."""
    found, full = list(results.values()), results["full"]
    columns = {metric: column_of(found, metric) for metric in SHOWN}
    rows = []
    for place, one in enumerate(found):
        paper = ABLATION.get(one.entry.name, {}).get(study.data.name)
        rows.append(
            (
                Cell(one.entry.name),
                Cell(str(len(one.outcomes))),
                *(columns[metric][place] for metric in SHOWN),
                Cell(_worse_by(one, full)),
                Cell(spread([outcome["valid"]["MR"] for outcome in one.outcomes], "MR")),
                Cell(NOTHING if paper is None else f"{paper:.2f}"),
            )
        )
    preset = study.name.removeprefix("ablation-")
    return Table(
        name=file_name(study),
        title=f"Ablation of TCL, preset {preset}, on {titled(study)}",
        columns=(
            "variant",
            "seeds",
            *SHOWN,
            "MR worse than full by [95 %]",
            "valid: MR",
            "paper: MR",
        ),
        rows=tuple(rows),
        groups=(len(rows) - 1,),
        note=f"{rules_of(found)} {INTERVALS}"
        + (
            " The terms of history need a contrast with all targets, which the point process has "
            "not: compare it with the row without them."
            if preset == "default"
            else ""
        ),
    )


def _worse_by(one: Results, full: Results) -> str:
    if one is full or not one.ranks or not full.ranks:
        return NOTHING
    return with_interval(gain_of(full, one, "MR"), "MR")
