"""Tables and series of the study of robustness to noise.

A loss is the metric without noise minus the metric with noise. On test events it is computed from
the ranks of every event, so that its interval is a paired bootstrap over events and seeds. On
validation events only the figures of each seed are stored, so that the interval is over seeds.
"""

import statistics
from collections.abc import Iterator, Mapping, Sequence

from tclgraph.evaluation.report import decimals
from tclgraph.evaluation.rules import Part
from tclgraph.evaluation.significance import Difference, mean_of_pairs
from tclgraph.reports.cells import (
    HOLDS,
    INTERVALS,
    METRICS,
    NONE,
    borders,
    contrast,
    evaluation_sentence,
    interval,
    mean_and_deviation,
    resamples,
    verdict,
    with_interval,
)
from tclgraph.reports.figures import Series
from tclgraph.reports.table import Cell, Table
from tclgraph.studies.noise import SHARES, NoiseStudy, NoisyModel
from tclgraph.studies.study import Entry, Results

_METRIC = "MRR"
"""The metric of the losses, by which every model chooses its epoch."""
_VALID_METRICS = ("MRR", "Hit@10")


def noise_table(study: NoiseStudy, results: Mapping[Entry, Results]) -> Table:
    """Return the metrics of every model and share on both parts, and what the model loses."""
    entries = [
        (model, results[model.clean], results[entry])
        for model in study.models
        for entry in model.entries
    ]
    rows = [row for _, _, row in entries]
    return Table(
        name=study.file_name,
        title=f"Random interactions among the training events on {study.log_title}",
        columns=(
            "model, random interactions",
            "seeds",
            *(f"valid: {metric}" for metric in _VALID_METRICS),
            f"valid: {_METRIC} lost",
            *METRICS,
            f"{_METRIC} lost [95 %]",
            f"{_METRIC} lost, %",
        ),
        rows=tuple(_row(clean, row) for _, clean, row in entries),
        groups=borders([model.name for model, _, _ in entries]),
        note=f"{evaluation_sentence(rows)} Random interactions are added to the training events, "
        "as a share of these; all models of a seed have the same. Validation and test events are "
        "the same as without noise, and are ranked after a history that contains it. Lost: the "
        "figure without noise minus the figure with noise, over the seeds that have both; on "
        f"validation, mean ± deviation over seeds. {INTERVALS}",
    )


def _row(clean: Results, row: Results) -> tuple[Cell, ...]:
    valid = [[outcome.valid[metric] for outcome in row.outcomes] for metric in _VALID_METRICS]
    valid_lost, lost, share = NONE, NONE, NONE
    if row is not clean and row.ranks and clean.ranks:
        rows = of_common_seeds([clean, row])
        valid_lost = mean_and_deviation(_lost_on_validation(*rows), _METRIC)
        terms = ((rows[0], 1.0), (rows[1], -1.0))
        difference = contrast(resamples(rows, _METRIC), rows, terms, _METRIC)
        lost = with_interval(difference, _METRIC)
        before = statistics.fmean(rows[0].figures(_METRIC))
        share = f"{100 * difference.mean / before:+.1f}".replace("-", "−")
    return (
        Cell(row.entry.name),
        Cell(str(len(row.outcomes))),
        *(
            Cell(mean_and_deviation(figures, metric))
            for figures, metric in zip(valid, _VALID_METRICS, strict=True)
        ),
        Cell(valid_lost),
        *(Cell(mean_and_deviation(row.figures(metric), metric)) for metric in METRICS),
        Cell(lost),
        Cell(share),
    )


def _lost_on_validation(clean: Results, noisy: Results) -> list[float]:
    """Return what each seed loses; both results have the same seeds."""
    return [
        before.valid[_METRIC] - after.valid[_METRIC]
        for before, after in zip(clean.outcomes, noisy.outcomes, strict=True)
    ]


def of_common_seeds(rows: Sequence[Results]) -> list[Results]:
    """Return the results of the seeds that all rows have, in the same order for all."""
    seeds = set.intersection(*({outcome.seed for outcome in row.outcomes} for row in rows))
    common = []
    for row in rows:
        chosen = Results(entry=row.entry)
        for outcome, ranks in zip(row.outcomes, row.ranks, strict=True):
            if outcome.seed in seeds:
                chosen.add(outcome, ranks)
        common.append(chosen)
    return common


