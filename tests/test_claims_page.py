"""What docs/reproduce.md says about the paper's remarks is what the tables of claims say."""

from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
COLLEGEMSG = "collegemsg/tables/claims-two-id-spaces-collegemsg"
ONE_IDENTITY = "collegemsg/tables/claims-collegemsg"
WIKIPEDIA = "wikipedia/tables/claims-wikipedia"
BOTH = (COLLEGEMSG, WIKIPEDIA)
METRICS = ("MR", "MRR", "Hit@10")
STATIC = "static method better than"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """A sentence of the page, and what it says about a claim."""

    sentence: str
    claim: str
    tables: tuple[str, ...] = BOTH
    metrics: tuple[str, ...] = METRICS
    holds: str
    model: str = "baselines"


def verdict(table: str, model: str, claim: str, metric: str) -> str:
    """Return whether a claim holds: yes, no or unclear."""
    lines = (ROOT / "results" / "reproduce" / f"{table}.md").read_text().splitlines()
    header, _, *rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in lines
        if line.startswith("|")
    ]
    (row,) = (row for row in rows if row[:2] == [claim, model])
    return row[header.index(f"holds by {metric}")].removesuffix(" (1 seed)")


STATED = (
    Stated(
        sentence="TCL as published does not.",
        model="tcl",
        claim="better than every baseline",
        metrics=("MR", "MRR"),
        holds="no",
    ),
    Stated(
        sentence="while TCL has the best Hit@10, but its difference from TGN is unclear.",
        model="tcl",
        claim="better than every baseline",
        tables=(WIKIPEDIA,),
        metrics=("Hit@10",),
        holds="unclear",
    ),
    Stated(
        sentence="The ranker is better than every baseline in all three metrics on both logs.",
        model="ranker",
        claim="better than every baseline",
        holds="yes",
    ),
    Stated(
        sentence="They do, in all three metrics on both logs.",
        claim="continuous-time methods, with tcl, better on average than static and "
        "discrete-time methods",
        holds="yes",
    ),
    Stated(
        sentence="In mean rank, GraphSAGE is better than the average of the discrete-time methods "
        "on Wikipedia.",
        claim=f"{STATIC} discrete-time methods on average",
        tables=(WIKIPEDIA,),
        metrics=("MR",),
        holds="yes",
    ),
    Stated(
        sentence="In MRR and Hit@10 it is worse on Wikipedia,",
        claim=f"{STATIC} discrete-time methods on average",
        tables=(WIKIPEDIA,),
        metrics=("MRR", "Hit@10"),
        holds="no",
    ),
    Stated(
        sentence="and on CollegeMsg all three metrics are unclear.",
        claim=f"{STATIC} discrete-time methods on average",
        tables=(COLLEGEMSG,),
        holds="unclear",
    ),
    Stated(
        sentence="GraphSAGE is worse than their average in all three metrics on both logs.",
        claim=f"{STATIC} continuous-time baselines on average",
        holds="no",
    ),
    Stated(
        sentence="On test events of Wikipedia whose pair occurs in training, its mean rank is "
        "better,",
        claim=f"{STATIC} continuous-time baselines on average, on pairs of training",
        tables=(WIKIPEDIA,),
        metrics=("MR",),
        holds="yes",
    ),
    Stated(
        sentence="its MRR and Hit@10 are worse.",
        claim=f"{STATIC} continuous-time baselines on average, on pairs of training",
        tables=(WIKIPEDIA,),
        metrics=("MRR", "Hit@10"),
        holds="no",
    ),
    Stated(
        sentence="On such events of CollegeMsg this is unclear.",
        claim=f"{STATIC} continuous-time baselines on average, on pairs of training",
        tables=(COLLEGEMSG,),
        holds="unclear",
    ),
    Stated(
        sentence="On CollegeMsg this is unclear in mean rank",
        claim="tgat, tgn, tdig-mpnn and tcl better than jodie and deepcoevolve",
        tables=(COLLEGEMSG,),
        metrics=("MR",),
        holds="unclear",
    ),
    Stated(
        sentence="and fails in MRR and Hit@10: DeepCoevolve is better than TCL.",
        claim="tgat, tgn, tdig-mpnn and tcl better than jodie and deepcoevolve",
        tables=(COLLEGEMSG,),
        metrics=("MRR", "Hit@10"),
        holds="no",
    ),
    Stated(
        sentence="On Wikipedia it holds in mean rank",
        claim="tgat, tgn, tdig-mpnn and tcl better than jodie and deepcoevolve",
        tables=(WIKIPEDIA,),
        metrics=("MR",),
        holds="yes",
    ),
    Stated(
        sentence="and fails in MRR and Hit@10.",
        claim="tgat, tgn, tdig-mpnn and tcl better than jodie and deepcoevolve",
        tables=(WIKIPEDIA,),
        metrics=("MRR", "Hit@10"),
        holds="no",
    ),
    Stated(
        sentence="It fails in MR and MRR on both logs,",
        model="tcl",
        claim="better than tgat, tgn and tdig-mpnn",
        metrics=("MR", "MRR"),
        holds="no",
    ),
    Stated(
        sentence="and in Hit@10 on CollegeMsg.",
        model="tcl",
        claim="better than tgat, tgn and tdig-mpnn",
        tables=(COLLEGEMSG,),
        metrics=("Hit@10",),
        holds="no",
    ),
    Stated(
        sentence="In Hit@10 on Wikipedia it is unclear.",
        model="tcl",
        claim="better than tgat, tgn and tdig-mpnn",
        tables=(WIKIPEDIA,),
        metrics=("Hit@10",),
        holds="unclear",
    ),
    Stated(
        sentence="the point process has the better mean rank",
        model="tcl",
        claim="contrastive objective better than point process",
        tables=(COLLEGEMSG,),
        metrics=("MR",),
        holds="no",
    ),
    Stated(
        sentence="and the worse MRR.",
        model="tcl",
        claim="contrastive objective better than point process",
        tables=(COLLEGEMSG,),
        metrics=("MRR",),
        holds="yes",
    ),
    Stated(
        sentence="On Wikipedia it does in MRR, by a large margin.",
        model="tcl",
        claim="contrastive objective better than point process",
        tables=(WIKIPEDIA,),
        metrics=("MRR",),
        holds="yes",
    ),
    Stated(
        sentence="MR and Hit@10 are unclear there,",
        model="tcl",
        claim="contrastive objective better than point process",
        tables=(WIKIPEDIA,),
        metrics=("MR", "Hit@10"),
        holds="unclear",
    ),
)

