"""`tclgraph evaluate`: rank all targets for every test event."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from tclgraph.cli import options

if TYPE_CHECKING:
    from rich.table import Table

    from tclgraph.evaluation.report import Report
    from tclgraph.events.split import Split
    from tclgraph.models.interface import Model

_HEURISTICS = "heuristics"
_SHOWN = ("MR", "MRR", "Hit@1", "Hit@10", "NDCG@10")


@options.with_log_options
def evaluate(
    run: Annotated[
        Optional[Path], typer.Argument(help="Folder of a run. Without it, give --model and --data.")
    ] = None,
    model: Annotated[
        Optional[str],
        typer.Option(help="Name of a model to fit and evaluate, or `heuristics` for all of them."),
    ] = None,
    data: Annotated[Optional[str], typer.Option(help="Catalog name or path of a file.")] = None,
    update: Annotated[
        str,
        typer.Option(
            help="When the state of the model follows the test events: streaming (after each), "
            "every=N (after each block of N), frozen (it ends with train) or frozen=valid."
        ),
    ] = "streaming",
    mask_seen: Annotated[
        bool,
        typer.Option(
            "--mask-seen",
            help="Remove the other targets that the source has interacted with from each ranking.",
        ),
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the bootstrap intervals.")] = 0,
    as_json: options.Json = False,
    *,
    spec_for: options.SpecFor,
) -> None:
    """Rank all targets for every test event: MR, MRR, Hit@k and NDCG, for repeats and new pairs."""
    from tclgraph.cli.runs import read_log_spec
    from tclgraph.cli.terminal import open_log, progress
    from tclgraph.evaluation import protocol
    from tclgraph.evaluation.update import Update

    # Check all arguments before reading the log, which can take long.
    Update.parse(update)
    fitted_models = _fitted_models(run, model, data)
    if run is not None:
        options.refuse_log_options(spec_for, run)
    spec = read_log_spec(run) if run is not None else spec_for(str(data))
    split = open_log(spec)
    reports = []
    for fitted in fitted_models(split):
        with progress(fitted.name) as show:
            report = protocol.evaluate(
                fitted, split, update=update, mask_seen=mask_seen, seed=seed, progress=show
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


def _print(log: str, reports: "list[Report]", *, is_comparison: bool) -> None:
    from tclgraph.cli.terminal import print_table

    report = reports[0]
    if is_comparison:
        title = f"{log}: {report.num_events:,} {report.part} events, each ranked among "
        print_table(f"{title}{report.targets:,} targets\n{report.rules}", _comparison(reports))
    else:
        print(f"{log}: {report}")


def _comparison(reports: "list[Report]") -> "Table":
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
