"""The figures that the README shows are the ones that results/ holds."""

import json
import statistics
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from tclgraph.studies.published import published

ROOT = Path(__file__).parent.parent


def figures(name: str) -> dict[str, list[str]]:
    found = json.loads((ROOT / "results" / "heuristics" / f"{name}.json").read_text())
    return {
        heuristic["model"]: [
            f"{heuristic['metrics']['MR']:.2f}",
            f"{heuristic['metrics']['MRR']:.4f}",
            f"{heuristic['metrics']['Hit@10']:.2f}",
        ]
        for heuristic in found["heuristics"]
    }


def test_the_table_of_floors() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("| heuristic")) + 2
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in takewhile(lambda line: line.startswith("| "), lines[first:])
    ]
    collegemsg, wikipedia = figures("collegemsg"), figures("wikipedia")
    assert [row[0] for row in rows] == list(collegemsg)
    for name, *cells in rows:
        assert cells == collegemsg[name] + wikipedia.get(name, ["–"] * 3)


TCL_DIGITS = {"MR": 2, "MRR": 4, "Hit@10": 2}


def outcomes(log: str, kind: str, **settings: str) -> list[dict[str, Any]]:
    """Of every seed of TCL with these settings, or of every heuristic."""
    folder = ROOT / "results" / "reproduce" / log / "jobs" / log
    found = [json.loads(path.read_text()) for path in folder.glob("*.json")]
    if settings:
        wanted = [one for one in found if one["settings"] == settings and one["model"] == "tcl"]
    else:
        wanted = [one for one in found if "curve" not in one]
    return [one["test"] for one in wanted if one["kind"] == kind]


def seeds_of(reports: list[dict[str, Any]], group: str = "metrics") -> list[str]:
    """Mean and deviation of each metric."""
    cells = []
    for metric, digits in TCL_DIGITS.items():
        values = [one[group][metric] for one in reports]
        mean, deviation = statistics.fmean(values), statistics.stdev(values)
        cells.append(f"{mean:.{digits}f} ± {deviation:.{digits}f}")
    return cells


def tcl_row(title: str, log: str, preset: str, kind: str = "bipartite") -> str:
    reports = outcomes(log, kind, preset=preset)
    return f"| **{title}**, {len(reports)} seeds | " + " | ".join(seeds_of(reports)) + " |"


def paper_row(log: str) -> str:
    paper = published("tcl", log) or {}
    cells = (" ± ".join(map(str, paper[one])) if one in paper else "–" for one in TCL_DIGITS)
    return "| **as published** | " + " | ".join(cells) + " |"


def best_heuristics(log: str, kind: str, group: str = "metrics") -> list[str]:
    """Of each metric, whichever heuristic that is."""
    cells = []
    for metric, digits in TCL_DIGITS.items():
        pick = min if metric == "MR" else max
        best = pick(one[group][metric] for one in outcomes(log, kind))
        cells.append(f"{best:.{digits}f}")
    return cells


def floor_row(log: str, kind: str = "bipartite") -> str:
    return "| **the best heuristic** | " + " | ".join(best_heuristics(log, kind)) + " |"


def tcl_rows() -> list[str]:
    """TCL beside its paper and the best heuristic of each metric."""
    return [
        tcl_row("CollegeMsg, preset default", "collegemsg", "default", "one-mode"),
        floor_row("collegemsg", "one-mode"),
        tcl_row("CollegeMsg, preset paper", "collegemsg", "paper"),
        tcl_row("CollegeMsg, preset fast", "collegemsg", "fast"),
        paper_row("collegemsg"),
        tcl_row("Wikipedia, preset default", "wikipedia", "default"),
        floor_row("wikipedia"),
        tcl_row("Wikipedia, preset paper", "wikipedia", "paper"),
        paper_row("wikipedia"),
        tcl_row("lastfm_head, preset default", "lastfm_head", "default"),
        floor_row("lastfm_head"),
        tcl_row("lastfm_head, preset paper", "lastfm_head", "paper"),
    ]


def test_the_table_of_tcl() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    assert [line for line in lines if line.startswith("| **")] == tcl_rows()


def group_rows() -> list[str]:
    """The default preset and the best heuristic of each metric, for repeats and for first meetings."""
    rows = []
    graphs = {"collegemsg": "one-mode", "wikipedia": "bipartite", "lastfm_head": "bipartite"}
    for log, graph in graphs.items():
        for group in ("repeat", "new"):
            ours = seeds_of(outcomes(log, graph, preset="default"), group)
            heuristics = best_heuristics(log, graph, group)
            cells = [f"{one} ({other})" for one, other in zip(ours, heuristics, strict=True)]
            rows.append(f"| {log}, {group} | " + " | ".join(cells) + " |")
    return rows


