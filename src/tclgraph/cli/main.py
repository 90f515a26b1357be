"""The `tclgraph` command.

Each command imports what it needs when it runs, so that `tclgraph --help` is fast.
"""

import os
import sys

import typer

from tclgraph.cli.datasets import datasets
from tclgraph.cli.describe import describe
from tclgraph.cli.embed import embed
from tclgraph.cli.evaluate import evaluate
from tclgraph.cli.interruption import exit_on_ctrl_c
from tclgraph.cli.recommend import recommend
from tclgraph.cli.reproduce import reproduce
from tclgraph.cli.similar import similar
from tclgraph.cli.train import train
from tclgraph.cli.tune import tune
from tclgraph.cli.update import update
from tclgraph.errors import InputError

app = typer.Typer(
    help="Predict the next interactions in a continuous-time dynamic graph.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # plain help appears in half the time
    pretty_exceptions_enable=False,
)
app.command()(datasets)
app.command()(describe)
app.command()(train)
app.command()(tune)
app.command()(evaluate)
app.command()(update)
app.command()(recommend)
app.command()(similar)
app.command()(embed)
app.command()(reproduce)


def main() -> None:
    """Run a command; invalid input ends with a one-sentence error and exit code 2."""
    exit_on_ctrl_c()
    try:
        app()
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        # Readers and writers of files report their own errors; what is left is stdout or a folder.
        place = error.filename or "the output"
        reason = error.strerror or error
        print(f"error: cannot write {place}: {reason}; check disk and permissions", file=sys.stderr)
        os._exit(2)  # skips the flush at exit, which would fail again


if __name__ == "__main__":
    main()
