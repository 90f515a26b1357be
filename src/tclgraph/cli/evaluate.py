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

    from tclgraph.evaluation.report import Report
    from tclgraph.events.split import Split
    from tclgraph.models.interface import Model

_HEURISTICS = "heuristics"
_SHOWN = ("MR", "MRR", "Hit@1", "Hit@10", "NDCG@10")


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleOptions:
    """Flags that say what a model knows of the events before it ranks one."""

    update: Annotated[
        str,
        typer.Option(
            help="When the state of the model follows the test events: streaming (after each), "
            "every=N (after each block of N), frozen (it ends with train) or frozen=valid."
        ),
    ] = "streaming"
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
    data: Annotated[Optional[str], typer.Option(help="Catalog name or path of a file.")] = None,
    as_json: options.Json = False,
    *,
    rules: RuleOptions,
    spec_for: options.SpecFor,
) -> None:
    """Rank all targets for every test event: MR, MRR, Hit@k and NDCG, for repeats and new pairs."""
    from tclgraph.cli.runs import read_log_spec
    from tclgraph.cli.terminal import open_log, progress
    from tclgraph.evaluation import protocol
    from tclgraph.evaluation.simultaneous import check_simultaneous, rules_for_tables
    from tclgraph.evaluation.update import Update

    # Check all arguments before reading the log, which can take long.
    rule = Update.parse(rules.update)
    if rules.simultaneous is not None:
        check_simultaneous(rules.simultaneous)
    fitted_models = _fitted_models(run, model, data)
    if run is not None:
        options.refuse_log_options(spec_for, run)
    spec = read_log_spec(run) if run is not None else spec_for(str(data))
    split = open_log(spec)
    reports = []
    for fitted in fitted_models(split):
        with progress(fitted.name) as show:
            report = protocol.evaluate(
                fitted,
                split,
                update=rules.update,
                simultaneous=rules.simultaneous or rules_for_tables(split.events, rule),
                mask_seen=rules.mask_seen,
                seed=rules.seed,
                progress=show,
            )
        reports.append(report)
    if as_json:
        origin = {"data": spec.log if run is None else Path(spec.log).name, "file": spec.file}
        _print_json(reports, {**origin, "parts": split.sizes}, is_comparison=model == _HEURISTICS)
    else:
        _print(spec.log, reports, is_comparison=model == _HEURISTICS)


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


def _print_json(reports: "list[Report]", log: dict[str, Any], *, is_comparison: bool) -> None:
    from tclgraph import __version__
    from tclgraph.cli.terminal import print_json
    from tclgraph.environment import environment

    origin = {**log, "version": __version__, "machine": environment()}
    if is_comparison:
        heuristics = [report.to_json() for report in reports]
        print_json({"model": _HEURISTICS, **origin, "heuristics": heuristics})
    else:
        print_json({**reports[0].to_json(), **origin})


def _print(log: str, reports: "Sequence[Report]", *, is_comparison: bool) -> None:
    from tclgraph.cli.terminal import print_table
    from tclgraph.evaluation.report import TOGETHER

    report = reports[0]
    if not is_comparison:
        print(f"{log}: {report}")
        return
    title = f"{log}: {report.num_events:,} {report.part} events, each ranked among "
    print_table(f"{title}{report.targets:,} targets\n{report.rules}", _comparison(reports))
    if together := [report.together for report in reports if report.together]:
        print_table(f"{TOGETHER}\n{together[0].rules}", _comparison(together))


def _comparison(reports: "Sequence[Report]") -> "Table":
    from tclgraph.cli.terminal import new_table
    from tclgraph.evaluation.metrics import LOWER_IS_BETTER
    from tclgraph.evaluation.report import decimals

    table = new_table("heuristic", *_SHOWN, "MR repeat", "MR new", "events/s")
    best = {
        metric: (min if metric in LOWER_IS_BETTER else max)(report[metric] for report in reports)
        for metric in _SHOWN
    }
    for report in reports:
        cells = []
        for metric in _SHOWN:
            cell = f"{report[metric]:.{decimals(metric)}f}"
            cells.append(f"[bold]{cell}[/bold]" if report[metric] == best[metric] else cell)
        cells += [
            f"{group.metrics['MR']:.2f}" if group.metrics else "-"
            for group in (report.groups["repeat"], report.groups["new"])
        ]
        table.add_row(report.model, *cells, f"{report.num_events / report.seconds:,.0f}")
    return table
