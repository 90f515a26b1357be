"""The paper's tables and figures of what came of studies; `findings` has what is behind them."""

import statistics
from collections.abc import Sequence

import numpy as np

from tclgraph.evaluation.metrics import LOWER_IS_BETTER
from tclgraph.evaluation.report import decimals
from tclgraph.evaluation.significance import Difference, Resamples
from tclgraph.events.log_spec import LogSpec
from tclgraph.events.split import Split
from tclgraph.events.statistics import describe
from tclgraph.reports.figures import Curve, Series
from tclgraph.reports.table import Cell, Table, emphasize
from tclgraph.studies.plans import Results, Study
from tclgraph.studies.published import DATA_SETS, published

SHOWN = ("MR", "MRR", "Hit@10")
NOTHING = "–"
INTERVALS = (
    "Intervals: 95 % of a paired bootstrap over test events and seeds; of a model with one seed "
    "they know of events only, and are too narrow."
)
_WHY = {
    "collegemsg": "The raw file is cut 60/20/20 by rows; then rows of valid and test are left out "
    "whose sender never sends, or whose receiver never receives, in train. That gives every "
    "figure of the paper's table. Repetition density is one less distinct pairs by rows, which is "
    "not what the paper's text says. Where the file has times to the minute only, days differ in "
    "the last digit.",
    "wikipedia": "The paper's figures could not be derived from the public file, neither by the "
    "filter that explains CollegeMsg (seen only) nor by cutting it in time or by degree. All of "
    "the public file is used here.",
    "lastfm": "The public file has 980 sources; the paper prints 1,000.",
    "reddit": "The paper prints 3,882 days where its text says one month, as the public file has "
    "it, and a repetition density that this file does not have.",
}


def spread(figures: Sequence[float], metric: str) -> str:
    """Mean and sample deviation, as far as there are seeds for one.

    >>> spread([1.0, 2.0], "MR"), spread([0.5], "MRR"), spread([], "MR")
    ('1.50 ± 0.71', '0.5000', '–')
    """
    if not figures:
        return NOTHING
    digits = decimals(metric)
    mean = f"{statistics.fmean(figures):.{digits}f}"
    return f"{mean} ± {statistics.stdev(figures):.{digits}f}" if len(figures) > 1 else mean


def column_of(results: Sequence[Results], metric: str) -> list[Cell]:
    """A metric of all rows, with the best and the second best."""
    means = [
        round(statistics.fmean(figures), decimals(metric)) if figures else None
        for figures in (one.figures(metric) for one in results)
    ]
    marks = emphasize(means, lower_is_better=metric in LOWER_IS_BETTER)
    return [
        Cell(spread(one.figures(metric), metric), mark)
        for one, mark in zip(results, marks, strict=True)
    ]


def gain_of(better: Results, worse: Results, metric: str) -> Difference:
    """By how much one is better than the other, whichever way the metric goes."""
    drawn = Resamples([np.stack(better.ranks), np.stack(worse.ranks)], metric)
    return drawn.difference(1, 0) if metric in LOWER_IS_BETTER else drawn.difference(0, 1)


def with_interval(found: Difference, metric: str) -> str:
    """As tables have it."""
    mean, low, high = (
        f"{one:+.{decimals(metric)}f}" for one in (found.mean, found.low, found.high)
    )
    return f"{mean} [{low}, {high}]".replace("-", "−")


