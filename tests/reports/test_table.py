"""A small table, read back from each of its formats."""

import csv
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tclgraph.reports.table import (
    Cell,
    Emphasis,
    Table,
    emphasize,
    to_csv,
    to_html,
    to_latex,
    to_markdown,
    write_table,
)

NASTY = r"a|b_c & 5% \ <i> #1 {x} $ ~ ^ [y] *"
TABLE = Table(
    name="overall-toy",
    title="Test part of `lastfm_head`",
    columns=("model", "MR ↓", "Hit@10 %"),
    rows=(
        (Cell("popularity"), Cell("275.21"), Cell("–")),
        (Cell("tgn"), Cell("196.69 ± 4.36", "second"), Cell("36.07", "best")),
        (Cell(NASTY), Cell("137.57 ± 1.70", "best"), Cell("35.53", "second")),
    ),
    note="Made by `tclgraph reproduce --seeds 5`; 95 % & more.",
    groups=(1,),
)


@pytest.mark.parametrize(
    ("values", "lower_is_better", "expected"),
    [
        ([3.0, 1.0, 2.0], True, [None, "best", "second"]),
        ([3.0, 1.0, 2.0], False, ["best", None, "second"]),
        ([1.0, 1.0, 2.0, 3.0], True, ["best", "best", "second", None]),
        ([1.0, 2.0, 2.0, 3.0], True, ["best", "second", "second", None]),
        ([None, 0.0, None, -1.0], True, [None, "second", None, "best"]),
        ([None, 5.0], True, [None, "best"]),
        ([None, None], False, [None, None]),
        ([], False, []),
    ],
)
def test_the_best_and_the_second_best_are_emphasized(
    values: list[float | None], lower_is_better: bool, expected: list[Emphasis | None]
) -> None:
    assert emphasize(values, lower_is_better=lower_is_better) == expected


def test_csv_and_html_have_the_long_form_of_a_mark() -> None:
    cell = Cell("+", stands_for='1 "more"')
    table = Table(name="marks", title="Marks", columns=("a", "b"), rows=((Cell("x"), cell),))
    assert to_csv(table) == 'a,b\nx,"1 ""more"""\n'
    assert '<td title="1 &quot;more&quot;">+</td>' in to_html(table)
    assert "| x | + |" in to_markdown(table)


def test_a_row_without_a_cell_for_every_column_is_refused() -> None:
    with pytest.raises(ValueError, match="row 1 of table short has 1 cells, but there are 2"):
        Table(
            name="short", title="", columns=("a", "b"), rows=((Cell("1"), Cell("2")), (Cell("3"),))
        )


def test_markdown() -> None:
    assert to_markdown(TABLE).splitlines() == [
        "**Test part of `lastfm_head`**",
        "",
        "| model | MR ↓ | Hit@10 % |",
        "| :-- | --: | --: |",
        "| popularity | 275.21 | – |",
        "| tgn | <u>196.69 ± 4.36</u> | **36.07** |",
        r"| a\|b_c & 5% \\ \<i> #1 {x} $ ~ ^ \[y] \* | **137.57 ± 1.70** | <u>35.53</u> |",
        "",
        "Made by `tclgraph reproduce --seeds 5`; 95 % & more.",
    ]


def test_an_underscore_is_escaped_only_at_the_edge_of_a_word() -> None:
    row = (Cell("_all_ of lastfm_head"),)
    text = to_markdown(Table(name="toy", title="", columns=("name",), rows=(row,)))
    assert text.splitlines()[-1] == r"| \_all\_ of lastfm_head |"


def test_csv_reads_back() -> None:
    read = list(csv.reader(to_csv(TABLE).splitlines()))
    assert read == [list(TABLE.columns), *([cell.text for cell in row] for row in TABLE.rows)]


def test_csv_keeps_commas_and_quotes() -> None:
    row = (Cell('the "best", so far'), Cell("1,024"))
    text = to_csv(Table(name="toy", title="", columns=("a", "b"), rows=(row,)))
    assert list(csv.reader(text.splitlines()))[1] == ['the "best", so far', "1,024"]


