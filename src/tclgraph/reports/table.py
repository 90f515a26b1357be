"""Tables of results, written as Markdown, CSV, LaTeX and HTML.

The first column is text and aligned left; the others are figures and aligned right. The best
figure of a column is bold, the second best underlined. Titles and notes may have `code` in
backticks; cells are plain text.
"""

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Literal, TypeAlias

from tclgraph.events.writers import replacing

Emphasis: TypeAlias = Literal["best", "second"]


@dataclass(frozen=True, slots=True)
class Cell:
    """The text of a cell, and whether it is the best or second best of its column."""

    text: str
    emphasis: Emphasis | None = None
    stands_for: str | None = None
    """Long form of a short mark: it replaces the mark in CSV, and is its tooltip in HTML."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The content of a table, independent of its format."""

    name: str
    """Stem of the table's files."""
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    """Text below the table."""
    groups: tuple[int, ...] = ()
    """Numbers of the rows that begin a new group, after a thin line."""
    is_shown_in_terminal: bool = True
    """Whether the command prints the table; wide tables are in the report only."""

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise ValueError(
                    f"row {number} of table {self.name} has {len(row)} cells, "
                    f"but there are {len(self.columns)} columns"
                )


def emphasize(values: Sequence[float | None], *, lower_is_better: bool) -> list[Emphasis | None]:
    """Mark the best and the second best value; equal values share a mark.

    Values that are shown rounded must be rounded before.

    >>> emphasize([3.0, None, 1.0, 2.0], lower_is_better=True)
    [None, None, 'best', 'second']
    """
    ordered = sorted({value for value in values if value is not None}, reverse=not lower_is_better)
    marks: dict[float | None, Emphasis] = dict(zip(ordered, ("best", "second"), strict=False))
    return [marks.get(value) for value in values]


def to_markdown(table: Table) -> str:
    """Format a table as Markdown, which has no lines between groups."""
    marked = {"best": "**{}**", "second": "<u>{}</u>", None: "{}"}
    rows = [
        [_markdown(column) for column in table.columns],
        [":--"] + ["--:"] * (len(table.columns) - 1),
        *(
            [marked[cell.emphasis].format(_markdown(cell.text)) for cell in row]
            for row in table.rows
        ),
    ]
    lines = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    title, note = (
        with_code(text, _markdown, lambda code: f"`{code}`") for text in (table.title, table.note)
    )
    return f"**{title}**\n\n{lines}\n" + (f"\n{note}\n" if note else "")


def to_csv(table: Table) -> str:
    """Format a table as CSV: the names of the columns and the text of the cells."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows([cell.stands_for or cell.text for cell in row] for row in table.rows)
    return text.getvalue()


def to_latex(table: Table) -> str:
    r"""Format a table as LaTeX; the preamble needs `\usepackage{booktabs}`."""
    marked = {"best": r"\textbf{%s}", "second": r"\underline{%s}", None: "%s"}
    groups = "\\midrule\n".join(
        "".join(
            " & ".join(marked[cell.emphasis] % _latex(cell.text) for cell in row) + " \\\\\n"
            for row in group
        )
        for group in _groups(table)
    )
    title, note = (
        with_code(text, _latex, lambda code: rf"\texttt{{{_latex(code)}}}")
        for text in (table.title, table.note)
    )
    below = f"\\par\\smallskip\n\\parbox{{0.95\\linewidth}}{{\\footnotesize {note}}}\n"
    return (
        "\\begin{table}\n\\centering\n\\small\n"
        f"\\caption{{{title}}}\n\\label{{tab:{table.name}}}\n"
        f"\\begin{{tabular}}{{l{'r' * (len(table.columns) - 1)}}}\n\\toprule\n"
        f"{' & '.join(map(_latex, table.columns))} \\\\\n\\midrule\n"
        f"{groups}\\bottomrule\n\\end{{tabular}}\n"
        f"{below if note else ''}\\end{{table}}\n"
    )


def to_html(table: Table) -> str:
    """Format a table as HTML without style; the note follows as a paragraph of class `note`."""
    marked = {"best": "<strong>{}</strong>", "second": "<u>{}</u>", None: "{}"}

    def html_cell(cell: Cell) -> str:
        title = "" if cell.stands_for is None else f' title="{escape(cell.stands_for)}"'
        return f"<td{title}>{marked[cell.emphasis].format(escape(cell.text))}</td>"

    def html_row(row: tuple[Cell, ...]) -> str:
        figures = "".join(map(html_cell, row[1:]))
        return f'<tr><th scope="row">{escape(row[0].text)}</th>{figures}</tr>\n'

    # A heading may break into two lines, but not between a number and its unit.
    columns = (escape(column).replace(" %", "&nbsp;%") for column in table.columns)
    head = "".join(f'<th scope="col">{column}</th>' for column in columns)
    body = "".join(
        f"<tbody>\n{''.join(map(html_row, group))}</tbody>\n" for group in _groups(table)
    )
    note = f'\n<p class="note">{html_text(table.note)}</p>' if table.note else ""
    return (
        f"<table>\n<caption>{html_text(table.title)}</caption>\n"
        f"<thead>\n<tr>{head}</tr>\n</thead>\n{body}</table>{note}"
    )


def write_table(table: Table, folder: Path) -> None:
    """Write a table as .md, .csv and .tex, each file complete or not at all."""
    for suffix, write in ((".md", to_markdown), (".csv", to_csv), (".tex", to_latex)):
        with replacing(folder / f"{table.name}{suffix}") as temporary:
            temporary.write_text(write(table), encoding="utf-8")


def html_text(text: str) -> str:
    """Escape plain text for HTML, and turn backticks into code elements.

    >>> html_text("`a < b` & c")
    '<code>a &lt; b</code> &amp; c'
    """
    return with_code(text, escape, lambda code: f"<code>{escape(code)}</code>")


def with_code(text: str, plain: Callable[[str], str], code: Callable[[str], str]) -> str:
    """Format the words in backticks with `code` and the rest of a text with `plain`."""
    parts = re.split(r"`([^`]+)`", text)
    return "".join(code(part) if number % 2 else plain(part) for number, part in enumerate(parts))


def _groups(table: Table) -> Iterator[tuple[tuple[Cell, ...], ...]]:
    for start, end in pairwise((0, *table.groups, len(table.rows))):
        if start < end:
            yield table.rows[start:end]


def _markdown(text: str) -> str:
    # An underscore inside a word, as in lastfm_head, is not markup and stays as it is.
    return re.sub(r"[\\|*<`\[]|\b_|_\b", r"\\\g<0>", text)


_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        **{character: rf"\{character}" for character in "&%$#_{}"},
        # At the start of a row, LaTeX would take these for options of the line break before it.
        **{character: f"{{{character}}}" for character in "[*"},
        "±": r"$\pm$",
        "−": "$-$",
        "×": r"$\times$",
        "↑": r"$\uparrow$",
        "↓": r"$\downarrow$",
        "→": r"$\rightarrow$",
        "–": "--",
    }
)


def _latex(text: str) -> str:
    # LaTeX turns two hyphens into a dash, and a command could not be copied from the page.
    return "-{}-".join(part.translate(_LATEX) for part in text.split("--"))