def table_of_data_sets(opened: Sequence[tuple[LogSpec, Split]]) -> Table:
    """Table 1: measured, and what the paper prints in brackets; first the split that is used."""
    names = {
        "sources": "sources",
        "targets": "targets",
        "interactions": "interactions",
        "repetition": "repetition, %",
        "days": "days",
    }
    rows = []
    for data, split in opened:
        found = describe(split)
        measured = {
            "sources": f"{found.sources:,}",
            "targets": f"{found.targets:,}",
            "interactions": f"{found.interactions:,}",
            "repetition": f"{found.repetition_density:.2f}",
            "days": f"{found.days:.2f}",
        }
        paper = DATA_SETS.get(data.name, {})
        cells = [
            f"{text} ({paper[key]:,.{2 if '.' in text else 0}f})" if key in paper else text
            for key, text in measured.items()
        ]
        rows.append((Cell(data.name), *(Cell(one) for one in cells), Cell(str(split))))
    known = dict.fromkeys(data.name for data, _ in opened if data.name in _WHY)
    why = [f"{name}: {_WHY[name]}" for name in known]
    return Table(
        name="datasets",
        title="Data sets, measured (as printed in the paper)",
        columns=("data set", *names.values(), "split"),
        rows=tuple(rows),
        note=" ".join(["Of a set with two rows the first is the one that is used.", *why])
        if known
        else "",
    )


def table_of_models(study: Study, results: dict[str, Results]) -> Table:
    """Table 2 of one log."""
    found = list(results.values())
    columns = {metric: column_of(found, metric) for metric in SHOWN}
    rows = []
    for place, one in enumerate(found):
        printed = published(one.entry.published, study.data.name) if one.entry.published else None
        paper = [
            f"{printed[metric][0]:.2f} ± {printed[metric][1]:.2f}" if printed else NOTHING
            for metric in ("MR", "Hit@10")
        ]
        update = one.outcomes[0]["update"] if one.outcomes else NOTHING
        seeds = str(len(one.outcomes)) if one.entry.learns else NOTHING
        rows.append(
            (
                Cell(one.entry.name),
                Cell(update),
                Cell(seeds),
                *(columns[metric][place] for metric in SHOWN),
                *(Cell(text) for text in paper),
            )
        )
    gains = [_gain_row(found, preset) for preset in ("TCL, paper", "TCL, default")]
    groups = borders_of([one.entry.group for one in found])
    rows_of_gains = [row for row in gains if row is not None]
    return Table(
        name=file_name(study),
        title=f"Overall comparison on {titled(study)}",
        columns=("model", "update", "seeds", *SHOWN, "paper: MR", "paper: Hit@10"),
        rows=(*rows, *rows_of_gains),
        groups=(*groups, len(rows)) if rows_of_gains else groups,
        note=f"{rules_of(found)} Best bold, second best underlined, heuristics included. Mean ± sample "
        "deviation over seeds. Gain: over the best of heuristics and baselines.",
    )


def _gain_row(found: Sequence[Results], name: str) -> tuple[Cell, ...] | None:
    """How much better a preset is than the best of heuristics and baselines."""
    own = next((one for one in found if one.entry.name == name and one.outcomes), None)
    others = [one for one in found if one.entry.group != "TCL" and one.outcomes]
    if own is None or not others:
        return None
    cells = []
    for metric in SHOWN:
        figures = [statistics.fmean(one.figures(metric)) for one in others]
        lower = metric in LOWER_IS_BETTER
        best = min(figures) if lower else max(figures)
        gain = (statistics.fmean(own.figures(metric)) / best - 1) * (-100 if lower else 100)
        cells.append(Cell(f"{gain:+.1f} %".replace("-", "−")))
    return (
        Cell(f"gain of {name}"),
        Cell(""),
        Cell(""),
        *cells,
        Cell(""),
        Cell(""),
    )


def table_of_costs(study: Study, results: dict[str, Results]) -> Table:
    """Time, rate and memory of the same rows: of the first seed, which every row has."""
    rows = []
    for one in results.values():
        if not one.outcomes:
            continue
        first = one.outcomes[0]
        memory = first["peak_megabytes"]  # None where it was not kept
        learned = [Cell(NOTHING)] * 3
        if one.entry.learns:
            learned = [
                Cell(f"{first['best_epoch']}"),
                Cell(f"{first['seconds'] / 60:.1f}"),
                Cell(f"{first['trained_per_second']:,.0f}"),
            ]
        rows.append(
            (
                Cell(one.entry.name),
                Cell(f"{first['machine']['threads']}"),
                *learned,
                Cell(f"{first['ranked_per_second']:,.0f}"),
                Cell(NOTHING if memory is None else f"{memory:,}"),
            )
        )
    known = [one.entry.group for one in results.values() if one.outcomes]
    return Table(
        name=f"{file_name(study)}-cost",
        title=f"What each costs on {titled(study)}",
        columns=(
            "model",
            "threads",
            "best epoch",
            "training, min",
            "events trained/s",
            "events ranked/s",
            "memory, MB",
        ),
        rows=tuple(rows),
        groups=borders_of(known),
        note="Of the first seed. Training with validation after each epoch; `graphsage` is the "
        "cost of the best of five alone. Ranking is of all targets, the state following every "
        "event.",
    )