def test_latex() -> None:
    assert to_latex(TABLE).splitlines() == [
        r"\begin{table}",
        r"\centering",
        r"\small",
        r"\caption{Test part of \texttt{lastfm\_head}}",
        r"\label{tab:overall-toy}",
        r"\begin{tabular}{lrr}",
        r"\toprule",
        r"model & MR $\downarrow$ & Hit@10 \% \\",
        r"\midrule",
        r"popularity & 275.21 & -- \\",
        r"\midrule",
        r"tgn & \underline{196.69 $\pm$ 4.36} & \textbf{36.07} \\",
        r"a\textbar{}b\_c \& 5\% \textbackslash{} \textless{}i\textgreater{} \#1 \{x\} \$ "
        r"\textasciitilde{} \textasciicircum{} {[}y] {*} & "
        r"\textbf{137.57 $\pm$ 1.70} & \underline{35.53} \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\par\smallskip",
        r"\parbox{0.95\linewidth}{\footnotesize Made by \texttt{tclgraph reproduce -{}-seeds 5}; "
        r"95 \% \& more.}",
        r"\end{table}",
    ]


def test_latex_is_balanced() -> None:
    # Without the escaped characters, brackets must be balanced and rows must have all cells.
    text = re.sub(
        r"\\[\\&%$#_{}]", lambda match: "\n" if match[0] == r"\\" else "", to_latex(TABLE)
    )
    depth = 0
    for character in text:
        depth += (character == "{") - (character == "}")
        assert depth >= 0
    assert depth == 0
    assert text.count("$") % 2 == 0
    begun, ended = (re.findall(rf"\\{word}{{(\w+)}}", text) for word in ("begin", "end"))
    assert begun == ended[::-1] == ["table", "tabular"]
    rows = [line for line in text.splitlines() if "&" in line]
    assert [row.count("&") for row in rows] == [len(TABLE.columns) - 1] * 4


class Cells(HTMLParser):
    """Collects the cells of every row, with the tag around their text."""

    def __init__(self) -> None:
        super().__init__()
        self.bodies: list[list[list[tuple[str, str]]]] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)
        if tag == "tbody":
            self.bodies.append([])
        elif tag == "tr" and "tbody" in self.tags:
            self.bodies[-1].append([])

    def handle_endtag(self, tag: str) -> None:
        assert self.tags.pop() == tag

    def handle_data(self, data: str) -> None:
        if "tbody" in self.tags and data.strip():
            self.bodies[-1][-1].append((self.tags[-1], data))


def test_html_has_a_body_for_every_group() -> None:
    reader = Cells()
    reader.feed(to_html(TABLE))
    assert reader.bodies == [
        [[("th", "popularity"), ("td", "275.21"), ("td", "–")]],
        [
            [("th", "tgn"), ("u", "196.69 ± 4.36"), ("strong", "36.07")],
            [("th", NASTY), ("strong", "137.57 ± 1.70"), ("u", "35.53")],
        ],
    ]
    assert reader.tags == []


def test_html_has_a_caption_and_a_note() -> None:
    html = to_html(TABLE)
    assert "<caption>Test part of <code>lastfm_head</code></caption>" in html
    assert '<th scope="col">Hit@10&nbsp;%</th>' in html
    assert html.endswith(
        '<p class="note">Made by <code>tclgraph reproduce --seeds 5</code>; 95 % &amp; more.</p>'
    )


def test_every_format_is_written_to_a_file(tmp_path: Path) -> None:
    write_table(TABLE, tmp_path / "tables")
    written = {path.name: path.read_text("utf-8") for path in (tmp_path / "tables").iterdir()}
    assert written == {
        "overall-toy.md": to_markdown(TABLE),
        "overall-toy.csv": to_csv(TABLE),
        "overall-toy.tex": to_latex(TABLE),
    }
