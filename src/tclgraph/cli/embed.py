"""`tclgraph embed`: write the vector of every node to a file."""

from pathlib import Path
from typing import Annotated

import typer

from tclgraph.cli import options
from tclgraph.cli.interruption import keyboard_interrupts


def embed(
    run: Annotated[Path, typer.Argument(help="Folder of a run or of a saved model.")],
    out: Annotated[Path, typer.Option(help="File to write; its name ends in .parquet.")],
    at: options.At = None,
) -> None:
    """Write the vector of every node: columns side, key and vector."""
    from tclgraph.cli.runs import load_run
    from tclgraph.errors import InputError
    from tclgraph.events.times import parse_time
    from tclgraph.events.writers import write_parquet

    if out.suffix != ".parquet":
        raise InputError(f"cannot write {out.name}: the name must end in .parquet")
    frame = load_run(run).embeddings(at=None if at is None else parse_time(at))
    with keyboard_interrupts():  # removes what is half-written
        write_parquet(frame, out)
    print(f"{out}: {len(frame):,} vectors of width {len(frame['vector'][0])}")
