"""`tclgraph evaluate`: rank every test event with a model."""

from typing import TYPE_CHECKING, Annotated

import typer

from tclgraph.cli import options

if TYPE_CHECKING:
    from rich.table import Table

    from tclgraph.evaluation.report import Report

_SHOWN = ("MR", "MRR", "Hit@1", "Hit@10", "NDCG@10")


@options.with_log_options
def evaluate(
    model: Annotated[str, typer.Option(help="A model's name, or `floors` for all the floors.")],
    data: Annotated[str, typer.Option(help="A catalogue name or a file.")],
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
    from tclgraph import __version__
    from tclgraph.cli.log import file_name, open_split
    from tclgraph.cli.machine import machine
    from tclgraph.cli.terminal import print_json, print_table, progress
    from tclgraph.evaluation import protocol
    from tclgraph.evaluation.update import Update
    from tclgraph.models import registry

    # What can be refused without reading the log is refused before it.
    Update.parse(update)
    if model != "floors":
        registry.build(model)
    parts = open_split(data, log_options)
    names = registry.floors(parts.events.graph) if model == "floors" else (model,)
    reports = []
    for name in names:
        with progress(name) as show:
            reports.append(
                protocol.evaluate(
                    registry.build(name).fit(parts),
                    parts,
                    update=update,
                    mask_seen=mask_seen,
                    seed=seed,
                    progress=show,
                )
            )
    if not as_json:
        if model == "floors":
            print_table(_title(data, reports[0]), _comparison(reports))
        else:
            print(f"{data}: {reports[0]}")
        return
    told = {
        "data": data,
        "file": file_name(data),
        "parts": parts.sizes,
        "version": __version__,
        "machine": machine(),
    }
    if model == "floors":
        print_json({"model": model, **told, "floors": [report.to_json() for report in reports]})
    else:
        print_json({**reports[0].to_json(), **told})


def _title(data: str, report: "Report") -> str:
    from tclgraph.evaluation.update import Update

    return (
        f"{data}: {report.groups['all'].events:,} {report.part} events, each ranked among "
        f"{report.targets:,} targets\ngraph {report.graph} | split {report.split} | "
        f"update {report.update} ({Update.parse(report.update).meaning})"
    )


def _comparison(reports: "list[Report]") -> "Table":
    from tclgraph.cli.terminal import new_table
    from tclgraph.evaluation.metrics import LOWER_IS_BETTER
    from tclgraph.evaluation.report import decimals

    table = new_table("floor", *_SHOWN, "MR repeat", "MR new", "events/s")
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
