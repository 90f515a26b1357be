"""What docs/ranker.md says about repeats and new pairs is what the paired bootstrap says."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from tclgraph.events.catalog import CATALOG, find
from tclgraph.events.log_spec import LogSpec
from tclgraph.reports.repeats import repeats_table
from tclgraph.reports.table import to_markdown
from tclgraph.studies.plan import make_plan

ROOT = Path(__file__).parent.parent
REPRODUCED = ROOT / "results" / "reproduce"
LOGS = ("collegemsg", "wikipedia", "lastfm_head")
METRICS = ("MR", "MRR", "Hit@10")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """A sentence of the page, and the comparisons of the ranker that it is about."""

    sentence: str
    logs: tuple[str, ...]
    events: str
    metrics: tuple[str, ...]
    against: tuple[str, ...] = ()
    """Names of heuristics; empty: all, without those of `but`."""
    but: tuple[str, ...] = ()
    verdict: str = "better"


def compared(log: str) -> dict[tuple[str, str, str], tuple[str, str]]:
    """Return improvement and verdict by events, heuristic and metric."""
    text = (REPRODUCED / log / "tables" / f"overall-{log}-repeats.md").read_text()
    header, _, *rows = [
        [cell.strip().replace("\\", "") for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    ]
    return {
        (row[0], row[1], metric): (
            row[header.index(f"{metric} [95 %]")],
            row[header.index(f"by {metric}")],
        )
        for row in rows
        for metric in METRICS
    }


def section() -> str:
    """Return the section on one line, without its table."""
    text = (ROOT / "docs" / "ranker.md").read_text()
    text = text.split("## Repeats and new pairs\n")[1].split("\n## ")[0]
    lines = [line for line in text.splitlines() if not line.startswith("|")]
    return " ".join(" ".join(lines).split())


ALWAYS_BETTER = ("wikipedia", "lastfm_head")
RECENT = ("global-recency", "edgebank-window")
"""Heuristics that rank targets of all sources by when they were chosen."""
STATED = (
    Stated(
        sentence="the ranker is better than every heuristic in MRR and Hit@10 on all three logs.",
        logs=LOGS,
        events="repeat",
        metrics=("MRR", "Hit@10"),
    ),
    Stated(
        sentence="It is better than every heuristic in mean rank on Wikipedia and lastfm_head.",
        logs=ALWAYS_BETTER,
        events="repeat",
        metrics=("MR",),
    ),
    Stated(
        sentence="On CollegeMsg it is better than every heuristic but `last-contact` in mean rank;",
        logs=("collegemsg",),
        events="repeat",
        metrics=("MR",),
        but=("last-contact",),
    ),
    Stated(
        sentence="the difference from `last-contact` is unclear,",
        logs=("collegemsg",),
        events="repeat",
        metrics=("MR",),
        against=("last-contact",),
        verdict="unclear",
    ),
    Stated(
        sentence="the ranker is better than every heuristic in every metric on Wikipedia and "
        "lastfm_head.",
        logs=ALWAYS_BETTER,
        events="new pair",
        metrics=METRICS,
    ),
    Stated(
        sentence="On CollegeMsg it is better than five of seven heuristics in every metric.",
        logs=("collegemsg",),
        events="new pair",
        metrics=METRICS,
        but=RECENT,
    ),
    Stated(
        sentence="Against `global-recency` and `edgebank-window`, which rank repeats badly, its "
        "mean rank is unclear,",
        logs=("collegemsg",),
        events="new pair",
        metrics=("MR",),
        against=RECENT,
        verdict="unclear",
    ),
    Stated(
        sentence="and it is worse in MRR.",
        logs=("collegemsg",),
        events="new pair",
        metrics=("MRR",),
        against=RECENT,
        verdict="worse",
    ),
    Stated(
        sentence="It is worse in Hit@10 than `global-recency`,",
        logs=("collegemsg",),
        events="new pair",
        metrics=("Hit@10",),
        against=("global-recency",),
        verdict="worse",
    ),
    Stated(
        sentence="and the difference from `edgebank-window` is unclear.",
        logs=("collegemsg",),
        events="new pair",
        metrics=("Hit@10",),
        against=("edgebank-window",),
        verdict="unclear",
    ),
)


@pytest.mark.parametrize("stated", STATED, ids=lambda stated: stated.sentence)
def test_a_sentence_agrees_with_the_paired_bootstrap(stated: Stated) -> None:
    assert stated.sentence in section()
    for log in stated.logs:
        figures = compared(log)
        names = {heuristic for _, heuristic, _ in figures}
        assert names >= {*stated.against, *stated.but}
        for heuristic in stated.against or names - {*stated.but}:
            for metric in stated.metrics:
                improvement, verdict = figures[stated.events, heuristic, metric]
                assert verdict == stated.verdict, (log, heuristic, metric, improvement)


def test_every_comparison_of_the_section_is_tested() -> None:
    rest = section()
    for stated in STATED:
        rest = rest.replace(stated.sentence, "")
    assert re.findall(r"[^.:;]*\b(?:better|worse|unclear|beats?)\b[^.:;]*", rest) == []


def test_intervals_of_the_section_are_those_of_the_tables() -> None:
    """An interval follows the mean that it belongs to."""
    intervals = re.findall(r"[+−][\d.]+ \[[+−][\d.]+, [+−][\d.]+\]", section())
    assert len(intervals) == 3
    known = {improvement for log in LOGS for improvement, _ in compared(log).values()}
    assert set(intervals) <= known


def spec_of(log: str) -> LogSpec:
    """Return how the log of stored jobs is read; skip the test if the log is not here."""
    if log in CATALOG:
        if find(CATALOG[log]) is None:
            pytest.skip(f"{log} is not on this machine: set TCLGRAPH_DATA to a folder that has it")
        return LogSpec(log=log)
    path = Path(os.environ.get("TCLGRAPH_DATA") or "nowhere") / f"{log}.parquet"
    if not path.exists():
        pytest.skip(f"{path.name} is not in the folder that TCLGRAPH_DATA names")
    return LogSpec(log=str(path), kind="bipartite", split="80/10/10")


@pytest.mark.parametrize("log", LOGS)
def test_the_table_comes_from_the_stored_ranks(log: str) -> None:
    (study,) = make_plan(["overall"], [spec_of(log)], ["heuristics", "ranker"]).studies
    results = study.results(REPRODUCED / log)
    if not any(row.ranks for row in results.values()):
        pytest.skip(f"the stored jobs of {log} are those of another file")
    table = repeats_table(study, results)  # type: ignore[arg-type]
    assert table is not None
    stored = REPRODUCED / log / "tables" / f"{table.name}.md"
    assert to_markdown(table) == stored.read_text()
