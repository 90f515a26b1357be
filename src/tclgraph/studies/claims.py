"""The claims of the paper: each says that entries of a study are better than others.

The remarks of the paper's section "Overall Performances" are read as follows.

- "TCL consistently outperforms all the competitors", "… surpass JODIE and DeepCoevolve" and "TCL
  performs relatively better than …" name single models. So every pair of models must agree.
- "On average, the continuous-time methods perform better than …" is about the mean of a metric over
  the models of a category. TCL is a continuous-time method.
- "In some scenarios", discrete-time methods are not better than static ones, and static methods are
  competitive with continuous-time baselines: a log is such a scenario if the static method is
  better than the mean of the others. The paper explains the latter by repeated interactions, so
  the same is tested on the test events whose pair occurs in training.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Self

from tclgraph.arrays import BoolArray
from tclgraph.studies.ablation import AblationStudy
from tclgraph.studies.noise import SHARES, NoiseStudy
from tclgraph.studies.overall import (
    BASELINES,
    CONTINUOUS_TIME,
    DISCRETE_TIME,
    FIRST_ORDER,
    HIGH_ORDER,
    STATIC,
    OverallStudy,
)
from tclgraph.studies.pair_groups import IN_TRAINING, pair_groups
from tclgraph.studies.study import Entry, Results, Role, Study
from tclgraph.studies.sweep import SweepStudy


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """A weighted sum of a metric over models; where higher is better, it should be positive."""

    terms: tuple[tuple[Results, float], ...]
    """Results of a model, and its weight."""
    pair: str = ""
    """Names of the two models, if a claim is about several pairs."""

    @classmethod
    def of_two(cls, better: Results, worse: Results, *, pair: str = "") -> Self:
        """Return a model minus another."""
        return cls(terms=((better, 1.0), (worse, -1.0)), pair=pair)

    @classmethod
    def of_means(cls, better: Sequence[Results], worse: Sequence[Results]) -> Self:
        """Return the mean over some models minus the mean over others."""
        return cls(
            terms=(
                *((row, 1 / len(better)) for row in better),
                *((row, -1 / len(worse)) for row in worse),
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A claim of the paper, about TCL, about the ranker in its place, or about baselines."""

    model: Literal["tcl", "ranker", "baselines"]
    text: str
    contrasts: tuple[Contrast, ...]
    """The claim holds if each of them does."""
    compared: tuple[Results, ...] = ()
    """Models that are resampled together, in this order; those of the contrasts if empty."""
    events: BoolArray | None = None
    """The test events that the claim is about; None means all."""

    @property
    def rows(self) -> tuple[Results, ...]:
        """Return the models that are resampled together."""
        if self.compared:
            return self.compared
        rows = {id(row): row for contrast in self.contrasts for row, _ in contrast.terms}
        return tuple(rows.values())

    def num_seeds(self, *, claimed_better: bool) -> list[int]:
        """Return the numbers of seeds of the models on one side of the claim."""
        return sorted(
            len(row.ranks)
            for contrast in self.contrasts
            for row, weight in contrast.terms
            if (weight > 0) == claimed_better
        )


def claims_of(study: Study, results: Mapping[Entry, Results]) -> Iterator[Claim]:
    """Yield the claims of a study for which all models have results."""
    for claim in _all_claims(study, results):
        if all(row.ranks for row in claim.rows):
            yield claim


def _all_claims(study: Study, results: Mapping[Entry, Results]) -> Iterator[Claim]:
    match study:
        case OverallStudy():
            yield from _overall_claims(study, results)
        case AblationStudy():
            yield from _ablation_claims(study, results)
        case NoiseStudy():
            yield from _noise_claims(study, results)
        case SweepStudy():
            first, *_, last = study.entries
            yield Claim(
                model="tcl",
                text=f"{last.name} better than {first.name}",
                contrasts=(Contrast.of_two(results[last], results[first]),),
            )


