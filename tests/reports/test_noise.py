"""Tables and series of the study of robustness to noise, from made-up results."""

import numpy as np
import pytest

from tclgraph.reports.noise import noise_series, noise_table, robustness_table
from tclgraph.studies.noise import NoiseStudy, noise_study
from tclgraph.studies.study import Entry, Results
from tests.reports.made_up import make_outcome, open_log, texts

CLEAN_AND_NOISY = {
    # Ranks on test and on validation, of two seeds each.
    "TCL, 0 %": [(2.0, 1.0), (2.0, 1.0)],
    "TCL, 20 %": [(4.0, 2.0), (4.0, 1.6)],
    "point process, 0 %": [(4.0, 2.0), (4.0, 2.0)],
    "point process, 20 %": [(10.0, 4.0), (10.0, 5.0)],
    "TGN, 0 %": [(1.0, 1.0)],
    "TGN, 20 %": [(2.0, 2.0)],
}


@pytest.fixture
def study() -> NoiseStudy:
    return noise_study(open_log())


def rows_of(study: NoiseStudy) -> dict[Entry, Results]:
    rows = {}
    for entry in study.entries:
        rows[entry] = Results(entry=entry)
        for seed, (test, valid) in enumerate(CLEAN_AND_NOISY.get(entry.name, [])):
            outcome = make_outcome(entry, [test] * 3, seed=seed, valid_rank=valid)
            rows[entry].add(outcome, np.full(3, test))
    return rows


def test_the_table_shows_both_parts_and_what_is_lost(study: NoiseStudy) -> None:
    table = noise_table(study, rows_of(study))
    by_name = {row[0]: row[1:] for row in texts(table)}
    assert len(by_name) == 12
    assert table.groups == (4, 8)
    assert by_name["TCL, 0 %"] == [
        "2",
        "1.0000 ± 0.0000",
        "100.00 ± 0.00",
        "–",
        "2.00 ± 0.00",
        "0.5000 ± 0.0000",
        "100.00 ± 0.00",
        "–",
        "–",
    ]
    assert by_name["TCL, 5 %"] == ["0", *["–"] * 8]
    # On validation, seed 0 loses 1 - 1/2 and seed 1 loses 1 - 5/8.
    assert by_name["TCL, 20 %"][3] == "0.4375 ± 0.0884"
    # On test, both lose 1/2 - 1/4, which is half.
    assert by_name["TCL, 20 %"][7:] == ["+0.2500 [+0.2500, +0.2500]", "+50.0"]
    assert by_name["TGN, 20 %"][3] == "0.5000"


def test_losses_are_compared_on_both_parts(study: NoiseStudy) -> None:
    table = robustness_table(study, rows_of(study))
    rows = {(row[0], row[1], row[3]): [row[2], *row[4:]] for row in texts(table)}
    assert list(rows)[:4] == [
        ("point process", share, unit) for share in ("5", "10") for unit in ("MRR", "% of MRR")
    ]
    assert table.groups == (6,)
    assert rows["point process", "5", "MRR"] == ["0", "–", "–", "–", "–"]
    # On validation, TCL loses 0.5 and 0.375, the point process 0.25 and 0.3. The mean of -0.25 and
    # -0.075 has a standard error of 0.0875, and the t-quantile is 12.706.
    assert rows["point process", "20", "MRR"] == [
        "2",
        "−0.1625 [−1.2743, +0.9493]",
        "unclear",
        "−0.1000 [−0.1000, −0.1000]",
        "no",
    ]
    # In percent, TCL loses 50 and 37.5 on validation and 50 on test, the point process 50 and 60 on
    # validation and 60 on test.
    assert rows["point process", "20", "% of MRR"] == [
        "2",
        "+11.2 [−131.7, +154.2]",
        "unclear",
        "+10.0 [+10.0, +10.0]",
        "yes",
    ]
    # One seed has no interval over seeds.
    assert rows["TGN", "20", "MRR"] == ["1", "–", "–", "+0.2500 [+0.2500, +0.2500]", "yes"]


def test_a_line_has_the_shares_with_results(study: NoiseStudy) -> None:
    rows = rows_of(study)
    valid = noise_series(study, rows, ("MRR", "Hit@10"), "valid")
    test = noise_series(study, rows, ("MRR", "Hit@10"), "test")
    assert [line.name for line in test] == ["TCL", "point process", "TGN"]
    assert {line.x for line in test} == {(0.0, 20.0)}
    assert valid[0].mean["MRR"] == pytest.approx((1.0, 0.5625))
    assert valid[0].deviation["MRR"] == pytest.approx((0.0, 0.125 / 2**0.5))
    assert test[0].mean["MRR"] == (0.5, 0.25)
    assert test[2].deviation["Hit@10"] == (0.0, 0.0)
    nothing = {entry: Results(entry=entry) for entry in study.entries}
    assert noise_series(study, nothing, ("MRR",), "test") == []
