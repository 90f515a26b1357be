"""The ranker against heuristics on repeats and new pairs, from made-up ranks."""

from tclgraph.reports.repeats import repeats_table
from tclgraph.studies.overall import overall_study
from tclgraph.studies.study import Results
from tests.reports.made_up import open_log, results, texts


def test_repeats_and_new_pairs_are_compared_separately() -> None:
    study = overall_study(open_log(), ["popularity", "own-recency", "ranker"])
    popularity, own_recency, ranker = study.entries
    # The last of the three test events is a new pair.
    rows = {
        popularity: results(popularity, [4.0, 4.0, 2.0]),
        own_recency: results(own_recency, [1.0, 3.0, 8.0]),
        ranker: results(ranker, [2.0, 2.0, 4.0], [2.0, 2.0, 4.0]),
    }
    table = repeats_table(study, rows)
    assert table is not None
    assert table.columns[:4] == ("events", "heuristic", "MR [95 %]", "by MR")
    assert [row[:4] for row in texts(table)] == [
        ["repeat", "popularity", "+2.00 [+2.00, +2.00]", "better"],
        ["repeat", "own-recency", "+0.00 [−1.00, +1.00]", "unclear"],
        ["new pair", "popularity", "−2.00 [−2.00, −2.00]", "worse"],
        ["new pair", "own-recency", "+4.00 [+4.00, +4.00]", "better"],
    ]
    assert table.groups == (2,)
    assert "repeat 2, new pair 1. Seeds of the ranker: 2." in table.note


def test_there_is_no_table_without_the_ranker_or_heuristics() -> None:
    study = overall_study(open_log(), ["popularity", "ranker"])
    popularity, ranker = study.entries
    empty = {entry: Results(entry=entry) for entry in study.entries}
    assert repeats_table(study, empty) is None
    assert repeats_table(study, {**empty, ranker: results(ranker, [1.0] * 3)}) is None
    assert repeats_table(study, {**empty, popularity: results(popularity, [1.0] * 3)}) is None