def _overall_claims(study: OverallStudy, results: Mapping[Entry, Results]) -> Iterator[Claim]:
    compared = tuple(row for row in results.values() if row.ranks)
    baselines = [row for row in compared if row.entry.role is Role.BASELINE]
    names = [row.entry.name for row in baselines]
    if names:
        are_all = set(BASELINES) <= set(names)
        text = f"better than {'every baseline' if are_all else _joined(names)}"
        if study.tcl is not None and results[study.tcl].ranks:
            contrasts = _every_pair([results[study.tcl]], baselines)
            yield Claim(model="tcl", text=text, contrasts=contrasts, compared=compared)
        if study.ranker is not None and results[study.ranker].ranks:
            contrasts = _every_pair([results[study.ranker]], baselines)
            yield Claim(model="ranker", text=text, contrasts=contrasts, compared=compared)
    yield from _remarks(study, compared)


def _remarks(study: OverallStudy, compared: tuple[Results, ...]) -> Iterator[Claim]:
    """Yield the remarks about categories of models, if all models of the categories are there."""
    by_name = {row.entry.name: row for row in compared}
    if not {*BASELINES, "tcl"} <= by_name.keys():
        return

    def of(names: Sequence[str]) -> list[Results]:
        return [by_name[name] for name in names]

    yield Claim(
        model="tcl",
        text=f"better than {_joined(HIGH_ORDER)}",
        contrasts=_every_pair(of(["tcl"]), of(HIGH_ORDER)),
        compared=compared,
    )
    yield Claim(
        model="baselines",
        text="continuous-time methods, with tcl, better on average than static and discrete-time "
        "methods",
        contrasts=(
            Contrast.of_means(of([*CONTINUOUS_TIME, "tcl"]), of([*STATIC, *DISCRETE_TIME])),
        ),
        compared=compared,
    )
    yield Claim(
        model="baselines",
        text="static method better than discrete-time methods on average",
        contrasts=(Contrast.of_means(of(STATIC), of(DISCRETE_TIME)),),
        compared=compared,
    )
    static = Contrast.of_means(of(STATIC), of(CONTINUOUS_TIME))
    text = "static method better than continuous-time baselines on average"
    yield Claim(model="baselines", text=text, contrasts=(static,), compared=compared)
    in_training = pair_groups(study.log.split)[IN_TRAINING]
    if in_training.any():
        yield Claim(
            model="baselines",
            text=f"{text}, on pairs of training",
            contrasts=(static,),
            compared=compared,
            events=in_training,
        )
    yield Claim(
        model="baselines",
        text=f"{_joined([*HIGH_ORDER, 'tcl'])} better than {_joined(FIRST_ORDER)}",
        contrasts=_every_pair(of([*HIGH_ORDER, "tcl"]), of(FIRST_ORDER)),
        compared=compared,
    )


def _ablation_claims(study: AblationStudy, results: Mapping[Entry, Results]) -> Iterator[Claim]:
    for entry in study.without:
        yield Claim(
            model=study.model,
            text=f"better than {entry.name}",
            contrasts=(Contrast.of_two(results[study.full], results[entry]),),
        )
    text = "contrastive objective better than point process"
    if study.without_history is not None:
        text += ", both without history features"
    yield Claim(
        model=study.model,
        text=text,
        contrasts=(Contrast.of_two(results[study.contrastive], results[study.point_process]),),
    )


def _noise_claims(study: NoiseStudy, results: Mapping[Entry, Results]) -> Iterator[Claim]:
    ours = study.contrastive
    for other in study.others:
        yield Claim(
            model="tcl",
            text=f"loses less than {other.name} at {100 * SHARES[-1]:g} % random interactions",
            contrasts=(
                # What the other loses, minus what TCL loses.
                Contrast(
                    terms=(
                        (results[other.clean], 1.0),
                        (results[other.noisiest], -1.0),
                        (results[ours.clean], -1.0),
                        (results[ours.noisiest], 1.0),
                    )
                ),
            ),
        )


def _every_pair(better: Sequence[Results], worse: Sequence[Results]) -> tuple[Contrast, ...]:
    return tuple(
        Contrast.of_two(first, second, pair=f"{first.entry.name}, {second.entry.name}")
        for first in better
        for second in worse
    )


def _joined(names: Sequence[str]) -> str:
    """Return names as a sentence lists them.

    >>> _joined(["tgat", "tgn", "tcl"])
    'tgat, tgn and tcl'
    """
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last
