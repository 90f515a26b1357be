"""Tables and learning curves of the overall comparison (Table 2); `breakdowns` has more."""

import statistics
from collections.abc import Mapping, Sequence

from tclgraph.evaluation.metrics import LOWER_IS_BETTER
from tclgraph.evaluation.report import decimals
from tclgraph.reports.cells import METRICS, NONE, borders, evaluation_sentence, metric_columns
from tclgraph.reports.figures import Curve
from tclgraph.reports.table import Cell, Table
from tclgraph.studies.overall import OverallStudy
from tclgraph.studies.study import Entry, Results, Role
from tclgraph.studies.tuned import TunedSettings


def overall_table(study: OverallStudy, results: Mapping[Entry, Results]) -> Table:
    """Return the metrics of all models beside those that the paper prints."""
    rows = list(results.values())
    is_tuned = any(row.entry.tuned for row in rows)
    cells = [
        (
            Cell(row.entry.name),
            Cell(row.outcomes[0].update if row.outcomes else NONE),
            *([Cell(_num_trials(row.entry))] if is_tuned else []),
            Cell(str(len(row.outcomes)) if row.entry.is_learned else NONE),
            *metric_cells,
            *(Cell(_published(row.entry, metric)) for metric in ("MR", "Hit@10")),
        )
        for row, metric_cells in zip(rows, metric_columns(rows), strict=True)
    ]
    ours = [results[entry] for entry in (study.tcl, study.ranker) if entry is not None]
    gains = [gain for row in ours if (gain := _gain_row(row, rows, is_tuned=is_tuned)) is not None]
    groups = borders([row.entry.role for row in rows])
    note = (
        f"{evaluation_sentence(rows)} The best figure is bold, the second best underlined. "
        "Figures are the mean ± sample deviation over seeds. A gain is relative to the best "
        "heuristic or baseline."
    )
    if is_tuned:
        note += (
            " Trials: those of the search whose best settings a model has, see the table of tuned "
            "settings; without trials a model has its defaults or the settings beside its name."
        )
    if study.ranker is not None and study.ranker.published:
        note += " The paper's figures in the row of the ranker are those of TCL."
    return Table(
        name=study.file_name,
        title=f"Overall comparison on {study.log_title}",
        columns=(
            "model",
            "update",
            *(["trials"] if is_tuned else []),
            "seeds",
            *METRICS,
            "paper: MR",
            "paper: Hit@10",
        ),
        rows=(*cells, *gains),
        groups=(*groups, len(cells)) if gains else groups,
        note=note,
    )


def _published(entry: Entry, metric: str) -> str:
    return str(entry.published[metric]) if metric in entry.published else NONE


def _gain_row(ours: Results, rows: Sequence[Results], *, is_tuned: bool) -> tuple[Cell, ...] | None:
    """Return the gain of a model over the best of the models that are not ours."""
    others = [row for row in rows if row.entry.role is not Role.OURS and row.outcomes]
    if not ours.outcomes or not others:
        return None
    cells = []
    for metric in METRICS:
        figures = [statistics.fmean(row.figures(metric)) for row in others]
        is_lower_better = metric in LOWER_IS_BETTER
        best = min(figures) if is_lower_better else max(figures)
        ratio = statistics.fmean(ours.figures(metric)) / best
        gain = (ratio - 1) * (-100 if is_lower_better else 100)
        cells.append(Cell(f"{gain:+.1f} %".replace("-", "−")))
    empty = Cell("")
    before = [empty] * (3 if is_tuned else 2)
    return (Cell(f"gain of {ours.entry.name}"), *before, *cells, empty, empty)


def _num_trials(entry: Entry) -> str:
    return str(entry.tuned.trials) if entry.tuned else NONE