WITH_ONE_IDENTITY = (
    Stated(
        sentence="on test events, TCL is better without it in all three metrics.",
        model="tcl",
        claim="better than without time embedding",
        tables=(ONE_IDENTITY,),
        holds="no",
    ),
    *(
        Stated(
            sentence="**Depth embedding and cross-attention** are unclear in all three metrics.",
            model="tcl",
            claim=f"better than without {part}",
            tables=(ONE_IDENTITY,),
            holds="unclear",
        )
        for part in ("depth embedding", "cross-attention")
    ),
    Stated(
        sentence="the contrastive objective is better in MRR and Hit@10",
        model="tcl",
        claim="contrastive objective better than point process",
        tables=(ONE_IDENTITY,),
        metrics=("MRR", "Hit@10"),
        holds="yes",
    ),
    Stated(
        sentence="and worse in mean rank.",
        model="tcl",
        claim="contrastive objective better than point process",
        tables=(ONE_IDENTITY,),
        metrics=("MR",),
        holds="no",
    ),
)
"""Sentences about the ablation of TCL on CollegeMsg, five seeds a row."""


@pytest.mark.parametrize("stated", STATED, ids=lambda stated: stated.sentence)
def test_a_sentence_agrees_with_the_table_of_claims(stated: Stated) -> None:
    page = (ROOT / "docs" / "reproduce.md").read_text()
    section = page.split("## Which claims of the paper hold\n")[1].split("\n### ")[0]
    check(stated, section)


@pytest.mark.parametrize("stated", WITH_ONE_IDENTITY, ids=lambda stated: stated.claim)
def test_a_sentence_agrees_with_the_ablation_with_one_identity(stated: Stated) -> None:
    page = (ROOT / "docs" / "reproduce.md").read_text()
    check(stated, page.split("## Ablation (Table 3)\n")[1].split("\n## ")[0])


def check(stated: Stated, section: str) -> None:
    assert stated.sentence in " ".join(section.split())
    for table in stated.tables:
        for metric in stated.metrics:
            assert verdict(table, stated.model, stated.claim, metric) == stated.holds
