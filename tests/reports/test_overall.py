"""Tables of the overall comparison, from made-up results."""

from dataclasses import replace

import numpy as np
import pytest

from tclgraph.reports.breakdowns import (
    comparison_tables,
    pairs_table,
    quarters_table,
    unseen_table,
)
from tclgraph.reports.overall import (
    best_heuristic,
    cost_table,
    learning_curves,
    overall_table,
    tuning_table,
)
from tclgraph.studies.overall import OverallStudy, overall_study
from tclgraph.studies.study import Entry, Results, Role
from tclgraph.studies.tuned import TunedSettings
from tclgraph.testing.streams import cut
from tests.reports.made_up import STREAM, make_outcome, open_log, results, texts


def comparison(
    ranks: dict[str, list[list[float]]], log: str = "log"
) -> tuple[OverallStudy, dict[Entry, Results]]:
    """Return a study of models with the ranks of each seed."""
    study = overall_study(open_log(log), list(ranks))
    by_name = {entry.jobs[0].model: entry for entry in study.entries}
    return study, {entry: results(entry, *ranks[name]) for name, entry in by_name.items()}


def test_the_overall_table_has_the_published_figures_and_the_gains() -> None:
    study, rows = comparison(
        {
            "popularity": [[2.0, 2.0, 2.0]],
            "tgn": [[4.0, 1.0, 1.0], [6.0, 3.0, 3.0]],
            "jodie": [],
            "tcl": [[1.0, 1.0, 1.0]],
        },
        log="wikipedia",
    )
    table = overall_table(study, rows)
    two_seeds = ["3.00 ± 1.41", "0.5139 ± 0.3339", "100.00 ± 0.00"]
    gains = ["+50.0 %", "+94.6 %", "+0.0 %"]
    tcl = ["1.00", "1.0000", "100.00", "54.33 ± 1.05", "81.17 ± 0.16"]
    assert texts(table) == [
        ["popularity", "streaming", "–", "2.00", "0.5000", "100.00", "–", "–"],
        ["tgn", "streaming", "2", *two_seeds, "75.47 ± 2.02", "79.74 ± 1.67"],
        ["jodie", "–", "0", "–", "–", "–", "125.88 ± 1.96", "41.27 ± 1.03"],
        ["tcl", "streaming", "1", *tcl],
        ["gain of tcl", "", "", *gains, "", ""],
    ]
    assert [row[3].emphasis for row in table.rows] == ["second", None, None, "best", None]
    assert table.groups == (1, 3, 4)
    assert table.is_shown_in_terminal


def test_the_row_of_the_ranker_says_whose_figures_the_published_ones_are() -> None:
    study, rows = comparison({"popularity": [[2.0]], "ranker": [[1.0]]}, log="wikipedia")
    table = overall_table(study, rows)
    assert texts(table)[1][-2:] == ["54.33 ± 1.05", "81.17 ± 0.16"]
    assert texts(table)[2][0] == "gain of ranker"
    assert "The paper's figures in the row of the ranker are those of TCL." in table.note


def test_tuned_settings_have_a_column_and_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    record = TunedSettings(
        log="log",
        kind="bipartite",
        split=str(open_log().split),
        model="tgn",
        settings={"learning_rate": 0.005, "batch_size": 256},
        metric="MRR",
        valid=0.25,
        untuned_valid=None,
        trials=12,
        combinations=16,
        minutes=61.4,
        file="results/tuning/log/tgn.json",
        command="tclgraph tune log.csv --model tgn",
    )
    monkeypatch.setattr("tclgraph.studies.tuned.stored_records", lambda: (record,))
    study, rows = comparison({"popularity": [[2.0]], "tgn": [[4.0]], "tcl": [[1.0]]})
    table = overall_table(study, rows)
    assert table.columns[:4] == ("model", "update", "trials", "seeds")
    assert [row[:4] for row in texts(table)] == [
        ["popularity", "streaming", "–", "–"],
        ["tgn", "streaming", "12", "1"],
        ["tcl", "streaming", "–", "1"],
        ["gain of tcl", "", "", ""],
    ]
    assert "see the table of tuned settings" in table.note
    settings = "learning_rate 0.005, batch_size 256"
    assert texts(tuning_table(study)) == [
        ["tgn", settings, "12 of 16", "61", "MRR 0.2500", "–", "results/tuning/log/tgn.json"]
    ]


