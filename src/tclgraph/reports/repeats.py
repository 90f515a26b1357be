"""The ranker against every heuristic, separately on repeats and on new pairs."""

from collections.abc import Mapping

from tclgraph.reports.cells import (
    INTERVALS,
    METRICS,
    borders,
    contrast,
    resamples,
    verdict,
    with_interval,
)
from tclgraph.reports.table import Cell, Table
from tclgraph.studies.overall import OverallStudy
from tclgraph.studies.pair_groups import NEW_PAIR, pair_groups
from tclgraph.studies.study import Entry, Results, Role


def repeats_table(study: OverallStudy, results: Mapping[Entry, Results]) -> Table | None:
    """Return the improvement over every heuristic, or None without the ranker or heuristics."""
    heuristics = [row for row in results.values() if row.entry.role is Role.HEURISTIC and row.ranks]
    if study.ranker is None or not results[study.ranker].ranks or not heuristics:
        return None
    ranker = results[study.ranker]
    rows = [ranker, *heuristics]
    is_new = pair_groups(study.log.split)[NEW_PAIR]
    groups = {"repeat": ~is_new, "new pair": is_new}
    cells = []
    for name, is_member in groups.items():
        if not is_member.any():
            continue
        drawn = {metric: resamples(rows, metric, is_member) for metric in METRICS}
        for heuristic in heuristics:
            figures = []
            for metric in METRICS:
                terms = ((ranker, 1.0), (heuristic, -1.0))
                difference = contrast(drawn[metric], rows, terms, metric)
                figures.append(Cell(with_interval(difference, metric)))
                figures.append(Cell(verdict([difference])))
            cells.append((Cell(name), Cell(heuristic.entry.name), *figures))
    return Table(
        name=f"{study.file_name}-repeats",
        title=f"The ranker against every heuristic, on {study.log_title}",
        columns=(
            "events",
            "heuristic",
            *(column for metric in METRICS for column in (f"{metric} [95 %]", f"by {metric}")),
        ),
        rows=tuple(cells),
        groups=borders([row[0].text for row in cells]),
        note="Test-set improvement of the ranker over the heuristic; the ranker is better or worse "
        "if 0 is outside the interval. Number of test events: "
        + ", ".join(f"{name} {is_member.sum():,}" for name, is_member in groups.items())
        + f". Seeds of the ranker: {len(ranker.ranks)}. {INTERVALS}",
        is_shown_in_terminal=False,
    )
