"""`tclgraph similar`: the nodes whose vectors are most similar to a node's."""

from pathlib import Path
from typing import Annotated

import typer

from tclgraph.cli import options


def similar(
    run: Annotated[Path, typer.Argument(help="Folder of a run or of a saved model.")],
    key: Annotated[str, typer.Option(help="Key of the node, as in the log.")],
    side: Annotated[str, typer.Option(help="Side of the node: source or target.")] = "source",
    at: options.At = None,
    top: options.Top = 10,
    as_json: options.Json = False,
) -> None:
    """Show the nodes of the same side with the highest cosine similarity, best first."""
    from tclgraph.cli.runs import load_run, note_new_keys
    from tclgraph.cli.terminal import new_table, print_json, print_table
    from tclgraph.errors import InputError
    from tclgraph.events.times import parse_time

    if side not in ("source", "target"):
        raise InputError(f"unknown side {side!r}; give source or target")
    time = None if at is None else parse_time(at)
    model = load_run(run)
    is_source = side == "source"
    note_new_keys(model, [key] if is_source else [], [] if is_source else [key])
    nodes = model.similar(key, top=top, side="source" if is_source else "target", at=time)
    if as_json:
        entries = [node._asdict() for node in nodes]
        print_json({"key": key, "side": side, "at": at, "nodes": entries})
        return
    table = new_table(side, "similarity")
    for node in nodes:
        table.add_row(str(node.key), f"{node.similarity:.4f}")
    print_table(f"most similar to {key}:", table)