def test_a_table_without_outcomes_says_so() -> None:
    study, rows = comparison({"popularity": [], "tgn": []})
    assert overall_table(study, rows).note.startswith("Nothing has been computed yet.")


def test_costs_are_those_of_the_first_seed() -> None:
    study, rows = comparison({"tgn": [[4.0], [6.0]], "tcl": [], "popularity": [[1.0]]})
    tgn, tcl = study.entries[1:]
    rows[tgn].outcomes[1] = make_outcome(tgn, [6.0], seed=1, seconds=900.0)
    rows[tcl].add(make_outcome(tcl, [1.0], peak_megabytes=None), np.array([1.0]))
    table = cost_table(study, rows)
    assert texts(table) == [
        ["popularity", "1", "–", "–", "–", "10", "500"],
        ["tgn", "1", "3", "1.5", "1,234", "10", "500"],
        ["tcl", "1", "3", "1.5", "1,234", "10", "–"],
    ]
    assert not table.is_shown_in_terminal


def test_events_are_grouped_by_when_their_pair_first_occurred() -> None:
    # b-y occurs in training, a-y only after training, and b-x is a new pair.
    table = pairs_table(*comparison({"tgn": [[3.0, 20.0, 7.0]]}))
    assert table.columns[1::2] == ("in training: MR", "since training: MR", "new pair: MR")
    assert texts(table) == [["tgn", "3.00", "100.00", "20.00", "0.00", "7.00", "100.00"]]
    assert "in training 1, since training 1, new pair 1." in table.note


def test_events_are_grouped_by_unseen_nodes() -> None:
    study, rows = comparison({"tgn": [[3.0, 20.0, 7.0]]})
    assert unseen_table(study, rows) is None  # all nodes occur in training
    # Only a-x is in training, then b-y, a-y and b-x are the test events.
    log = replace(study.log, split=cut(STREAM, 1, 4))
    table = unseen_table(replace(study, log=log), rows)
    assert table is not None
    assert table.columns[1::2] == ("source unseen: MR", "target unseen: MR", "both unseen: MR")
    assert texts(table) == [["tgn", "7.00", "100.00", "20.00", "0.00", "3.00", "100.00"]]
    assert "source unseen 1, target unseen 1, both unseen 1." in table.note


def test_quarters_are_named_by_days_since_training() -> None:
    table = quarters_table(*comparison({"tgn": [[3.0, 20.0, 7.0]]}))
    assert table.columns == ("model", "days 3 to 3", "days 4 to 4", "days 5 to 5")
    assert texts(table) == [["tgn", "3.00", "20.00", "7.00"]]
    assert "cover 1 days" in table.note


def test_comparisons_mark_which_of_two_models_is_better() -> None:
    study, rows = comparison(
        {
            "jodie": [[1.0] * 30],
            "tgat": [[5.0] * 30],
            "tgn": [[1.0, 5.0] * 15],
            "tdig-mpnn": [[5.0, 1.0] * 15],
        }
    )
    mrr, mr = comparison_tables(study, rows)
    for table in (mrr, mr):
        assert [row[1:] for row in texts(table)] == [
            ["", "+", "+", "+"],
            ["−", "", "−", "−"],
            ["−", "+", "", "·"],
            ["−", "+", "·", ""],
        ]
    assert mr.rows[0][2].stands_for == "−4.00 [−4.00, −4.00]"
    assert mrr.rows[1][1].stands_for == "−0.8000 [−0.8000, −0.8000]"


def test_curves_are_those_of_learned_models() -> None:
    _, rows = comparison({"popularity": [[2.0]], "tgn": [[4.0], [6.0]]})
    curves = learning_curves(rows)
    assert list(curves) == ["tgn"]
    assert [curve.name for curve in curves["tgn"]] == ["seed 0", "seed 1"]
    assert curves["tgn"][0].valid == (0.5,)


def test_the_best_heuristic_is_best_on_validation() -> None:
    study, rows = comparison({"popularity": [], "own-recency": [], "edgebank": [], "tgn": [[1.0]]})
    assert best_heuristic(rows) is None
    popularity, own_recency = study.entries[:2]
    rows[popularity].add(make_outcome(popularity, [1.0], valid_rank=4.0), np.array([1.0]))
    rows[own_recency].add(make_outcome(own_recency, [9.0], valid_rank=2.0), np.array([9.0]))
    assert best_heuristic(rows) == ("own-recency", 0.5)
    assert own_recency.role is Role.HEURISTIC