def ingredient_rows() -> list[str]:
    """What the default preset loses on validation without each of its parts."""
    found = json.loads((ROOT / "results" / "ingredients" / "collegemsg.json").read_text())
    whole = found["whole"]
    cells = [
        f"{one['mean']:.{digits}f} ± {one['deviation']:.{digits}f}"
        for one, digits in ((whole["all"][name], digits) for name, digits in TCL_DIGITS.items())
    ]
    rows = ["| the whole | " + " | ".join([*cells, f"{whole['new']['MR']['mean']:.1f}"]) + " |"]
    for name, one in found["without"].items():
        cells = [f"{one['all'][metric]:.{digits}f}" for metric, digits in TCL_DIGITS.items()]
        rows.append(f"| without {name} | " + " | ".join([*cells, f"{one['new']['MR']:.1f}"]) + " |")
    return rows


@pytest.mark.parametrize("rows", [group_rows, ingredient_rows])
def test_the_tables_of_the_default_preset(rows: Callable[[], list[str]]) -> None:
    text = (ROOT / "docs" / "default.md").read_text()
    assert "\n".join(rows()) in text


REPRODUCED = {
    "README.md": ["collegemsg/tables/overall-collegemsg"],
    "docs/baselines.md": [
        "collegemsg/tables/overall-collegemsg",
        "collegemsg/tables/overall-collegemsg-cost",
        "collegemsg/tables/overall-collegemsg-meetings",
        "collegemsg/tables/overall-collegemsg-quarters",
        "wikipedia/tables/overall-wikipedia",
        "wikipedia/tables/overall-wikipedia-cost",
    ],
    "docs/reproduce.md": [
        "collegemsg/tables/claims-collegemsg",
        "wikipedia/tables/claims-wikipedia",
        "collegemsg/tables/ablation-paper-collegemsg",
        "collegemsg/tables/ablation-default-collegemsg",
        "collegemsg/tables/depth-collegemsg",
        "collegemsg/tables/heads-collegemsg",
        "wikipedia/tables/ablation-paper-wikipedia",
        "wikipedia/tables/ablation-default-wikipedia",
    ],
}
"""Pages, and the tables of results/reproduce that they show."""


@pytest.mark.parametrize("page", REPRODUCED)
def test_tables_that_were_reproduced(page: str) -> None:
    text = (ROOT / page).read_text()
    for name in REPRODUCED[page]:
        found = (ROOT / "results" / "reproduce" / f"{name}.md").read_text()
        rows = [line for line in found.splitlines() if line.startswith("|")]
        assert "\n".join(rows) in text, name


def test_the_speed_of_tcl() -> None:
    found = json.loads((ROOT / "results" / "benchmarks" / "training.json").read_text())
    text = " ".join((ROOT / "README.md").read_text().split())
    paper, fast, ranking = found["paper"], found["fast"], found["ranking"]
    for claim in (
        f"training handles {paper['events_per_second']:,} events per second",
        f"({fast['events_per_second']:,} with preset fast)",
        f"{int(found['times_faster_than_dense']['paper'])} times what a padded dense",
        f"in {paper['peak_megabytes']} MB",
        f"the {ranking['test_events']:,} test events are encoded and ranked in",
        f"ranked in {ranking['seconds']:.2f} s",
    ):
        assert claim in text
    default = json.loads((ROOT / "results" / "benchmarks" / "default.json").read_text())
    rates = [default[what]["default"]["events_per_second"] for what in ("training", "ranking")]
    assert f"trains on {rates[0]:,} events and ranks {rates[1]:,} per second" in text


@pytest.mark.parametrize("path", sorted((ROOT / "results").rglob("*.json")), ids=lambda p: p.stem)
def test_every_result_says_where_it_comes_from(path: Path) -> None:
    found = json.loads(path.read_text())
    assert found["machine"]["cores"] >= 1
    assert found["version"]
    if path.parent.parent.name == "jobs":
        assert {"split", "kind", "update", "seed", "settings", "file"} <= found.keys()
    if path.parent.name == "heuristics":
        assert found["file"]
        for one in found.get("heuristics", [found]):
            assert {"split", "kind"} <= one.keys()
            assert "interactions" in one or {"update", "seed"} <= one.keys()
