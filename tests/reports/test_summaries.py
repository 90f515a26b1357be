"""Tables of made-up outcomes whose figures can be worked out by hand."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tclgraph.evaluation.metrics import metrics
from tclgraph.events.log_spec import LogSpec
from tclgraph.events.stream import EventStream
from tclgraph.events.synthetic import SyntheticConfig, synthesize
from tclgraph.events.writers import write_file
from tclgraph.jobs.job import Job
from tclgraph.reports import findings, summaries
from tclgraph.reports.claims import tables_of_claims
from tclgraph.reports.table import Table
from tclgraph.studies import plans
from tclgraph.studies.plans import Entry, Results, Study
from tests.streams import as_split

#  pairs:  a-x  b-y | a-x  a-y | b-y  a-y  b-x
STREAM = EventStream.from_columns(
    list("abaabab"), list("xyxyyyx"), [86_400.0 * n for n in range(7)]
)


def results(name: str, *ranks: list[float], group: plans.Group = "TCL") -> Results:
    entry = Entry(name=name, group=group, kinds=((name, {}),), published=name)
    found = Results(entry=entry)
    for seed, one in enumerate(ranks):
        outcome: dict[str, Any] = {
            "seed": seed,
            "update": "streaming",
            "kind": "bipartite",
            "split": "by hand",
            "parts": {"test": len(one)},
            "machine": {"threads": 1},
            "test": {"metrics": metrics(np.array(one)), "targets": 2},
            "valid": {"MR": 2.5, "MRR": 0.5},
            "best_epoch": 3,
            "seconds": 90.0,
            "trained_per_second": 1_234.5,
            "ranked_per_second": 10.0,
            "peak_megabytes": 500,
            "curve": [{"epoch": 1, "loss": 2.0, "valid": {"MRR": 0.5}}],
        }
        found.outcomes.append(outcome)
        found.ranks.append(np.array(one))
    return found


def study(name: str, *found: Results, log: str = "log") -> tuple[Study, dict[str, Results]]:
    made = Study(
        name=name,
        data=LogSpec(log=log),
        split=as_split(STREAM, 2, 4),
        events="",
        entries=tuple(one.entry for one in found),
    )
    return made, {one.entry.name: one for one in found}


def texts(table: Table) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table.rows]


def test_the_overall_table() -> None:
    heuristic = results("popularity", [2.0, 2.0, 2.0], group="heuristic")
    tgn = results("tgn", [4.0, 1.0, 1.0], [6.0, 3.0, 3.0], group="baseline")
    ours = results("TCL, default", [1.0, 1.0, 1.0])
    missing = results("jodie", group="baseline")
    table = summaries.table_of_models(
        *study("overall", heuristic, tgn, missing, ours, log="wikipedia")
    )
    two_seeds = ["3.00 ± 1.41", "0.5139 ± 0.3339", "100.00 ± 0.00"]
    gains = ["+50.0 %", "+94.6 %", "+0.0 %"]
    assert texts(table) == [
        ["popularity", "streaming", "–", "2.00", "0.5000", "100.00", "–", "–"],
        ["tgn", "streaming", "2", *two_seeds, "75.47 ± 2.02", "79.74 ± 1.67"],
        ["jodie", "–", "0", "–", "–", "–", "125.88 ± 1.96", "41.27 ± 1.03"],
        ["TCL, default", "streaming", "1", "1.00", "1.0000", "100.00", "–", "–"],
        ["gain of TCL, default", "", "", *gains, "", ""],
    ]
    assert [row[3].emphasis for row in table.rows] == ["second", None, None, "best", None]
    assert table.groups == (1, 3, 4)


def test_costs_are_of_the_first_seed_as_far_as_they_are_known() -> None:
    tgn = results("tgn", [4.0, 1.0, 1.0], [6.0, 3.0, 3.0], group="baseline")
    tgn.outcomes[1]["seconds"] = 900.0
    ours = results("TCL, default", [1.0, 1.0, 1.0])
    ours.outcomes[0]["peak_megabytes"] = None
    assert texts(summaries.table_of_costs(*study("overall", tgn, ours))) == [
        ["tgn", "1", "3", "1.5", "1,234", "10", "500"],
        ["TCL, default", "1", "3", "1.5", "1,234", "10", "–"],
    ]


def test_pairs_of_training_pairs_since_and_strangers() -> None:
    # b-y met in train, a-y since, b-x never.
    table = findings.table_of_meetings(*study("overall", results("tgn", [3.0, 20.0, 7.0])))
    assert texts(table) == [["tgn", "3.00", "100.00", "20.00", "0.00", "7.00", "100.00"]]
    assert "1 met in train, 1 met since, 1 never met" in table.note


def test_quarters_are_told_by_days_since_training() -> None:
    table = findings.table_of_quarters(*study("overall", results("tgn", [3.0, 20.0, 7.0])))
    assert table.columns == ("model", "days 3 to 3", "days 4 to 4", "days 5 to 5")
    assert texts(table) == [["tgn", "3.00", "20.00", "7.00"]]


def test_comparisons_say_which_is_better() -> None:
    good = results("good", [1.0] * 30)
    bad = results("bad", [5.0] * 30)
    same = results("same", [1.0, 5.0] * 15)
    chance = results("chance", [5.0, 1.0] * 15)
    mrr, mr = findings.table_of_comparisons(*study("overall", good, bad, same, chance))
    for table in (mrr, mr):
        assert [row[1:] for row in texts(table)] == [
            ["", "+", "+", "+"],
            ["−", "", "−", "−"],
            ["−", "+", "", "·"],
            ["−", "+", "·", ""],
        ]
    assert mr.rows[0][2].stands_for == "−4.00 [−4.00, −4.00]"
    assert mrr.rows[1][1].stands_for == "−0.8000 [−0.8000, −0.8000]"


@pytest.mark.parametrize(
    ("ranks", "mr", "hits"),
    [
        ([15.0] * 4, ["+10.00 [+10.00, +10.00]", "yes, of 1 seed"], "yes, of 1 seed"),
        ([2.0] * 4, ["−3.00 [−3.00, −3.00]", "no, of 1 seed"], "unclear"),
        ([1.0, 9.0, 1.0, 9.0], ["+0.00 [−4.00, +4.00]", "unclear"], "unclear"),
    ],
)
def test_what_is_said_of_a_claim(ranks: list[float], mr: list[str], hits: str) -> None:
    without = results("without time embedding", ranks)
    full = results("full", [5.0] * 4, [5.0] * 4)
    found = study("ablation-paper", without, full, log="collegemsg")
    (told,) = tables_of_claims([found])
    (row,) = texts(told)
    assert row[:3] == ["better than without time embedding", "paper", "2, 1"]
    assert row[3:5] == mr
    assert row[6] == hits
    table = findings.table_of_ablation(*found)
    assert texts(table)[0][-3:] == [mr[0], "2.50", "140.20"]
    assert texts(table)[1][-3:] == ["–", "2.50 ± 0.00", "136.13"]


def test_the_claim_of_table_two_is_against_the_best_baseline() -> None:
    rows = [
        results("popularity", [1.0] * 4, group="heuristic"),
        results("tgn", [4.0] * 4, [4.0] * 4, group="baseline"),
        results("jodie", [6.0] * 4, group="baseline"),
        results("TCL, paper", [3.0] * 4, [3.0] * 4),
    ]
    (told,) = tables_of_claims([study("overall", *rows)])
    (row,) = texts(told)
    assert row[0] == "better than tgn, the best baseline"
    assert row[3:5] == ["+1.00 [+1.00, +1.00]", "yes"]


def test_the_point_process_is_compared_with_what_has_as_little_history() -> None:
    rows = [
        results(plans.POINT_PROCESS, [4.0] * 4),
        results(plans.HISTORY_TERMS, [3.0] * 4),
        results("full", [1.0] * 4),
    ]
    gains = {}
    for preset in ("paper", "default"):
        (told,) = tables_of_claims([study(f"ablation-{preset}", *rows)])
        gains[preset] = [row[3] for row in texts(told)]
    assert gains == {
        "paper": ["+3.00 [+3.00, +3.00]"],
        "default": ["+1.00 [+1.00, +1.00]"],
    }


def test_nothing_is_said_of_a_claim_before_both_are_there() -> None:
    deep = study("depth", results("k = 1", [2.0]), results("k = 2"))
    assert tables_of_claims([deep]) == []


def test_a_figure_has_the_points_that_are_there() -> None:
    one, two = results("k = 1", [4.0], [6.0]), results("k = 2", [3.0])
    for value, point in enumerate((one, two), start=1):
        object.__setattr__(point.entry, "x", float(value))
    made, found = study("depth", one, two, results("k = 3"))
    series = summaries.series_of(found)
    assert series.x == (1.0, 2.0)
    assert series.mean["MR"] == (5.0, 3.0)
    assert list(series.deviation["MR"]) == pytest.approx([2**0.5, 0.0])
    rows = texts(summaries.table_of_points(made, found))
    assert [row[-1] for row in rows] == ["–", "+2.00 [+0.59, +3.41]", "–"]


def test_data_sets_are_measured_beside_what_is_printed() -> None:
    known = (LogSpec(log="collegemsg"), as_split(STREAM, 2, 4))
    table = summaries.table_of_data_sets([known, known])
    row, again = texts(table)
    assert again == row
    assert row[:4] == ["collegemsg", "2 (999)", "2 (1,352)", "7 (48,771)"]
    assert row[4:] == ["42.86 (67.28)", "6.00 (193.63)", "by hand of rows"]
    assert table.note.count("collegemsg: The raw file") == 1


def test_the_same_job_is_planned_once(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    write_file(synthesize(SyntheticConfig(events=100, sources=8, targets=9)), path)
    data = LogSpec(log=str(path))
    split = data.open()
    whole = plans.overall(data, split, plans.EVERYTHING)
    own = {job.key for job in whole.jobs(1) if job.settings == {"preset": "paper"}}
    assert len(own) == 1
    for other in (plans.depth(data, split), plans.heads(data, split)):
        assert own < {job.key for job in other.jobs(1)}
    assert own < {job.key for job in plans.ablation(data, split, "paper").jobs(1)}
    names = [job.model for job in whole.jobs(2)]
    assert names.count("popularity") == 1
    assert names.count("graphsage-lstm") == 2


def test_of_several_the_best_on_validation_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.csv"
    write_file(synthesize(SyntheticConfig(events=100, sources=8, targets=9)), path)
    data = LogSpec(log=str(path))
    made = plans.overall(data, data.open(), ["graphsage"])
    figures = {"graphsage-gcn": 0.1, "graphsage-mean": 0.3, "graphsage-max": 0.2}

    def outcome(job: Job, folder: Path) -> dict[str, Any] | None:
        if job.seed > 1 or (job.seed == 1 and job.model == "graphsage-gat"):
            return None  # still to be done
        return {"model": job.model, "valid": {"MRR": figures.get(job.model, 0.0)}}

    monkeypatch.setattr(plans, "read_outcome", outcome)
    monkeypatch.setattr(plans, "read_ranks", lambda job, folder: np.ones(3))
    found = made.results(tmp_path)["graphsage"]
    assert [one["model"] for one in found.outcomes] == ["graphsage-mean"]
