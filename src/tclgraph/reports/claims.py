"""The table that tells which claims of the paper hold.

Every claim is tested by MR, the paper's own measure, and by Hit@10, which a few very bad ranks do
not change.
"""

from collections.abc import Mapping, Sequence

from tclgraph.reports.cells import INTERVALS, borders, improvement, with_interval
from tclgraph.reports.table import Cell, Table
from tclgraph.studies.claims import Claim, claims_of
from tclgraph.studies.study import Entry, Results, Study

_METRICS = ("MR", "Hit@10")
_MODELS = ("tcl", "ranker")


def claims_tables(
    studies: Sequence[tuple[Study, Mapping[Entry, Results]]],
) -> list[Table]:
    """Return a table for each log that has a claim with results."""
    by_log: dict[str, list[Claim]] = {}
    for study, results in studies:
        by_log.setdefault(study.log.spec.name, []).extend(claims_of(study, results))
    return [_table(log, claims) for log, claims in by_log.items() if claims]


def _table(log: str, claims: Sequence[Claim]) -> Table:
    claims = sorted(claims, key=lambda claim: _MODELS.index(claim.model))
    verdicts = (
        column
        for metric in _METRICS
        for column in (f"{metric} improvement [95 %]", f"holds by {metric}")
    )
    return Table(
        name=f"claims-{log}",
        title=f"Claims of the paper, tested on {log}",
        columns=("claim", "model", "seeds", *verdicts),
        rows=tuple(_row(claim) for claim in claims),
        groups=borders([claim.model for claim in claims]),
        note="Test-set improvement of the claimed winner over the other variant. A claim holds, or "
        "fails, if 0 is outside the interval. Seeds: of the claimed winner, and of the other. The "
        f"best baseline is the one with the best MR. {INTERVALS}",
    )


def _row(claim: Claim) -> tuple[Cell, ...]:
    num_seeds = (len(claim.better.ranks), len(claim.worse.ranks))
    cells = [Cell(claim.text), Cell(claim.model), Cell(", ".join(map(str, num_seeds)))]
    for metric in _METRICS:
        difference = improvement(claim.better, claim.worse, metric)
        verdict = "unclear"
        if difference.is_clear:
            verdict = "yes" if difference.mean > 0 else "no"
            if min(num_seeds) == 1:
                verdict += " (1 seed)"
        cells += [Cell(with_interval(difference, metric)), Cell(verdict)]
    return tuple(cells)
