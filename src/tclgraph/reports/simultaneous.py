"""The table of figures by both rules for simultaneous events (see `evaluation.simultaneous`)."""

from collections.abc import Mapping, Sequence

from tclgraph.evaluation.simultaneous import SHARE_FOR_BOTH
from tclgraph.events.statistics import simultaneous_share
from tclgraph.reports.cells import METRICS, NONE, borders, metric_column
from tclgraph.reports.table import Cell, Table
from tclgraph.studies.overall import OverallStudy
from tclgraph.studies.study import Entry, Results


def together_tables(study: OverallStudy, results: Mapping[Entry, Results]) -> list[Table]:
    """Compare the rules, if a log has so many simultaneous events that tables show both."""
    share = simultaneous_share(study.log.split.events)
    if share <= SHARE_FOR_BOTH:
        return []
    rows = [row for row in results.values() if row.outcomes]
    columns = [column for metric in METRICS for column in _columns(rows, metric)]
    return [
        Table(
            name=f"{study.file_name}-together",
            title=f"Simultaneous events in order and together, on {study.log_title}",
            columns=(
                "model",
                "seeds",
                *(f"{metric} {rule}" for metric in METRICS for rule in ("in order", "together")),
            ),
            rows=tuple(
                (Cell(row.entry.name), Cell(_num_seeds(row)), *cells)
                for row, *cells in zip(rows, *columns, strict=True)
            ),
            groups=borders([row.entry.role for row in rows]),
            note=f"{share:.1f} % of the events share source and time with the event before. In "
            "order: an event is ranked with all events before it in the file, as in the other "
            "tables. Together: with all events of earlier times. Only seeds that were evaluated by "
            "both rules count.",
        )
    ]


def _num_seeds(row: Results) -> str:
    num_seeds = sum(outcome.together is not None for outcome in row.outcomes)
    return str(num_seeds) if row.entry.is_learned else NONE


def _columns(rows: Sequence[Results], metric: str) -> tuple[list[Cell], list[Cell]]:
    """Format a metric by both rules."""
    pairs = [
        [
            (outcome.report.metrics[metric], outcome.together.metrics[metric])
            for outcome in row.outcomes
            if outcome.together is not None
        ]
        for row in rows
    ]
    in_order = [[figure for figure, _ in seeds] for seeds in pairs]
    together = [[figure for _, figure in seeds] for seeds in pairs]
    return metric_column(in_order, metric), metric_column(together, metric)
