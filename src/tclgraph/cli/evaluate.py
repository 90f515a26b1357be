"""`tclgraph evaluate`: rank every test event with a model."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from tclgraph.cli import options

if TYPE_CHECKING:
    from rich.table import Table

    from tclgraph.evaluation.report import Report
    from tclgraph.models.interface import Model

_SHOWN = ("MR", "MRR", "Hit@1", "Hit@10", "NDCG@10")


@options.with_log_options
def evaluate(
    run: Annotated[
        Optional[Path], typer.Argument(help="Folder of a run; else give --model and --data.")
    ] = None,
    model: Annotated[
        Optional[str], typer.Option(help="A model's name, or `heuristics` for all the heuristics.")
    ] = None,
    data: Annotated[Optional[str], typer.Option(help="A catalogue name or a file.")] = None,
    update: Annotated[
        str, typer.Option(help="streaming, every=N, frozen (after train) or frozen=valid.")
    ] = "streaming",
    mask_seen: Annotated[
        bool, typer.Option("--mask-seen", help="Leave out the other targets a source has met.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of the bootstrap intervals.")] = 0,
    as_json: options.Json = False,
    *,
    log_options: options.LogOptions,
) -> None:
    """Rank all targets for every test event: MR, MRR, Hit@k, NDCG, for repeats and new pairs."""
    from tclgraph import __version__, registry
    from tclgraph.cli.log import file_name, open_split
    from tclgraph.cli.runs import recall_log
    from tclgraph.cli.terminal import print_json, print_table, progress
    from tclgraph.environment import environment
    from tclgraph.errors import InputError
    from tclgraph.evaluation import protocol
    from tclgraph.evaluation.update import Update
    from tclgraph.heuristics.rules import heuristics_for

    # What can be refused without reading the log is refused before it.
    Update.parse(update)
    if run is not None:
        if model or data:
            raise InputError("a run knows its model and its log; leave out --model and --data")
        fitted = registry.load_model(run)
        data, log_options = recall_log(run)
    elif model is None or data is None:
        raise InputError("give the folder of a run, or --model and --data")
    elif model != "heuristics":
        registry.build(model)
    parts = open_split(data, log_options)

    def report_on(fitted: "Model") -> "Report":
        with progress(fitted.name) as show:
            return protocol.evaluate(
                fitted, parts, update=update, mask_seen=mask_seen, seed=seed, progress=show
            )

    if run is not None:
        reports = [report_on(fitted)]
    elif model == "heuristics":
        reports = [report_on(one().fit(parts)) for one in heuristics_for(parts.events.kind)]
    else:
        reports = [report_on(registry.build(str(model)).fit(parts))]
    if not as_json:
        if model == "heuristics":
            print_table(_title(data, reports[0]), _comparison(reports))
        else:
            print(f"{data}: {reports[0]}")
        return
    told = {
        "data": data if run is None else Path(data).name,
        "file": file_name(data),
        "parts": parts.sizes,
        "version": __version__,
        "machine": environment(),
    }
    if model == "heuristics":
        print_json({"model": model, **told, "heuristics": [report.to_json() for report in reports]})
    else:
        print_json({**reports[0].to_json(), **told})


def _title(data: str, report: "Report") -> str:
    from tclgraph.evaluation.update import Update

    return (
        f"{data}: {report.groups['all'].events:,} {report.part} events, each ranked among "
        f"{report.targets:,} targets\ngraph {report.kind} | split {report.split} | "
        f"update {report.update} ({Update.parse(report.update).meaning})"
    )


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
        rate = report.groups["all"].events / report.seconds
        table.add_row(report.model, *cells, f"{rate:,.0f}")
    return table
