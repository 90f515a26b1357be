"""The table of both rules for simultaneous events, from made-up results."""

from dataclasses import replace

import numpy as np

from tclgraph.evaluation.metrics import metrics
from tclgraph.events.stream import EventStream
from tclgraph.reports.simultaneous import together_tables
from tclgraph.studies.overall import overall_study
from tclgraph.studies.study import Entry, OpenLog, Results
from tclgraph.testing.streams import cut
from tests.reports.made_up import make_outcome, open_log, texts

#  a-x and a-y are an order, so 1 of 7 events is simultaneous with the one before.
ORDERS = EventStream.from_columns(list("abaabab"), list("xyxyyyx"), [0, 1, 2, 2, 3, 4, 5])


def log_of_orders() -> OpenLog:
    return replace(open_log(), split=cut(ORDERS, 2, 4))


def by_both_rules(entry: Entry, in_order: list[float], together: list[float]) -> Results:
    row = Results(entry=entry)
    outcome = make_outcome(entry, in_order)
    report = replace(outcome.report, metrics=metrics(np.array(together)))
    row.add(replace(outcome, together=report), np.array(in_order))
    return row


def test_figures_are_shown_by_both_rules() -> None:
    study = overall_study(log_of_orders(), ["popularity", "tgn", "tcl"])
    popularity, tgn, tcl = study.entries
    rows = {
        popularity: by_both_rules(popularity, [1.0, 1.0, 1.0], [4.0, 4.0, 4.0]),
        tgn: by_both_rules(tgn, [2.0, 2.0, 2.0], [2.0, 2.0, 2.0]),
        tcl: Results(entry=tcl),
    }
    # A seed that was evaluated by one rule only does not count.
    rows[tgn].add(make_outcome(tgn, [9.0, 9.0, 9.0], seed=1), np.full(3, 9.0))
    (table,) = together_tables(study, rows)
    assert table.name == "overall-log-together"
    assert table.columns[2:4] == ("MR in order", "MR together")
    assert texts(table) == [
        ["popularity", "–", "1.00", "4.00", "1.0000", "0.2500", "100.00", "100.00"],
        ["tgn", "1", "2.00", "2.00", "0.5000", "0.5000", "100.00", "100.00"],
    ]
    assert [row[2].emphasis for row in table.rows] == ["best", "second"]
    assert [row[3].emphasis for row in table.rows] == ["second", "best"]
    assert table.groups == (1,)
    assert table.note.startswith("14.3 % of the events share source and time")


def test_a_log_with_few_simultaneous_events_has_no_such_table() -> None:
    study = overall_study(open_log(), ["popularity"])
    (entry,) = study.entries
    assert together_tables(study, {entry: by_both_rules(entry, [1.0], [2.0])}) == []
