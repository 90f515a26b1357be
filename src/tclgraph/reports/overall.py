"""Tables and learning curves of the overall comparison (Table 2); `breakdowns` has more."""

import statistics
from collections.abc import Mapping, Sequence

from tclgraph.evaluation.metrics import LOWER_IS_BETTER
from tclgraph.reports.cells import METRICS, NONE, borders, evaluation_sentence, metric_columns
from tclgraph.reports.figures import Curve
from tclgraph.reports.table import Cell, Table
from tclgraph.studies.overall import OverallStudy
from tclgraph.studies.study import Entry, Results, Role


def overall_table(study: OverallStudy, results: Mapping[Entry, Results]) -> Table:
    """Return the metrics of all models beside those that the paper prints."""
    rows = list(results.values())
    cells = [
        (
            Cell(row.entry.name),
            Cell(row.outcomes[0].update if row.outcomes else NONE),
            Cell(str(len(row.outcomes)) if row.entry.is_learned else NONE),
            *metric_cells,
            *(Cell(_published(row.entry, metric)) for metric in ("MR", "Hit@10")),
        )
        for row, metric_cells in zip(rows, metric_columns(rows), strict=True)
    ]
    ours = [results[entry] for entry in (study.tcl, study.ranker) if entry is not None]
    gains = [gain for row in ours if (gain := _gain_row(row, rows)) is not None]
    groups = borders([row.entry.role for row in rows])
    note = (
        f"{evaluation_sentence(rows)} The best figure is bold, the second best underlined. "
        "Figures are the mean ± sample deviation over seeds. A gain is relative to the best "
        "heuristic or baseline."
    )
    if study.ranker is not None and study.ranker.published:
        note += " The paper's figures in the row of the ranker are those of TCL."
    return Table(
        name=study.file_name,
        title=f"Overall comparison on {study.log_title}",
        columns=("model", "update", "seeds", *METRICS, "paper: MR", "paper: Hit@10"),
        rows=(*cells, *gains),
        groups=(*groups, len(cells)) if gains else groups,
        note=note,
    )


def _published(entry: Entry, metric: str) -> str:
    return str(entry.published[metric]) if metric in entry.published else NONE


def _gain_row(ours: Results, rows: Sequence[Results]) -> tuple[Cell, ...] | None:
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
    return (Cell(f"gain of {ours.entry.name}"), empty, empty, *cells, empty, empty)


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
