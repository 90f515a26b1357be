"""Measured beside printed figures, from made-up ranks."""

import pytest

from tclgraph.reports.against_paper import against_paper_table
from tclgraph.studies.overall import overall_study
from tclgraph.studies.study import Results
from tests.reports.made_up import open_log, results, texts


def test_every_variant_of_a_model_is_compared_with_its_printed_figures() -> None:
    models = ["tcl", "tcl:negatives=all", "tgn", "ranker"]
    study = overall_study(open_log("collegemsg"), models)
    rows = {entry: Results(entry=entry) for entry in study.entries}
    by_name = {entry.name: entry for entry in study.entries}
    tcl, with_all = by_name["tcl"], by_name["tcl, negatives=all"]
    rows[tcl] = results(tcl, [100.0] * 3, [140.0] * 3)
    rows[with_all] = results(with_all, [120.0] * 3)
    rows[by_name["ranker"]] = results(by_name["ranker"], [1.0] * 3)
    table = against_paper_table(study, rows)
    assert table is not None
    # Welch: √(20² + 1.7² / 5) = 20.014 with one degree of freedom, times 12.706.
    assert texts(table) == [
        [
            *("tcl", "2", "120.00 ± 28.28", "137.57 ± 1.70", "−17.57 [−271.87, +236.73]"),
            *("0.00 ± 0.00", "45.53 ± 0.37", "−45.53 [−45.99, −45.07]"),
        ],
        [
            *("tcl, negatives=all", "1", "120.00", "137.57 ± 1.70", "–"),
            *("0.00", "45.53 ± 0.37", "–"),
        ],
    ]


@pytest.mark.parametrize("log", ["collegemsg", "log"])
def test_there_is_no_table_without_printed_figures(log: str) -> None:
    study = overall_study(open_log(log), ["popularity", "ranker"])
    rows = {entry: results(entry, [1.0] * 3) for entry in study.entries}
    assert against_paper_table(study, rows) is None
