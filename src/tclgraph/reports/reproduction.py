"""The paper's evaluation section: which studies there are, and one folder with all of them.

| file in the folder    | what                                                              |
|-----------------------|-------------------------------------------------------------------|
| report.html           | everything on one page                                            |
| tables/….md .csv .tex | every table                                                       |
| figures/….png .svg    | every figure                                                      |
| jobs/                 | what the tables are made of; see `jobs`                           |
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tclgraph import __version__
from tclgraph.environment import environment
from tclgraph.errors import InputError, did_you_mean
from tclgraph.events.catalog import CATALOG, find
from tclgraph.events.log_spec import LogSpec
from tclgraph.events.split import Split
from tclgraph.jobs.job import Job
from tclgraph.reports import findings, summaries
from tclgraph.reports.claims import tables_of_claims
from tclgraph.reports.figures import draw_curves, draw_sweep
from tclgraph.reports.page import Figure, Section, write_report
from tclgraph.reports.table import Table, write_table
from tclgraph.studies import plans
from tclgraph.studies.plans import Results, Study
from tclgraph.studies.published import DATA_SETS

WHAT = ("datasets", "overall", "ablation", "depth", "heads", "all")
_PROTOCOL = (
    "For every test event, in order, all targets of the data set are scored for the event's "
    "source at the event's time; the rank of the true target is recorded; only then is the event "
    "revealed. Nothing is sampled, ties share their middle rank, and targets that the source has "
    "met before stay in the ranking. MR is the mean rank, MRR the mean of one over it, Hit@10 the "
    "percentage of ranks up to 10.",
    "A streaming model follows every event that has been revealed. A frozen one ranks by what "
    "training left, whatever has happened since. The heuristics are rules without anything learned, "
    "and stream. Of every run the epoch with the best validation MRR counts; nothing is chosen by "
    "test events.",
    "Models have the settings that their own pages give as defaults, at width 64, the same on "
    "every log; the paper tuned each of them.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """What was asked for."""

    opened: tuple[tuple[LogSpec, Split], ...]
    studies: tuple[Study, ...]

    def jobs(self, num_seeds: int) -> list[Job]:
        """All that there is to do, each once."""
        found: dict[str, Job] = {}
        for seed in range(num_seeds):
            for study in self.studies:
                for job in study.jobs(num_seeds):
                    if job.seed == seed:
                        found.setdefault(job.key, job)
        return list(found.values())


def plan(
    what: Sequence[str], logs: Sequence[LogSpec], models: Sequence[str] | None
) -> Reproduction:
    """Open the logs, and say what is to be computed of them."""
    for one in what:
        if one not in WHAT:
            raise InputError(f"cannot reproduce {one!r}; {did_you_mean(one, WHAT)}")
    wanted = WHAT if "all" in what else what
    for name, count in Counter(data.name for data in logs).items():
        if count > 1:
            raise InputError(
                f"{count} logs are called {name!r}, as their tables would be; rename one, or give "
                "each a call and an --out of its own"
            )
    opened = [(data, data.open()) for data in map(plans.as_published, logs or known_logs())]
    studies: list[Study] = []
    for data, split in opened:
        if "overall" in wanted:
            chosen = models or plans.EVERYTHING
            studies.append(plans.overall(data, split, chosen))
            if (also := plans.overall_one_mode(data, chosen)) is not None:
                studies.append(also)
        if "ablation" in wanted:
            studies += [plans.ablation(data, split, preset) for preset in plans.ABLATED]
        if "depth" in wanted:
            studies.append(plans.depth(data, split))
        if "heads" in wanted:
            studies.append(plans.heads(data, split))
    return Reproduction(opened=tuple(opened), studies=tuple(studies))


def known_logs() -> list[LogSpec]:
    """The paper's data sets that are on this machine."""
    return [LogSpec(log=name) for name in DATA_SETS if find(CATALOG[name]) is not None]


