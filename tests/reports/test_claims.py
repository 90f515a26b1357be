"""The table of claims, from made-up ranks whose figures can be worked out by hand."""

import pytest

from tclgraph.reports.claims import claims_tables
from tclgraph.studies.noise import noise_study
from tclgraph.studies.overall import BASELINES, overall_study
from tclgraph.studies.study import Entry, OpenLog, Results, Study
from tests.reports.made_up import open_log, results, texts

RANKS = {
    "graphsage": 40.0,
    "ctdne": 60.0,
    "dyngem": 50.0,
    "dysat": 70.0,
    "jodie": 30.0,
    "deepcoevolve": 20.0,
    "tgat": 10.0,
    "tgn": 8.0,
    "tdig-mpnn": 6.0,
    "tcl": 4.0,
}
"""Mean rank of every model of the paper."""


def rows_of(study: Study, ranks: dict[str, list[list[float]]]) -> dict[Entry, Results]:
    """Return the results of a study, given the ranks of every seed by the names of entries."""
    return {entry: results(entry, *ranks.get(entry.name, [])) for entry in study.entries}


def claims(study: Study, ranks: dict[str, list[list[float]]]) -> dict[str, list[str]]:
    """Return the cells after the claim by the claim and the model."""
    (table,) = claims_tables([(study, rows_of(study, ranks))])
    return {f"{row[1]}: {row[0]}": row[2:] for row in texts(table)}


def test_a_model_beats_the_baselines_if_it_beats_each_of_them() -> None:
    study = overall_study(open_log(), ["popularity", "tgn", "jodie", "tcl", "ranker"])
    seeds = {"popularity": 1, "tgn": 2, "jodie": 2, "tcl": 2, "ranker": 2}
    ranks = {"popularity": 1.0, "tgn": 4.0, "jodie": 6.0, "tcl": 3.0, "ranker": 5.0}
    rows = claims(study, {name: [[rank] * 3] * seeds[name] for name, rank in ranks.items()})
    assert rows["tcl: better than tgn and jodie"][:3] == [
        "2, 2",
        "+1.00 [+1.00, +1.00] (tcl, tgn)",
        "yes",
    ]
    # One baseline is better than the ranker.
    assert rows["ranker: better than tgn and jodie"][1:3] == [
        "−1.00 [−1.00, −1.00] (ranker, tgn)",
        "no",
    ]


def test_a_claim_about_several_models_is_unclear_if_one_pair_is() -> None:
    study = overall_study(open_log(), ["tgn", "jodie", "tcl"])
    rows = claims(study, {"tgn": [[1.0, 9.0] * 2], "jodie": [[9.0] * 4], "tcl": [[5.0] * 4]})
    cells = rows["tcl: better than tgn and jodie"]
    assert cells[1] == "+0.00 [−4.00, +4.00] (tcl, tgn)"
    assert cells[2] == "unclear"


def test_the_models_claimed_to_be_better_may_have_other_numbers_of_seeds() -> None:
    study = overall_study(open_log(), ["tgn", "jodie", "tcl"])
    rows = claims(study, {"tgn": [[9.0] * 3], "jodie": [[9.0] * 3] * 3, "tcl": [[1.0] * 3] * 2})
    cells = rows["tcl: better than tgn and jodie"]
    assert cells[0] == "2, 1–3"
    assert cells[2] == "yes (1 seed)"


def test_the_remarks_about_categories() -> None:
    study = overall_study(open_log(), [*BASELINES, "tcl"])
    ranks = {name: [[rank] * 3] * 2 for name, rank in RANKS.items()}
    # Of three test events, the pair of the first occurs in training.
    ranks["graphsage"] = [[10.0, 55.0, 55.0]] * 2
    rows = claims(study, ranks)
    average = "better on average than static and discrete-time methods"
    static = "baselines: static method better than"
    expected = {
        "tcl: better than every baseline": ("+2.00", "(tcl, tdig-mpnn)", "yes"),
        "tcl: better than tgat, tgn and tdig-mpnn": ("+2.00", "(tcl, tdig-mpnn)", "yes"),
        # (40 + 60 + 50 + 70) / 4 - (30 + 20 + 10 + 8 + 6 + 4) / 6
        f"baselines: continuous-time methods, with tcl, {average}": ("+42.00", "]", "yes"),
        # (60 + 50 + 70) / 3 - 40
        f"{static} discrete-time methods on average": ("+20.00", "]", "yes"),
        # (30 + 20 + 10 + 8 + 6) / 5 - 40
        f"{static} continuous-time baselines on average": ("−25.20", "]", "unclear"),
        f"{static} continuous-time baselines on average, on pairs of training": (
            "+4.80",
            "[+4.80, +4.80]",
            "yes",
        ),
        "baselines: tgat, tgn, tdig-mpnn and tcl better than jodie and deepcoevolve": (
            "+10.00",
            "(tgat, deepcoevolve)",
            "yes",
        ),
    }
    assert rows.keys() == expected.keys()
    for claim, (start, end, verdict) in expected.items():
        _, improvement, holds, *_ = rows[claim]
        assert improvement.startswith(f"{start} [")
        assert improvement.endswith(end)
        assert holds == verdict


def test_remarks_need_all_models_of_their_categories() -> None:
    study = overall_study(open_log(), [*BASELINES, "tcl"])
    ranks = {name: [[rank] * 3] for name, rank in RANKS.items() if name != "dysat"}
    names = [name for name in BASELINES if name != "dysat"]
    text = f"tcl: better than {', '.join(names[:-1])} and {names[-1]}"
    assert list(claims(study, ranks)) == [text]


@pytest.mark.parametrize(
    ("noisy", "improvement", "holds"),
    [
        (2.5, "+0.0500 [+0.0500, +0.0500]", "yes"),  # loses 1/2 - 2/5 = 0.1
        (5.0, "−0.1500 [−0.1500, −0.1500]", "no"),  # loses 1/2 - 1/5 = 0.3
    ],
)
def test_what_is_lost_by_noise_is_compared(noisy: float, improvement: str, holds: str) -> None:
    ranks = {
        "TCL, 0 %": 2.0,
        "TCL, 20 %": noisy,
        "point process, 0 %": 4.0,
        "point process, 20 %": 10.0,  # loses 1/4 - 1/10 = 0.15
    }
    rows = claims(noise_study(open_log()), {name: [[rank] * 3] * 2 for name, rank in ranks.items()})
    assert list(rows) == ["tcl: loses less than point process at 20 % random interactions"]
    (cells,) = rows.values()
    assert cells[0] == "2, 2"
    assert cells[3:5] == [improvement, holds]


def test_claims_about_two_id_spaces_have_a_table_of_their_own() -> None:
    one_identity = open_log("collegemsg")
    two_id_spaces = OpenLog(spec=one_identity.spec, split=open_log().split, digest="")
    tables = claims_tables(
        [
            (study, rows_of(study, {"tgn": [[9.0] * 3], "tcl": [[1.0] * 3]}))
            for study in (
                overall_study(log, ["tgn", "tcl"]) for log in (one_identity, two_id_spaces)
            )
        ]
    )
    assert [table.name for table in tables] == [
        "claims-collegemsg",
        "claims-two-id-spaces-collegemsg",
    ]
    assert tables[1].title == "Claims of the paper, tested on collegemsg (two id spaces)"