def robustness_table(study: NoiseStudy, results: Mapping[Entry, Results]) -> Table:
    """Return whether TCL loses less than the other models, for every share."""
    rows = [
        (other.name, row)
        for other in study.others
        for number in range(1, len(SHARES))
        for row in _comparison(study, results, other, number)
    ]
    return Table(
        name=f"{study.file_name}-robustness",
        title=f"{_METRIC} lost to noise by TCL and by other models on {study.log_title}",
        columns=(
            "TCL loses less than",
            "random interactions, %",
            "seeds",
            "lost",
            "valid [95 %]",
            "holds on valid",
            "test [95 %]",
            "holds on test",
        ),
        rows=tuple(row for _, row in rows),
        groups=borders([name for name, _ in rows]),
        note="What the other model loses minus what TCL loses; positive: TCL loses less. Lost: the "
        f"difference of {_METRIC}, or its percentage of the model's {_METRIC} without noise. It is "
        "unclear what holds if 0 is inside the interval. Validation: t-interval over seeds. Test: "
        "paired bootstrap over events and seeds.",
    )


def _comparison(
    study: NoiseStudy, results: Mapping[Entry, Results], other: NoisyModel, number: int
) -> Iterator[tuple[Cell, ...]]:
    """Yield a row for the loss and one for the loss in percent."""
    ours = study.contrastive
    entries = (other.clean, other.entries[number], ours.clean, ours.entries[number])
    rows = of_common_seeds([results[entry] for entry in entries])
    num_seeds = len(rows[0].ranks)
    valid = _compared_on_validation(rows)
    test = _compared_on_test(rows) if num_seeds else (None, None)
    units = ((_METRIC, decimals(_METRIC)), (f"% of {_METRIC}", 1))
    for (unit, digits), on_valid, on_test in zip(units, valid, test, strict=True):
        yield (
            Cell(other.name),
            Cell(f"{100 * SHARES[number]:g}"),
            Cell(str(num_seeds)),
            Cell(unit),
            *_verdict_cells(on_valid, digits),
            *_verdict_cells(on_test, digits),
        )


def _compared_on_test(rows: Sequence[Results]) -> tuple[Difference, Difference]:
    """Compare the losses on test events, given the other model and TCL, each clean and noisy."""
    drawn = resamples(rows, _METRIC)
    absolute = drawn.contrast([1.0, -1.0, -1.0, 1.0])
    # What is left of TCL, minus what is left of the other.
    relative = drawn.difference_of_ratios((3, 2), (1, 0))
    return absolute, relative.scaled(100.0)


def _compared_on_validation(
    rows: Sequence[Results],
) -> tuple[Difference | None, Difference | None]:
    """Compare the losses of each seed on validation; there is no interval with less than two."""
    figures = [[outcome.valid[_METRIC] for outcome in row.outcomes] for row in rows]
    absolute, relative = [], []
    for clean, noisy, our_clean, our_noisy in zip(*figures, strict=True):
        absolute.append(clean - noisy - (our_clean - our_noisy))
        relative.append(100 * (our_noisy / our_clean - noisy / clean))
    if len(absolute) < 2:
        return None, None
    return mean_of_pairs(absolute), mean_of_pairs(relative)


def _verdict_cells(difference: Difference | None, digits: int) -> tuple[Cell, Cell]:
    if difference is None:
        return Cell(NONE), Cell(NONE)
    return Cell(interval(difference, digits)), Cell(HOLDS[verdict([difference])])


def noise_series(
    study: NoiseStudy,
    results: Mapping[Entry, Results],
    metrics: tuple[str, ...],
    part: Part,
) -> list[Series]:
    """Return a line for every model with results: metrics of a part over the share in percent."""
    lines = []
    for model in study.models:
        figures = {
            100 * share: [
                outcome.valid if part == "valid" else outcome.report.metrics
                for outcome in results[entry].outcomes
            ]
            for share, entry in zip(SHARES, model.entries, strict=True)
            if results[entry].outcomes
        }
        if figures:
            lines.append(
                Series.of_seeds(
                    model.name,
                    {
                        x: {metric: [seed[metric] for seed in seeds] for metric in metrics}
                        for x, seeds in figures.items()
                    },
                )
            )
    return lines