def write_everything(
    asked: Reproduction,
    folder: Path,
    *,
    command: str,
    remarks: Sequence[str],
    show: Callable[[int, int], None],
) -> list[Table]:
    """Tables, figures and the report of what is there; `remarks` say what is not, and why.

    `show` is told how many of the report's pages are made, and of how many.
    """
    found = [(study, study.results(folder)) for study in asked.studies]
    pages = [_data_sets(asked)]
    machines: dict[str, None] = {}
    for place, (study, results) in enumerate(found):
        show(place, len(found) + 1)
        for one in results.values():
            machines.update({_made_by(outcome): None for outcome in one.outcomes})
        pages.append(_section(study, results, folder / "figures"))
    show(len(found), len(found) + 1)
    if told := tables_of_claims(found):
        pages.insert(0, Section(heading="Claims of the paper", tables=tuple(told)))
    tables = [table for page in pages for table in page.tables]
    for table in tables:
        write_table(table, folder / "tables")
    here = {"version": __version__, "machine": environment()}
    about = Section(
        heading="How this was made",
        paragraphs=(
            f"Last written by tclgraph {__version__}: `{command}`",
            *_PROTOCOL,
            "Computed with " + ("; ".join(machines) or _made_by(here)) + ".",
        ),
    )
    missing = Section(heading="What is missing", paragraphs=tuple(remarks) or ("Nothing.",))
    write_report(
        folder / "report.html",
        title="TCL and nine baselines, reproduced",
        subtitle=", ".join(data.name for data, _ in asked.opened),
        sections=[about, *pages, missing],
    )
    return tables


def _data_sets(asked: Reproduction) -> Section:
    """Those of the paper also with its filter where it is not used, and without where it is."""
    shown = []
    for data, split in asked.opened:
        shown.append((data, split))
        if data.log in DATA_SETS:
            other = replace(data, seen_only=not data.seen_only)
            with suppress(InputError):  # where a part would have no events
                shown.append((other, other.open()))
    return Section(heading="Data sets", tables=(summaries.table_of_data_sets(shown),))


def _section(study: Study, results: dict[str, Results], folder: Path) -> Section:
    on = summaries.titled(study)
    path = folder / summaries.file_name(study)
    if study.name.startswith("overall"):
        tables = [summaries.table_of_models(study, results)]
        if any(one.outcomes for one in results.values()):
            tables += [
                summaries.table_of_costs(study, results),
                findings.table_of_meetings(study, results),
                findings.table_of_quarters(study, results),
                *findings.table_of_comparisons(study, results),
            ]
        return Section(
            heading=f"Overall comparison on {on}",
            tables=tuple(tables),
            figures=_curves(study, results, path.with_name(f"{path.name}-curves")),
        )
    if study.name.startswith("ablation"):
        preset = study.name.removeprefix("ablation-")
        return Section(
            heading=f"Ablation of preset {preset} on {on}",
            tables=(findings.table_of_ablation(study, results),),
        )
    word = {"depth": "depth of the sub-graphs", "heads": "number of heads"}[study.name]
    return Section(
        heading=f"By {word} on {on}",
        tables=(summaries.table_of_points(study, results),),
        figures=_sweep(study, results, path, word),
    )


def _curves(study: Study, results: dict[str, Results], path: Path) -> tuple[Figure, ...]:
    curves = summaries.curves_of(results)
    if not curves:
        return ()
    path.parent.mkdir(parents=True, exist_ok=True)
    draw_curves(
        curves,
        metric="MRR",
        heuristic=summaries.best_heuristic(results),
        title=f"Validation MRR on {summaries.titled(study)}",
        path=path,
    )
    caption = "Learning curves, one line for each seed; the dot is the epoch that counts."
    return (Figure(path=path, caption=caption),)


def _sweep(study: Study, results: dict[str, Results], path: Path, word: str) -> tuple[Figure, ...]:
    series = summaries.series_of(results)
    if not series.x:
        return ()
    path.parent.mkdir(parents=True, exist_ok=True)
    draw_sweep(
        [series],
        metrics=("MR", "Hit@10"),
        xlabel=word,
        title=f"TCL, preset paper, on {summaries.titled(study)}",
        path=path,
    )
    return (Figure(path=path, caption=f"Test figures by {word}; bars are ± one deviation."),)


def _made_by(outcome: Mapping[str, Any]) -> str:
    found = outcome["machine"]
    versions = ", ".join(f"{name} {found[name]}" for name in ("python", "torch", "numba", "numpy"))
    threads = f", {found['threads']} thread(s) a job" if "threads" in found else ""
    return (
        f"tclgraph {outcome['version']} on {found['processor']}, {found['cores']} cores{threads}, "
        f"{found['system']}, {versions}"
    )