def tuning_table(study: OverallStudy) -> Table:
    """Return the settings that were tuned, and the searches that chose them."""
    tuned = [entry.tuned for entry in study.entries if entry.tuned]
    return Table(
        name=f"{study.file_name}-tuning",
        title=f"Tuned settings on {study.log_title}",
        columns=(
            "model",
            "settings",
            "trials",
            "minutes",
            "valid",
            "valid, defaults",
            "file of the trials",
        ),
        rows=tuple(_tuning_row(record) for record in tuned),
        note="Settings that `tclgraph tune` chose by validation events, with one seed. Trials: of "
        "how many combinations; a trial that is worse than the median ends early. Minutes: of all "
        "trials. Valid: the validation metric of the best trial, and that of the default settings. "
        "Each file has the command and all trials.",
        is_shown_in_terminal=False,
    )


def _tuning_row(record: TunedSettings) -> tuple[Cell, ...]:
    digits = decimals(record.metric)
    untuned = record.untuned_valid
    return (
        Cell(record.model),
        Cell(", ".join(f"{name} {value}" for name, value in record.settings.items())),
        Cell(f"{record.trials} of {record.combinations}"),
        Cell(f"{record.minutes:.0f}"),
        Cell(f"{record.metric} {record.valid:.{digits}f}"),
        Cell(NONE if untuned is None else f"{record.metric} {untuned:.{digits}f}"),
        Cell(record.file),
    )


def cost_table(study: OverallStudy, results: Mapping[Entry, Results]) -> Table:
    """Return time, speed and memory of the first seed of each model."""
    rows = [row for row in results.values() if row.outcomes]
    return Table(
        name=f"{study.file_name}-cost",
        title=f"Training time, speed and memory on {study.log_title}",
        columns=(
            "model",
            "threads",
            "best epoch",
            "training, min",
            "events trained/s",
            "events ranked/s",
            "memory, MB",
        ),
        rows=tuple(_cost_row(row) for row in rows),
        groups=borders([row.entry.role for row in rows]),
        note="First seed of each model. Training includes validation after each epoch; for "
        "`graphsage` it is the cost of the best of the five aggregators alone. Ranking scores all "
        "targets for every event, and a streaming model is updated after every event.",
        is_shown_in_terminal=False,
    )


def _cost_row(row: Results) -> tuple[Cell, ...]:
    outcome = row.outcomes[0]
    training = [Cell(NONE)] * 3
    if outcome.learning is not None:
        training = [
            Cell(f"{outcome.learning.best_epoch}"),
            Cell(f"{outcome.learning.seconds / 60:.1f}"),
            Cell(f"{outcome.learning.trained_per_second:,.0f}"),
        ]
    memory = outcome.peak_megabytes
    return (
        Cell(row.entry.name),
        Cell(f"{outcome.machine.threads}"),
        *training,
        Cell(f"{outcome.ranked_per_second:,.0f}"),
        Cell(NONE if memory is None else f"{memory:,}"),
    )


def learning_curves(results: Mapping[Entry, Results]) -> dict[str, list[Curve]]:
    """Return the learning curves of every learned model, by the name of its row."""
    curves: dict[str, list[Curve]] = {}
    for entry, row in results.items():
        for outcome in row.outcomes:
            if outcome.learning is not None:
                curve = outcome.learning.curve
                curves.setdefault(entry.name, []).append(
                    Curve(
                        name=f"seed {outcome.seed}",
                        epoch=tuple(record.epoch for record in curve),
                        loss=tuple(record.loss for record in curve),
                        valid=tuple(record.valid["MRR"] for record in curve),
                        best_epoch=outcome.learning.best_epoch,
                    )
                )
    return curves


def best_heuristic(results: Mapping[Entry, Results]) -> tuple[str, float] | None:
    """Return the heuristic with the best validation MRR, and that MRR."""
    heuristics = [
        (entry.name, row.outcomes[0].valid["MRR"])
        for entry, row in results.items()
        if entry.role is Role.HEURISTIC and row.outcomes
    ]
    return max(heuristics, key=lambda pair: pair[1], default=None)
