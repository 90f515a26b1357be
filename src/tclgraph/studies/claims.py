"""The claims of the paper: each says that one entry of a study is better than another."""

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from tclgraph.studies.ablation import AblationStudy
from tclgraph.studies.overall import OverallStudy
from tclgraph.studies.study import Entry, Results, Role, Study
from tclgraph.studies.sweep import SweepStudy


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A claim about TCL, or the same claim about the ranker."""

    model: Literal["tcl", "ranker"]
    text: str
    better: Results
    """Results of the entry that the paper claims to be better."""
    worse: Results


def claims_of(study: Study, results: Mapping[Entry, Results]) -> Iterator[Claim]:
    """Yield the claims of a study for which both entries have results."""
    for claim in _all_claims(study, results):
        if claim.better.ranks and claim.worse.ranks:
            yield claim


def _all_claims(study: Study, results: Mapping[Entry, Results]) -> Iterator[Claim]:
    match study:
        case OverallStudy(is_one_mode_variant=False):
            yield from _overall_claims(study, results)
        case AblationStudy():
            yield from _ablation_claims(study, results)
        case SweepStudy():
            first, *_, last = study.entries
            yield Claim(
                model="tcl",
                text=f"{last.name} better than {first.name}",
                better=results[last],
                worse=results[first],
            )


def _overall_claims(study: OverallStudy, results: Mapping[Entry, Results]) -> Iterator[Claim]:
    baselines = [row for entry, row in results.items() if entry.role is Role.BASELINE and row.ranks]
    if not baselines:
        return
    best = min(baselines, key=lambda row: statistics.fmean(row.figures("MR")))
    text = f"better than {best.entry.name}, the best baseline"
    if study.tcl is not None:
        yield Claim(model="tcl", text=text, better=results[study.tcl], worse=best)
    if study.ranker is not None:
        yield Claim(model="ranker", text=text, better=results[study.ranker], worse=best)


def _ablation_claims(study: AblationStudy, results: Mapping[Entry, Results]) -> Iterator[Claim]:
    for entry in study.without:
        yield Claim(
            model=study.model,
            text=f"better than {entry.name}",
            better=results[study.full],
            worse=results[entry],
        )
    text = "contrastive objective better than point process"
    if study.without_history is not None:
        text += ", both without history features"
    yield Claim(
        model=study.model,
        text=text,
        better=results[study.contrastive],
        worse=results[study.point_process],
    )
