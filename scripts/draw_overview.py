"""Draw docs/figures/collegemsg.svg, the picture of README: Hit@10 of every model on CollegeMsg.

    .venv/bin/python scripts/draw_overview.py

The figures come from the table that `TABLE` names.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from tclgraph.heuristics.rules import heuristics_for

TABLE = Path("results/reproduce/collegemsg/tables/overall-two-id-spaces-collegemsg.md")
LOG = "CollegeMsg with two id spaces"
PICTURE = Path("docs/figures/collegemsg.svg")
COLORS = {"heuristic": "#8a8a8a", "baseline": "#9ec3e6", "TCL": "#e08e2b", "ranker": "#2f7d4f"}
# Space that a mark takes on the axis, in percent.
MARK_WIDTH = 1.2
PUBLISHED_MARK: dict[str, Any] = {
    "marker": "D",
    "color": "#b22222",
    "linestyle": "none",
    "markersize": 5,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One model of the table."""

    name: str
    group: str
    """Key of COLORS."""
    measured: float
    published: float | None
    """None: the paper has no such model."""


def read_rows(table: str) -> list[Row]:
    """Return the models of the Markdown table, best first."""
    lines = [line for line in table.splitlines() if line.startswith("| ")]
    header, *cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    measured, published = header.index("Hit@10"), header.index("paper: Hit@10")
    rows = [
        Row(
            name=row[0],
            group=group_of(row[0]),
            measured=number_of(row[measured]),
            # The paper's TCL is not the ranker, although a table may show its figures beside both.
            published=None
            if row[published] == "–" or group_of(row[0]) == "ranker"
            else number_of(row[published]),
        )
        for row in cells
        if not row[0].startswith(("gain", ":"))
    ]
    return sorted(rows, key=lambda row: row.measured, reverse=True)


def group_of(name: str) -> str:
    """Return the key of COLORS for a model's name."""
    if name in {heuristic.name for heuristic in heuristics_for("one-mode")}:
        return "heuristic"
    return {"tcl": "TCL", "ranker": "ranker"}.get(name.lower(), "baseline")


def number_of(cell: str) -> float:
    """Return the mean of a cell, which may be marked as best and have a deviation."""
    for mark in ("**", "<u>", "</u>"):
        cell = cell.replace(mark, "")
    return float(cell.split("±")[0])


def draw(rows: list[Row]) -> Figure:
    """Draw one bar per model and a mark at each published figure."""
    figure = Figure(figsize=(8, 5.2), layout="constrained")
    axes = figure.subplots()
    positions = range(len(rows))
    axes.barh(positions, [row.measured for row in rows], color=[COLORS[row.group] for row in rows])
    for position, row in zip(positions, rows, strict=True):
        label_start = row.measured + 0.6
        if row.published is not None:
            axes.plot(row.published, position, **PUBLISHED_MARK)
            if abs(row.published - label_start) < MARK_WIDTH:
                label_start = row.published + MARK_WIDTH
        axes.text(label_start, position, f"{row.measured:.2f}", va="center", fontsize=9)
    axes.set_yticks(positions, [row.name for row in rows])
    axes.invert_yaxis()
    # Room for the label of the longest bar, up to a multiple of ten.
    axes.set_xlim(0, 10 * math.ceil((max(row.measured for row in rows) + 8) / 10))
    axes.set_xlabel(f"Hit@10 in percent, {LOG}, 5,055 test events")
    axes.spines[["top", "right"]].set_visible(False)
    handles = [
        *(Patch(color=color, label=group) for group, color in COLORS.items()),
        Line2D([], [], label="as published", **PUBLISHED_MARK),
    ]
    axes.legend(handles=handles, loc="lower right", frameon=False)
    return figure


def main() -> None:
    """Read the table and write the picture."""
    rows = read_rows(TABLE.read_text())
    # The same bytes every time, and text that can be searched.
    mpl.rcParams.update({"svg.hashsalt": "tclgraph", "svg.fonttype": "none"})
    PICTURE.parent.mkdir(exist_ok=True)
    draw(rows).savefig(PICTURE, metadata={"Date": None})
    print(PICTURE)


if __name__ == "__main__":
    main()
