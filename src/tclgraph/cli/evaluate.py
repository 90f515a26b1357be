"""`tclgraph evaluate`: rank all targets for every test event."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from tclgraph.cli import options
from tclgraph.cli.flag_groups import with_flags

if TYPE_CHECKING:
    from rich.table import Table

    from tclgraph.evaluation.groups import Group
    from tclgraph.evaluation.report import GroupReport, Report
    from tclgraph.evaluation.rules import Rules
    from tclgraph.events.log_spec import LogSpec
    from tclgraph.events.split import Split
    from tclgraph.models.interface import Model

_HEURISTICS = "heuristics"
_SHOWN = ("MR", "MRR", "Hit@1", "Hit@10", "NDCG@10")
_By = Annotated[
    Optional[str],
    typer.Option(
        metavar="COLUMN",
        help="Column of the log, such as a segment of customers: report each of its values too.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleOptions:
    """Flags that say what an event is ranked among and what a model knows before it."""

    protocol: Annotated[
        str,
        typer.Option(
            help="paper: rank among all targets. tgb: the Temporal Graph Benchmark's split at the "
            "time quantiles 0.70 and 0.85, and its candidates."
        ),
    ] = "paper"
    candidates: Annotated[
        str,
        typer.Option(
            help="all: rank among all targets of the data set. known: rank among the targets that "
            "have occurred before the event; an event whose target has not is ranked last and "
            "counted apart."
        ),
    ] = "all"
    update: Annotated[
        Optional[str],
        typer.Option(
            help="When the state of the model follows the test events: streaming (after each), "
            "every=N (after each block of N), frozen (it ends with train) or frozen=valid. "
            "Default: streaming; with --protocol tgb, both every=200 and streaming."
        ),
    ] = None
    simultaneous: Annotated[
        Optional[str],
        typer.Option(
            help="Whether events of the same time are revealed in-order, as in the file, or "
            "together, after the last of them is ranked; both shows both. Default: in-order, and "
            "both if over 5 % of the events share source and time with the event before."
        ),
    ] = None
    mask_seen: Annotated[
        bool,
        typer.Option(
            "--mask-seen",
            help="Remove the other targets that the source has interacted with from each ranking.",
        ),
    ] = False
    seed: Annotated[int, typer.Option(min=0, help="Seed of the bootstrap intervals.")] = 0


@options.with_log_options
@with_flags("rules", RuleOptions)
def evaluate(
    run: Annotated[
        Optional[Path], typer.Argument(help="Folder of a run. Without it, give --model and --data.")
    ] = None,
    model: Annotated[
        Optional[str],
        typer.Option(help="Name of a model to fit and evaluate, or `heuristics` for all of them."),
    ] = None,
    data: Annotated[Optional[str], typer.Option(help=options.LOG_HELP)] = None,
    by: _By = None,
    as_json: options.Json = False,
    *,
    rules: RuleOptions,
    spec_for: options.SpecFor,
) -> None:
    """Rank all targets for every test event: MR, MRR, Hit@k and NDCG, for repeats and new pairs."""
    from tclgraph.cli.runs import check_log_of_run, read_log_spec
    from tclgraph.cli.terminal import open_log, progress
    from tclgraph.evaluation import protocol
    from tclgraph.evaluation.simultaneous import rules_for_tables
    from tclgraph.evaluation.update import Update

    # Check all arguments before reading the log, which can take long.
    all_rules = _all_rules(rules)
    fitted_models = _fitted_models(run, model, data)
    if run is None:
        spec = _with_split_of(rules.protocol, spec_for(str(data)))
    else:
        options.refuse_log_options(spec_for, run)
        spec = read_log_spec(run)
    split = open_log(spec, segment=by)
    if run is not None:
        check_log_of_run(run, split)
    for arguments in all_rules:
        if rules.simultaneous is None:
            update = Update.parse(arguments["update"])
            arguments["simultaneous"] = rules_for_tables(split.events, update)
    reports: list[list[Report]] = [[] for _ in all_rules]
    for fitted in fitted_models(split):
        for arguments, reports_by_rule in zip(all_rules, reports, strict=True):
            with progress(fitted.name) as show:
                report = protocol.evaluate(fitted, split, progress=show, **arguments)
            reports_by_rule.append(report)
    if as_json:
        data_name = spec.log if run is None else Path(spec.log).name
        origin: dict[str, Any] = {"data": data_name, "file": spec.file, "parts": split.sizes}
        if settings := fitted.settings():
            origin["settings"] = settings
        _print_json(reports, origin, is_comparison=model == _HEURISTICS)
        return
    for number, reports_by_rule in enumerate(reports):
        if number:
            print()
        _print(spec.log, reports_by_rule, is_comparison=model == _HEURISTICS)
    if len(reports) > 1:
        print("\nfigures under different update rules must not be compared")


def _all_rules(rules: RuleOptions) -> "list[Rules]":
    """Return the rules of each evaluation; the protocol tgb has two update rules."""
    from tclgraph.evaluation.candidates import check_candidates
    from tclgraph.evaluation.simultaneous import check_simultaneous
    from tclgraph.evaluation.tgb import UPDATES, check_protocol
    from tclgraph.evaluation.update import Update

    is_tgb = check_protocol(rules.protocol, mask_seen=rules.mask_seen) == "tgb"
    updates: tuple[str, ...] = UPDATES if is_tgb else ("streaming",)
    if rules.update is not None:
        Update.parse(rules.update)
        updates = (rules.update,)
    check_candidates(rules.candidates, protocol=rules.protocol)
    simultaneous = rules.simultaneous or "in-order"
    check_simultaneous(simultaneous)
    return [
        {
            "protocol": rules.protocol,
            "candidates": rules.candidates,
            "update": update,
            "simultaneous": simultaneous,
            "mask_seen": rules.mask_seen,
            "seed": rules.seed,
        }
        for update in updates
    ]


def _with_split_of(protocol: str, spec: "LogSpec") -> "LogSpec":
    """Return a log with the split of the protocol, if the protocol has its own."""
    from dataclasses import replace

    from tclgraph.errors import InputError
    from tclgraph.evaluation.tgb import SHARES

    if protocol != "tgb":
        return spec
    if given := {"--split", "--split-by", "--seen-only"} & set(spec.flags()):
        raise InputError(f"the protocol tgb has its own split; leave out {' '.join(sorted(given))}")
    return replace(spec, split=SHARES, split_by="quantiles")


def _fitted_models(
    run: Path | None, name: str | None, data: str | None
) -> "Callable[[Split], Iterable[Model]]":
    """Return a function of the split that gives the models to evaluate, fitted."""
    from tclgraph import registry
    from tclgraph.cli.runs import load_run
    from tclgraph.errors import InputError
    from tclgraph.heuristics.rules import heuristics_for

    if run is not None:
        if name or data:
            raise InputError(
                "the run folder names its model and its log; leave out --model and --data"
            )
        loaded = load_run(run)
        return lambda _: [loaded]
    if name is None or data is None:
        raise InputError("nothing to evaluate; give the folder of a run, or --model and --data")
    if name == _HEURISTICS:
        return lambda split: (
            heuristic().fit(split) for heuristic in heuristics_for(split.events.kind)
        )
    model = registry.build(name)
    return lambda split: [model.fit(split)]


def _print_json(reports: "list[list[Report]]", log: dict[str, Any], *, is_comparison: bool) -> None:
    """Print the reports by one rule, or by update rule if there are several."""
    from tclgraph import __version__
    from tclgraph.cli.terminal import print_json
    from tclgraph.environment import environment

    origin = {**log, "version": __version__, "machine": environment()}
    by_update = {
        reports_by_rule[0].update: _document(reports_by_rule, is_comparison=is_comparison)
        for reports_by_rule in reports
    }
    first = next(iter(by_update.values()))
    if len(by_update) == 1:
        print_json({**first, **origin})
    else:
        print_json({"model": first["model"], **origin, "updates": by_update})


def _document(reports: "list[Report]", *, is_comparison: bool) -> dict[str, Any]:
    """Return the reports under one rule as JSON values."""
    if is_comparison:
        return {"model": _HEURISTICS, "heuristics": [report.to_json() for report in reports]}
    return reports[0].to_json()


def _print(log: str, reports: "Sequence[Report]", *, is_comparison: bool) -> None:
    from tclgraph.cli.terminal import print_table
    from tclgraph.evaluation.report import TOGETHER

    report = reports[0]
    if not is_comparison:
        print(f"{log}: {report}")
        return
    title = f"{log}: {report.num_events:,} {report.part} events, {report.ranked_among}"
    header = "\n".join(filter(None, [title, report.rules, report.about_first_occurrences]))
    print_table(header, _comparison(reports))
    print_table(f"top {report.top.depth} targets", _top(reports))
    if report.segments:
        print_table(f"MRR by {report.segmented_by}", _by_segment(reports))
    if together := [report.together for report in reports if report.together]:
        print_table(f"{TOGETHER}\n{together[0].rules}", _comparison(together))


def _comparison(reports: "Sequence[Report]") -> "Table":
    from tclgraph.cli.terminal import new_table
    from tclgraph.evaluation.metrics import LOWER_IS_BETTER
    from tclgraph.evaluation.report import decimals

    groups: tuple[Group, ...] = ("repeat", "new", "unseen")
    of_groups = [f"MR {name}" for name in groups]
    table = new_table("heuristic", *_SHOWN, *of_groups, "events/s")
    best = {
        metric: (min if metric in LOWER_IS_BETTER else max)(report[metric] for report in reports)
        for metric in _SHOWN
    }
    for report in reports:
        cells = []
        for metric in _SHOWN:
            cell = f"{report[metric]:.{decimals(metric)}f}"
            cells.append(f"[bold]{cell}[/bold]" if report[metric] == best[metric] else cell)
        cells += [_mean_rank(report.groups[name]) for name in groups]
        table.add_row(report.model, *cells, f"{report.num_events / report.seconds:,.0f}")
    return table


def _mean_rank(group: "GroupReport") -> str:
    return f"{group.metrics['MR']:.2f}" if group.metrics else "-"


def _top(reports: "Sequence[Report]") -> "Table":
    from tclgraph.cli.terminal import new_table

    table = new_table("heuristic", "coverage, %", "novelty, bits")
    for report in reports:
        table.add_row(report.model, *report.top.cells())
    return table


def _by_segment(reports: "Sequence[Report]") -> "Table":
    """Return a table with the largest segments as rows and the MRR of each heuristic as columns."""
    from rich.markup import escape

    from tclgraph.cli.terminal import new_table
    from tclgraph.evaluation.report import decimals, largest_segments, shortened

    table = new_table("segment (events)", *(report.model for report in reports))
    shown, num_others, num_events = largest_segments(reports[0])
    for name, group in shown.items():
        by_model = [report.segments[name].metrics for report in reports]
        cells = [
            f"{metrics['MRR']:.{decimals('MRR')}f}" if metrics else "-" for metrics in by_model
        ]
        table.add_row(f"{escape(shortened(name))} ({group.events:,})", *cells)
    if num_others:
        table.add_row(f"{num_others:,} smaller ({num_events:,})")
    return table
