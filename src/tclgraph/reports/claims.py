"""The table that tells which claims of the paper hold.

Every claim is tested by MR, the paper's own measure, by MRR, and by Hit@10. A few very bad ranks
change MR most and Hit@10 not at all.
"""

import operator
from collections.abc import Mapping, Sequence

from tclgraph.evaluation.significance import Difference, Resamples
from tclgraph.reports.cells import (
    HOLDS,
    INTERVALS,
    METRICS,
    borders,
    contrast,
    resamples,
    verdict,
    with_interval,
)
from tclgraph.reports.table import Cell, Table
from tclgraph.studies.claims import Claim, claims_of
from tclgraph.studies.study import Entry, Results, Study

_MODELS = ("tcl", "ranker", "baselines")


def claims_tables(
    studies: Sequence[tuple[Study, Mapping[Entry, Results]]],
) -> list[Table]:
    """Return a table for each log that has a claim with results."""
    by_log: dict[str, list[Claim]] = {}
    titles: dict[str, str] = {}
    for study, results in studies:
        log = study.log
        by_log.setdefault(log.file_name, []).extend(claims_of(study, results))
        titles[log.file_name] = log.title
    return [_table(log, titles[log], claims) for log, claims in by_log.items() if claims]


def _table(log: str, title: str, claims: Sequence[Claim]) -> Table:
    claims = sorted(claims, key=lambda claim: _MODELS.index(claim.model))
    verdicts = (
        column
        for metric in METRICS
        for column in (f"{metric} improvement [95 %]", f"holds by {metric}")
    )
    tests = _Tests()
    return Table(
        name=f"claims-{log}",
        title=f"Claims of the paper, tested on {title}",
        columns=("claim", "model", "seeds", *verdicts),
        rows=tuple(_row(claim, tests) for claim in claims),
        groups=borders([claim.model for claim in claims]),
        note="Test-set improvement of the claimed winner over the other variant. A claim holds, or "
        "fails, if 0 is outside the interval. A claim about several models holds if it holds for "
        "every pair, and fails if the opposite holds for one; the pair that decides is shown. With "
        "many pairs, one may fail by chance. A claim about random interactions compares what the "
        "other model loses with what TCL loses. On average: the mean of the metric over models. "
        f"Seeds: of the claimed winner, and of the other. {INTERVALS}",
    )


class _Tests:
    """The bootstrap samples of all claims; claims about the same models share them."""

    def __init__(self) -> None:
        self._resamples: dict[tuple[tuple[int, ...], int, str], Resamples] = {}

    def differences(self, claim: Claim, metric: str) -> list[Difference]:
        """Return the improvement in each contrast of a claim."""
        key = (tuple(map(id, claim.rows)), id(claim.events), metric)
        if key not in self._resamples:
            self._resamples[key] = resamples(claim.rows, metric, claim.events)
        drawn = self._resamples[key]
        return [
            contrast(drawn, claim.rows, contrasted.terms, metric) for contrasted in claim.contrasts
        ]


def _row(claim: Claim, tests: _Tests) -> tuple[Cell, ...]:
    winners, others = (claim.num_seeds(claimed_better=side) for side in (True, False))
    cells = [Cell(claim.text), Cell(claim.model), Cell(f"{_range(winners)}, {_range(others)}")]
    for metric in METRICS:
        differences = tests.differences(claim, metric)
        holds = HOLDS[verdict(differences)]
        # If the claim fails, a pair for which the opposite holds, else the one that is least sure.
        end = operator.attrgetter("high" if holds == "no" else "low")
        number = min(range(len(differences)), key=lambda number: end(differences[number]))
        text = with_interval(differences[number], metric)
        if len(differences) > 1:
            text += f" ({claim.contrasts[number].pair})"
        if holds != "unclear" and min(*winners, *others) == 1:
            holds += " (1 seed)"
        cells += [Cell(text), Cell(holds)]
    return tuple(cells)


def _range(counts: Sequence[int]) -> str:
    """Format the smallest and the largest number.

    >>> _range([2, 2]), _range([1, 3, 5])
    ('2', '1–5')
    """
    return f"{min(counts)}–{max(counts)}" if min(counts) < max(counts) else str(min(counts))
