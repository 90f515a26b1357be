"""The folder of a reproduction: tables, figures and a report of all studies of a plan.

| file in the folder    | content                                                            |
|-----------------------|--------------------------------------------------------------------|
| report.html           | everything on one page                                             |
| tables/….md .csv .tex | every table                                                        |
| figures/….png .svg    | every figure                                                       |
| jobs/                 | the outcomes that the tables are made from; see `tclgraph.jobs`    |
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tclgraph import __version__
from tclgraph.environment import environment
from tclgraph.evaluation.rules import Part
from tclgraph.jobs.outcome import Machine
from tclgraph.reports.ablation import MODEL_TITLES, ablation_table
from tclgraph.reports.against_paper import against_paper_table
from tclgraph.reports.breakdowns import (
    comparison_tables,
    pairs_table,
    quarters_table,
    unseen_table,
)
from tclgraph.reports.claims import claims_tables
from tclgraph.reports.datasets import data_sets_table, with_and_without_filter
from tclgraph.reports.figures import draw_curves, draw_sweep
from tclgraph.reports.noise import noise_series, noise_table, robustness_table
from tclgraph.reports.overall import (
    best_heuristic,
    cost_table,
    learning_curves,
    overall_table,
    tuning_table,
)
from tclgraph.reports.page import Figure, Section, write_report
from tclgraph.reports.parts import parts_table
from tclgraph.reports.reading import reading_table
from tclgraph.reports.repeats import repeats_table
from tclgraph.reports.simultaneous import together_tables
from tclgraph.reports.sweep import sweep_series, sweep_table
from tclgraph.reports.table import Table, write_table
from tclgraph.studies.ablation import AblationStudy
from tclgraph.studies.noise import NoiseStudy
from tclgraph.studies.overall import OverallStudy
from tclgraph.studies.parts import PartsStudy
from tclgraph.studies.plan import Plan
from tclgraph.studies.reading import ReadingStudy
from tclgraph.studies.study import Entry, Results, Study
from tclgraph.studies.sweep import SweepStudy

_PROTOCOL = (
    "Every test event is evaluated in order of time. The model scores all targets of the data set "
    "for the event's source at the event's time, the rank of the true target is recorded, and only "
    "then is the event revealed. No targets are sampled. Tied targets share their middle rank. "
    "Targets that the source has interacted with before stay in the ranking. MR is the mean rank, "
    "MRR the mean of the reciprocal rank, and Hit@10 the percentage of ranks up to 10.",
    "A streaming model is updated with every revealed event. A frozen model keeps the state after "
    "training. The heuristics are streaming rules without learned parameters. Each run is "
    "evaluated with the epoch that has the best validation MRR. No choice depends on test events.",
    "The baselines have the settings that a search has chosen for the log by validation events, if "
    "there was one; the table of tuned settings has them. All other models have their defaults. "
    "All models have width 64. The paper tuned each model.",
)


def write_reproduction(
    plan: Plan,
    folder: Path,
    *,
    command: str,
    remarks: Sequence[str],
    show: Callable[[int, int], None],
) -> list[Table]:
    """Write tables, figures and the report from the outcomes so far; return the tables.

    `remarks` say what is missing, and why. `show` is called with the number of finished sections
    and their total number.
    """
    studies = [(study, study.results(folder)) for study in plan.studies]
    data_sets = data_sets_table(with_and_without_filter(plan.logs))
    sections = [Section(heading="Data sets", tables=(data_sets,))]
    for number, (study, results) in enumerate(studies):
        show(number, len(studies) + 1)
        sections.append(_section(study, results, folder / "figures"))
    show(len(studies), len(studies) + 1)
    if claims := claims_tables(studies):
        sections.insert(0, Section(heading="Claims of the paper", tables=tuple(claims)))
    tables = [table for section in sections for table in section.tables]
    for table in tables:
        write_table(table, folder / "tables")
    about = Section(
        heading="How this was made",
        paragraphs=(
            f"Last written by tclgraph {__version__}: `{command}`",
            *_PROTOCOL,
            f"Computed with {_machines(studies)}.",
        ),
    )
    missing = Section(heading="What is missing", paragraphs=tuple(remarks) or ("Nothing.",))
    write_report(
        folder / "report.html",
        title="TCL and nine baselines, reproduced",
        subtitle=", ".join(log.spec.name for log in plan.logs),
        sections=[about, *sections, missing],
    )
    return tables


def _section(study: Study, results: Mapping[Entry, Results], folder: Path) -> Section:
    """Return the tables and figures of a study."""
    match study:
        case OverallStudy():
            return _overall_section(study, results, folder)
        case AblationStudy():
            return Section(
                heading=f"Ablation of {MODEL_TITLES[study.model]} on {study.log_title}",
                tables=(ablation_table(study, results),),
            )
        case SweepStudy():
            return Section(
                heading=f"TCL by {study.swept.label} on {study.log_title}",
                tables=(sweep_table(study, results),),
                figures=_sweep_figure(study, results, folder / study.file_name),
            )
        case PartsStudy():
            return Section(
                heading=f"Parts of the ranker on {study.log_title}",
                tables=(parts_table(study, results),),
            )
        case ReadingStudy():
            return Section(
                heading=f"Readings of the paper on {study.log_title}",
                tables=(reading_table(study, results),),
            )
        case NoiseStudy():
            return Section(
                heading=f"Robustness to random interactions on {study.log_title}",
                tables=(noise_table(study, results), robustness_table(study, results)),
                figures=_noise_figures(study, results, folder / study.file_name),
            )
        case _:
            raise TypeError(f"there is no section for a {type(study).__name__}")


def _overall_section(
    study: OverallStudy, results: Mapping[Entry, Results], folder: Path
) -> Section:
    tables = [overall_table(study, results)]
    if any(entry.tuned for entry in study.entries):
        tables.append(tuning_table(study))
    if (against_paper := against_paper_table(study, results)) is not None:
        tables.append(against_paper)
    if any(row.outcomes for row in results.values()):
        tables += [
            *together_tables(study, results),
            cost_table(study, results),
            pairs_table(study, results),
            *filter(None, [unseen_table(study, results)]),
            quarters_table(study, results),
            *comparison_tables(study, results),
        ]
    if (against_heuristics := repeats_table(study, results)) is not None:
        tables.append(against_heuristics)
    return Section(
        heading=f"Overall comparison on {study.log_title}",
        tables=tuple(tables),
        figures=_curves_figure(study, results, folder / f"{study.file_name}-curves"),
    )


def _curves_figure(
    study: OverallStudy, results: Mapping[Entry, Results], path: Path
) -> tuple[Figure, ...]:
    curves = learning_curves(results)
    if not curves:
        return ()
    draw_curves(
        curves,
        metric="MRR",
        heuristic=best_heuristic(results),
        title=f"Validation MRR on {study.log_title}",
        path=path,
    )
    caption = "Learning curves, a line for each seed. A dot marks the epoch that is evaluated."
    return (Figure(path=path, caption=caption),)


def _sweep_figure(
    study: SweepStudy, results: Mapping[Entry, Results], path: Path
) -> tuple[Figure, ...]:
    metrics = ("MR", "Hit@10")
    series = sweep_series(study, results, metrics)
    if not series.x:
        return ()
    label = study.swept.label
    draw_sweep(
        [series],
        metrics=metrics,
        xlabel=label,
        title=f"TCL by {label} on {study.log_title}",
        path=path,
    )
    caption = f"Test figures by {label}. Bars show one standard deviation in each direction."
    return (Figure(path=path, caption=caption),)


def _noise_figures(
    study: NoiseStudy, results: Mapping[Entry, Results], path: Path
) -> tuple[Figure, ...]:
    """Draw the metrics on both parts over the share of random interactions."""
    metrics = ("MRR", "Hit@10")
    figures = []
    parts: tuple[tuple[Part, str], ...] = (("valid", "Validation"), ("test", "Test"))
    for part, title in parts:
        series = noise_series(study, results, metrics, part)
        if series:
            part_path = path.with_name(f"{path.name}-{part}")
            draw_sweep(
                series,
                metrics=metrics,
                xlabel="random interactions added, %",
                title=f"{title} events of {study.log_title} after noisy training",
                path=part_path,
            )
            caption = (
                f"{title} figures by the share of random interactions among the training events. "
                "Bars show one standard deviation in each direction."
            )
            figures.append(Figure(path=part_path, caption=caption))
    return tuple(figures)


def _machines(studies: Sequence[tuple[Study, Mapping[Entry, Results]]]) -> str:
    """Describe the machines of all outcomes, or this machine if there are none."""
    described = dict.fromkeys(
        _describe(outcome.version, outcome.machine)
        for _, results in studies
        for row in results.values()
        for outcome in row.outcomes
    )
    return "; ".join(described) or _describe(__version__, Machine.from_json(environment()))


def _describe(version: str, machine: Machine) -> str:
    threads = "" if machine.threads is None else f", threads per job: {machine.threads}"
    return (
        f"tclgraph {version} on {machine.processor}, {machine.cores} cores{threads}, "
        f"{machine.system}, python {machine.python}, torch {machine.torch}, numba {machine.numba}, "
        f"numpy {machine.numpy}"
    )
