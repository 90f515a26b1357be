"""`tclgraph recommend`: the most likely next targets of sources."""

from pathlib import Path
from typing import Annotated, Optional

import typer

from tclgraph.cli import options


def recommend(
    run: Annotated[Path, typer.Argument(help="Folder of a run or of a saved model.")],
    source: Annotated[list[str], typer.Option(help="Key of a source, as in the log; repeatable.")],
    at: options.At = None,
    top: options.Top = 10,
    exclude_seen: Annotated[
        bool,
        typer.Option("--exclude-seen", help="Leave out targets the source has interacted with."),
    ] = False,
    candidate: Annotated[
        Optional[list[str]],
        typer.Option(help="Rank only these targets: key of a target; repeatable. Default: all."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Show the most likely next targets of each source, best first."""
    from tclgraph.cli.runs import load_run, note_new_keys
    from tclgraph.cli.terminal import new_table, print_json, print_table
    from tclgraph.events.times import parse_time

    time = None if at is None else parse_time(at)
    model = load_run(run)
    note_new_keys(model, source, candidate or ())
    rankings = model.recommend_many(
        source,
        top=top,
        at=time,
        exclude_seen=exclude_seen,
        candidates=candidate,
    )
    if as_json:
        entries = [
            {"source": key, "recommendations": [entry._asdict() for entry in ranking]}
            for key, ranking in rankings.items()
        ]
        print_json({"at": at, "sources": entries})
        return
    when = "after the complete log" if at is None else f"before {at}"
    for key, ranking in rankings.items():
        table = new_table("target", "score")
        for entry in ranking:
            table.add_row(str(entry.target), f"{entry.score:.4f}")
        print_table(f"{key}, {when}:", table)
