"""Which claims of the paper hold here.

A claim is that one of two models is the better one. It is put to the same test in the paper's own
measure, MR, and in Hit@10, which a few very bad ranks do not move.
"""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tclgraph.reports.summaries import INTERVALS, borders_of, gain_of, with_interval
from tclgraph.reports.table import Cell, Table
from tclgraph.studies.plans import HISTORY_TERMS, POINT_PROCESS, Results, Study

_MEASURES = ("MR", "Hit@10")
_PRESETS = ("paper", "default")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Claim:
    preset: str
    text: str
    better: Results
    """As the paper has it."""
    worse: Results


def tables_of_claims(found: Sequence[tuple[Study, dict[str, Results]]]) -> list[Table]:
    """A table for each log, a row for each claim that there are results for."""
    by_log: dict[str, list[_Claim]] = {}
    for study, results in found:
        by_log.setdefault(study.data.name, []).extend(
            claim for claim in _claims(study, results) if claim.better.ranks and claim.worse.ranks
        )
    return [_table(log, told) for log, told in by_log.items() if told]


def _table(log: str, told: list[_Claim]) -> Table:
    told = sorted(told, key=lambda claim: _PRESETS.index(claim.preset))
    return Table(
        name=f"claims-{log}",
        title=f"What the paper claims, and whether it holds on {log}",
        columns=(
            "claim",
            "preset",
            "seeds",
            *(text for one in _MEASURES for text in (f"{one} better by [95 %]", f"in {one}")),
        ),
        rows=tuple(_row(claim) for claim in told),
        groups=borders_of([claim.preset for claim in told]),
        note="By how much the one that should be better is so on test. It holds, or does not, if 0 "
        "is outside of the interval. Seeds: of the one that should be better, and of the other. "
        f"The best baseline is that with the best MR. {INTERVALS}",
    )


def _row(claim: _Claim) -> tuple[Cell, ...]:
    cells = []
    num_seeds = (len(claim.better.ranks), len(claim.worse.ranks))
    for metric in _MEASURES:
        gain = gain_of(claim.better, claim.worse, metric)
        verdict = "unclear"
        if gain.is_clear:
            verdict = "yes" if gain.mean > 0 else "no"
            if min(num_seeds) == 1:
                verdict += ", of 1 seed"
        cells += [Cell(with_interval(gain, metric)), Cell(verdict)]
    seeds = Cell(", ".join(map(str, num_seeds)))
    return (Cell(claim.text), Cell(claim.preset), seeds, *cells)


def _claims(study: Study, results: dict[str, Results]) -> Iterator[_Claim]:
    if study.name == "overall":
        baselines = [one for one in results.values() if one.entry.group == "baseline" and one.ranks]
        if not baselines:
            return
        best = min(baselines, key=lambda one: statistics.fmean(one.figures("MR")))
        text = f"better than {best.entry.name}, the best baseline"
        for preset in _PRESETS:
            if (own := results.get(f"TCL, {preset}")) is not None:
                yield _Claim(preset=preset, text=text, better=own, worse=best)
    elif study.name.startswith("ablation"):
        preset = study.name.removeprefix("ablation-")
        for name, one in results.items():
            text, better = f"better than {name}", results["full"]
            if name == POINT_PROCESS:
                text = "contrast better than point process"
                if preset == "default":
                    # Which has to do without them, so that they are not what is compared.
                    better = results[HISTORY_TERMS]
                    text += ", both without history"
            if name not in ("full", HISTORY_TERMS):
                yield _Claim(preset=preset, text=text, better=better, worse=one)
    elif study.name in ("depth", "heads"):
        first, *_, last = results
        yield _Claim(
            preset="paper",
            text=f"{last} better than {first}",
            better=results[last],
            worse=results[first],
        )
