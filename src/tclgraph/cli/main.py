"""The `tclgraph` command. Verbs import what they need when they run, so that --help is quick."""

import os
import sys

import typer

from tclgraph.cli.datasets import datasets
from tclgraph.cli.describe import describe
from tclgraph.cli.embed import embed
from tclgraph.cli.evaluate import evaluate
from tclgraph.cli.recommend import recommend
from tclgraph.cli.reproduce import reproduce
from tclgraph.cli.train import train
from tclgraph.cli.tune import tune
from tclgraph.errors import InputError

app = typer.Typer(
    help="Continuous-time dynamic graphs: what will each node interact with next?",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # plain help, in half the time
    pretty_exceptions_enable=False,
)
app.command()(datasets)
app.command()(describe)
app.command()(train)
app.command()(tune)
app.command()(evaluate)
app.command()(recommend)
app.command()(embed)
app.command()(reproduce)


def main() -> None:
    """Run a command; bad input ends in one sentence and exit code 2."""
    try:
        app()
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        # Files are refused with their names where they are opened; what is left is our own output.
        print(f"error: cannot write the output: {error.strerror or error}", file=sys.stderr)
        os._exit(2)  # without the flush at exit, which would fail again and say so


if __name__ == "__main__":
    main()
