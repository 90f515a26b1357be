"""Made-up results whose tables can be worked out by hand."""

import numpy as np

from tclgraph.evaluation.metrics import metrics
from tclgraph.evaluation.rules import Part
from tclgraph.events.catalog import CATALOG
from tclgraph.events.log_spec import LogSpec
from tclgraph.events.stream import EventStream
from tclgraph.jobs.outcome import (
    EpochRecord,
    Learning,
    Machine,
    Outcome,
    PartReport,
    PartSizes,
)
from tclgraph.reports.table import Table
from tclgraph.studies.study import Entry, OpenLog, Results
from tclgraph.testing.streams import cut

#  pairs:  a-x  b-y | a-x  a-y | b-y  a-y  b-x
COLUMNS = (list("abaabab"), list("xyxyyyx"), [86_400.0 * number for number in range(7)])
STREAM = EventStream.from_columns(*COLUMNS)
MACHINE = Machine(
    system="Linux x86_64",
    processor="made up",
    cores=2,
    python="3",
    torch="2",
    numba="0",
    numpy="2",
    threads=1,
)


def open_log(name: str = "log") -> OpenLog:
    """Return a log of the kind that the catalog has for this name, if it has any."""
    stream = STREAM
    if name in CATALOG and CATALOG[name].kind == "one-mode":
        stream = EventStream.from_columns(*COLUMNS, kind="one-mode")
    return OpenLog(spec=LogSpec(log=name), split=cut(stream, 2, 4), digest="")


def make_outcome(
    entry: Entry,
    ranks: list[float],
    *,
    seed: int = 0,
    seconds: float = 90.0,
    peak_megabytes: int | None = 500,
    valid_rank: float = 2.0,
) -> Outcome:
    valid = metrics(np.array([valid_rank]))
    job = entry.jobs[0]
    learning = Learning(
        config={},
        best_epoch=3,
        seconds=seconds,
        seconds_to_best=seconds,
        trained_per_second=1_234.5,
        curve=(EpochRecord(epoch=1, loss=2.0, events_per_second=1.0, seconds=1.0, valid=valid),),
    )
    return Outcome(
        model=job.model,
        settings=dict(job.settings),
        seed=seed,
        log=job.spec.name,
        file="log.csv",
        kind="bipartite",
        split="by hand",
        parts=PartSizes(train=2, valid=2, test=len(ranks)),
        update="streaming",
        version="0",
        machine=MACHINE,
        valid=valid,
        learning=learning if entry.is_learned else None,
        report=_report(ranks, job.model, job.part),
        ranked_per_second=10.0,
        peak_megabytes=peak_megabytes,
    )


def _report(ranks: list[float], model: str, part: Part) -> PartReport:
    return PartReport(
        model=model,
        kind="bipartite",
        split="by hand",
        part=part,
        update="streaming",
        masks_seen=False,
        events=len(ranks),
        targets=2,
        metrics=metrics(np.array(ranks)),
        repeat=None,
        new=metrics(np.array(ranks[-1:])),
        events_by_group={"all": len(ranks), "repeat": len(ranks) - 1, "new": 1},
        intervals={},
        tie_spread=0.0,
        nan_events=0,
        seed=0,
        seconds=1.0,
        ranking_seconds=1.0,
    )


def results(entry: Entry, *ranks: list[float]) -> Results:
    """Return the results of an entry, given the ranks of each seed."""
    row = Results(entry=entry)
    for seed, ranks_of_seed in enumerate(ranks):
        row.add(make_outcome(entry, ranks_of_seed, seed=seed), np.array(ranks_of_seed))
    return row


def texts(table: Table) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table.rows]
