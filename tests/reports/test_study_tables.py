"""Tables of the ablation, of sweeps, of parts, of data sets and of claims, from made-up results."""

import pytest

from tclgraph.events.log_spec import LogSpec
from tclgraph.reports.ablation import ablation_table
from tclgraph.reports.claims import claims_tables
from tclgraph.reports.datasets import data_sets_table
from tclgraph.reports.parts import parts_table
from tclgraph.reports.reading import reading_table
from tclgraph.reports.sweep import sweep_series, sweep_table
from tclgraph.studies.ablation import AblationStudy, ranker_ablation, tcl_ablation
from tclgraph.studies.parts import parts_study
from tclgraph.studies.reading import reading_study
from tclgraph.studies.study import Entry, OpenLog, Results, Study
from tclgraph.studies.sweep import DEPTH, sweep_study
from tclgraph.testing.streams import cut
from tests.reports.made_up import STREAM, open_log, results, texts


def rows_of(study: Study, ranks: dict[Entry, list[list[float]]]) -> dict[Entry, Results]:
    return {entry: results(entry, *ranks.get(entry, [])) for entry in study.entries}


@pytest.mark.parametrize(
    ("ranks", "mr", "hits"),
    [
        ([15.0] * 4, ["+10.00 [+10.00, +10.00]", "yes (1 seed)"], "yes (1 seed)"),
        ([2.0] * 4, ["−3.00 [−3.00, −3.00]", "no (1 seed)"], "unclear"),
        ([1.0, 9.0, 1.0, 9.0], ["+0.00 [−4.00, +4.00]", "unclear"], "unclear"),
    ],
)
def test_a_claim_holds_if_the_interval_excludes_zero(
    ranks: list[float], mr: list[str], hits: str
) -> None:
    study = tcl_ablation(open_log("collegemsg"))
    variant = study.without[0]
    rows = rows_of(study, {variant: [ranks], study.full: [[5.0] * 4, [5.0] * 4]})
    (claims,) = claims_tables([(study, rows)])
    (row,) = texts(claims)
    assert row[:3] == ["better than without time embedding", "tcl", "2, 1"]
    assert row[3:5] == mr
    assert row[8] == hits
    table = ablation_table(study, rows)
    assert table.title == "Ablation of TCL on collegemsg"
    assert texts(table)[0][-3:] == [mr[0], "2.00", "140.20"]
    assert texts(table)[-1][-3:] == ["–", "2.00 ± 0.00", "136.13"]


def point_process_claim(study: AblationStudy, ranks: dict[Entry, list[list[float]]]) -> list[str]:
    (claims,) = claims_tables([(study, rows_of(study, ranks))])
    (row,) = texts(claims)
    return row


def test_the_point_process_is_compared_with_a_model_without_history_features() -> None:
    tcl, ranker = tcl_ablation(open_log()), ranker_ablation(open_log())
    ranks = {tcl.point_process: [[4.0] * 4], tcl.full: [[1.0] * 4]}
    row = point_process_claim(tcl, ranks)
    assert row[0] == "contrastive objective better than point process"
    assert row[3] == "+3.00 [+3.00, +3.00]"

    assert ranker.without_history is not None
    ranks = {
        ranker.point_process: [[4.0] * 4],
        ranker.without_history: [[3.0] * 4],
        ranker.full: [[1.0] * 4],
    }
    row = point_process_claim(ranker, ranks)
    assert row[0].endswith(", both without history features")
    assert row[3] == "+1.00 [+1.00, +1.00]"
    table = ablation_table(ranker, rows_of(ranker, ranks))
    assert table.title == "Ablation of the ranker on log"
    assert "The point process has no history features" in table.note


def test_a_claim_needs_results_of_both_entries() -> None:
    study = sweep_study(open_log(), DEPTH)
    assert claims_tables([(study, rows_of(study, {study.entries[0]: [[2.0]]}))]) == []


def test_a_series_has_the_points_with_results() -> None:
    study = sweep_study(open_log(), DEPTH)
    first, second = study.entries[:2]
    rows = rows_of(study, {first: [[4.0], [6.0]], second: [[3.0]]})
    series = sweep_series(study, rows, ("MR",))
    assert series.x == (1, 2)
    assert series.mean["MR"] == (5.0, 3.0)
    assert list(series.deviation["MR"]) == pytest.approx([2**0.5, 0.0])
    table = texts(sweep_table(study, rows))
    assert [row[0] for row in table] == [f"k = {depth}" for depth in range(1, 7)]
    assert [row[-1] for row in table][:3] == ["–", "+2.00 [−10.34, +14.34]", "–"]


def test_the_table_of_parts_shows_validation_and_new_pairs() -> None:
    study = parts_study(open_log())
    first = study.without[0]
    rows = rows_of(study, {study.complete: [[1.0, 4.0], [1.0, 6.0]], first: [[2.0, 8.0]]})
    table = parts_table(study, rows)
    assert texts(table)[:2] == [
        ["complete", "2", "3.00 ± 0.71", "0.6042 ± 0.0295", "100.00 ± 0.00", "5.00 ± 1.41"],
        ["without encoder", "1", "5.00", "0.3125", "100.00", "8.00"],
    ]
    assert texts(table)[2] == ["without centering", "0", "–", "–", "–", "–"]
    assert table.note.startswith("Validation: 2 events")


def test_the_table_of_readings_shows_validation_and_the_best_epochs() -> None:
    study = reading_study(open_log())
    rows = rows_of(study, {study.defaults: [[1.0, 4.0], [1.0, 6.0]]})
    table = reading_table(study, rows)
    first, *others = texts(table)
    assert first[:3] == ["TCL()", "2", "3.00 ± 0.71"]
    assert len(first[-1].split(", ")) == 2
    assert others[0][1:] == ["0", "–", "–", "–", ""]
    assert table.note.startswith("Validation: 2 events")


def test_data_sets_are_shown_with_the_printed_figures() -> None:
    log = OpenLog(spec=LogSpec(log="collegemsg"), split=cut(STREAM, 2, 4), digest="")
    table = data_sets_table([log, log])
    row, again = texts(table)
    assert again == row
    assert row[:4] == ["collegemsg", "2 (999)", "2 (1,352)", "7 (48,771)"]
    assert row[4:] == ["42.86 (67.28)", "6.00 (193.63)", "by hand of rows"]
    assert table.note.count("collegemsg: The raw file") == 1
    assert table.note.count("the studies use the first") == 1