def series_of(results: dict[str, Results]) -> Series:
    """Of a figure, those points that are there."""
    known = [one for one in results.values() if one.outcomes]
    names = ("MR", "Hit@10")
    return Series(
        name="preset paper",
        x=tuple(one.entry.x or 0.0 for one in known),
        mean={name: tuple(statistics.fmean(one.figures(name)) for one in known) for name in names},
        deviation={
            name: tuple(
                statistics.stdev(one.figures(name)) if len(one.outcomes) > 1 else 0.0
                for one in known
            )
            for name in names
        },
    )


def table_of_points(study: Study, results: dict[str, Results]) -> Table:
    """The same as figures."""
    found = list(results.values())
    columns = {metric: column_of(found, metric) for metric in SHOWN}
    rows = []
    for place, one in enumerate(found):
        step = NOTHING
        if place and one.ranks and (before := found[place - 1]).ranks:
            step = with_interval(gain_of(one, before, "MR"), "MR")
        rows.append(
            (
                Cell(one.entry.name),
                Cell(str(len(one.outcomes))),
                *(columns[metric][place] for metric in SHOWN),
                Cell(step),
            )
        )
    return Table(
        name=file_name(study),
        title=f"TCL, preset paper, by {study.name} on {titled(study)}",
        columns=(study.name, "seeds", *SHOWN, "MR better than above by [95 %]"),
        rows=tuple(rows),
        note=f"{rules_of(found)} {INTERVALS}",
    )


def curves_of(results: dict[str, Results]) -> dict[str, list[Curve]]:
    """Of every model that learns."""
    return {
        name: [
            Curve(
                name=f"seed {outcome['seed']}",
                epoch=tuple(entry["epoch"] for entry in outcome["curve"]),
                loss=tuple(entry["loss"] for entry in outcome["curve"]),
                valid=tuple(entry["valid"]["MRR"] for entry in outcome["curve"]),
                best_epoch=outcome["best_epoch"],
            )
            for outcome in one.outcomes
        ]
        for name, one in results.items()
        if one.entry.learns and one.outcomes
    }


def best_heuristic(results: dict[str, Results]) -> tuple[str, float] | None:
    """Of validation MRR, which the curves show."""
    heuristics = [one for one in results.values() if not one.entry.learns and one.outcomes]
    if not heuristics:
        return None
    best = max(heuristics, key=lambda one: one.outcomes[0]["valid"]["MRR"])
    return best.entry.name, best.outcomes[0]["valid"]["MRR"]


def file_name(study: Study) -> str:
    """Stem of a study's files."""
    return f"{study.name}-{study.data.name}"


def titled(study: Study) -> str:
    """The log, as a heading calls it."""
    return f"{study.data.name} ({study.title})" if study.title else study.data.name


def rules_of(found: Sequence[Results]) -> str:
    """Under which rules the figures were found."""
    outcome = next((one.outcomes[0] for one in found if one.outcomes), None)
    if outcome is None:
        return "Nothing has been computed yet."
    return (
        f"Test: {outcome['parts']['test']:,} events, all {outcome['test']['targets']:,} targets "
        f"ranked; graph {outcome['graph']}, split {outcome['split']}."
    )


def borders_of(groups: Sequence[str]) -> tuple[int, ...]:
    """Where one group ends and the next begins."""
    return tuple(at for at in range(1, len(groups)) if groups[at] != groups[at - 1])
