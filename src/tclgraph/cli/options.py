"""Options that several verbs share, worded once."""

from typing import Annotated, Optional

import typer

Graph = Annotated[
    Optional[str],
    typer.Option(help="bipartite or one-mode; default: as the data set is."),
]
Source = Annotated[Optional[str], typer.Option(help="Column of the source; else guessed.")]
Target = Annotated[Optional[str], typer.Option(help="Column of the target; else guessed.")]
Time = Annotated[Optional[str], typer.Option(help="Column of the time; else guessed.")]
TimeUnit = Annotated[str, typer.Option(help="Unit of numeric times: s, ms, us or ns.")]
Header = Annotated[
    Optional[bool],
    typer.Option(
        "--header/--no-header",
        help="Whether a text file has a header line; else seen from it. "
        "Without one, columns are called 1, 2, 3, …",
    ),
]
Split = Annotated[
    Optional[str],
    typer.Option(
        help="Percent of train/valid/test; default: the paper's, else 70/15/15.",
    ),
]
SplitBy = Annotated[str, typer.Option(help="Shares of rows or of time.")]
SeenOnly = Annotated[
    bool,
    typer.Option(
        "--seen-only",
        help="Drop valid and test rows whose source or target does not act so in train, "
        "as the paper's authors do.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, nothing else.")]
