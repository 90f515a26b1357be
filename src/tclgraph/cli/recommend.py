"""`tclgraph recommend`: what will a source interact with next?"""

from pathlib import Path
from typing import Annotated

import typer

from tclgraph.cli import options


def recommend(
    run: Annotated[Path, typer.Argument(help="Folder of a run.")],
    source: Annotated[str, typer.Option(help="Key of the source, as in the log.")],
    at: options.At = None,
    top: Annotated[int, typer.Option(min=1, help="How many.")] = 10,
    as_json: options.Json = False,
) -> None:
    """The likeliest next targets of a source, best first."""
    from tclgraph.cli.runs import load_run
    from tclgraph.cli.terminal import new_table, print_json, print_table
    from tclgraph.events.times import parse_time

    model = load_run(run)
    found = model.recommend(source, top=top, at=None if at is None else parse_time(at))
    if as_json:
        print_json(
            {
                "source": source,
                "at": at,
                "recommendations": [one._asdict() for one in found],
            }
        )
        return
    table = new_table("target", "score")
    for one in found:
        table.add_row(str(one.target), f"{one.score:.4f}")
    print_table(f"{source}, {'after the whole log' if at is None else f'before {at}'}:", table)
