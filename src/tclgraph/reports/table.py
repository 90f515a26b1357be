"""Tables of results, written for four readers: Markdown, a spreadsheet, LaTeX and HTML.

The first column is text and stands left; the others are figures and stand right. Of a column's
figures the best is bold and the second best underlined. `Code` in backticks may stand in titles
and notes; cells are taken as they are.
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
    """A figure as it is shown, and how it does in its column."""

    text: str
    emphasis: Emphasis | None = None
    stands_for: str | None = None
    """What a mark is short for: in a spreadsheet in its place, on a page when pointed at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """What is to be shown, apart from how."""

    name: str
    """Stem of its files."""
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    """Below the table."""
    groups: tuple[int, ...] = ()
    """Rows before which a thin line separates groups."""

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise ValueError(
                    f"row {number} of table {self.name} has {len(row)} cells, "
                    f"but there are {len(self.columns)} columns"
                )


def emphasize(values: Sequence[float | None], *, lower_is_better: bool) -> list[Emphasis | None]:
    """The best and the second best; equal values share. Round first what is shown rounded.

    >>> emphasize([3.0, None, 1.0, 2.0], lower_is_better=True)
    [None, None, 'best', 'second']
    """
    ordered = sorted({one for one in values if one is not None}, reverse=not lower_is_better)
    marks: dict[float | None, Emphasis] = dict(zip(ordered, ("best", "second"), strict=False))
    return [marks.get(one) for one in values]


def to_markdown(table: Table) -> str:
    """For a README. Markdown has no line between groups."""
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
    """For a spreadsheet: the names of the columns and what the cells say."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows([cell.stands_for or cell.text for cell in row] for row in table.rows)
    return text.getvalue()


def to_latex(table: Table) -> str:
    r"""For a paper whose preamble has `\usepackage{booktabs}`."""
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
    """For a page that brings its own style; the note follows as a paragraph of class note."""
    marked = {"best": "<strong>{}</strong>", "second": "<u>{}</u>", None: "{}"}

    def html_cell(cell: Cell) -> str:
        title = "" if cell.stands_for is None else f' title="{escape(cell.stands_for)}"'
        return f"<td{title}>{marked[cell.emphasis].format(escape(cell.text))}</td>"

    def html_row(row: tuple[Cell, ...]) -> str:
        figures = "".join(map(html_cell, row[1:]))
        return f'<tr><th scope="row">{escape(row[0].text)}</th>{figures}</tr>\n'

    # A heading may take two lines, but not between a number and its unit.
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
    """As .md, .csv and .tex, each whole or not at all."""
    for suffix, write in ((".md", to_markdown), (".csv", to_csv), (".tex", to_latex)):
        with replacing(folder / f"{table.name}{suffix}") as temporary:
            temporary.write_text(write(table), encoding="utf-8")


def html_text(text: str) -> str:
    """Plain text for a page, with what stands in backticks as code.

    >>> html_text("`a < b` & c")
    '<code>a &lt; b</code> &amp; c'
    """
    return with_code(text, escape, lambda code: f"<code>{escape(code)}</code>")


def with_code(text: str, plain: Callable[[str], str], code: Callable[[str], str]) -> str:
    """Text whose words in backticks are written otherwise than the rest."""
    parts = re.split(r"`([^`]+)`", text)
    return "".join(code(part) if place % 2 else plain(part) for place, part in enumerate(parts))


def _groups(table: Table) -> Iterator[tuple[tuple[Cell, ...], ...]]:
    for start, end in pairwise((0, *table.groups, len(table.rows))):
        if start < end:
            yield table.rows[start:end]


def _markdown(text: str) -> str:
    # Inside a word an underscore means itself, and lastfm_head stays readable.
    return re.sub(r"[\\|*<`\[]|\b_|_\b", r"\\\g<0>", text)


_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        **{one: rf"\{one}" for one in "&%$#_{}"},
        # At the start of a row these would belong to the line break before it.
        **{one: f"{{{one}}}" for one in "[*"},
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
    # Two hyphens would become one dash, and an option could not be copied from the page.
    return "-{}-".join(part.translate(_LATEX) for part in text.split("--"))
