"""The figures that the README shows are the ones that results/ holds."""

import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent


def figures(name: str) -> dict[str, list[str]]:
    found = json.loads((ROOT / "results" / "floors" / f"{name}.json").read_text())
    return {
        floor["model"]: [
            f"{floor['metrics']['MR']:.2f}",
            f"{floor['metrics']['MRR']:.4f}",
            f"{floor['metrics']['Hit@10']:.2f}",
        ]
        for floor in found["floors"]
    }


def test_the_table_of_floors() -> None:
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in (ROOT / "README.md").read_text().splitlines()
        if line.startswith("| ") and not line.startswith(("| floor", "| model", "| **"))
    ]
    collegemsg, wikipedia = figures("collegemsg"), figures("wikipedia")
    assert [row[0] for row in rows] == list(collegemsg)
    for name, *cells in rows:
        assert cells == collegemsg[name] + wikipedia.get(name, ["–"] * 3)


TCL_DIGITS = {"MR": 2, "MRR": 4, "Hit@10": 2}


def result(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "results" / "tcl" / f"{name}.json").read_text())
    return found


def tcl_row(title: str, name: str) -> str:
    summary, num_seeds = result(name)["summary"], len(result(name)["seeds"])
    cells = [
        f"{summary[metric]['mean']:.{digits}f} ± {summary[metric]['deviation']:.{digits}f}"
        for metric, digits in TCL_DIGITS.items()
    ]
    return f"| **{title}**, {num_seeds} seeds | " + " | ".join(cells) + " |"


def paper_row(name: str) -> str:
    paper = result(name)["paper"]
    cells = (" ± ".join(map(str, paper[one])) if one in paper else "–" for one in TCL_DIGITS)
    return "| **as published** | " + " | ".join(cells) + " |"


def floor_row(name: str) -> str:
    floors = result(name)["floors"]["test"]
    cells = [
        f"{(min if metric == 'MR' else max)(one['metrics'][metric] for one in floors):.{digits}f}"
        for metric, digits in TCL_DIGITS.items()
    ]
    return "| **the best floor** | " + " | ".join(cells) + " |"


def tcl_rows() -> list[str]:
    """TCL beside its paper and the best floor of each metric."""
    return [
        tcl_row("CollegeMsg, preset paper", "collegemsg"),
        tcl_row("CollegeMsg, preset fast", "collegemsg-fast"),
        paper_row("collegemsg"),
        floor_row("collegemsg"),
        tcl_row("Wikipedia, preset paper", "wikipedia"),
        paper_row("wikipedia"),
        floor_row("wikipedia"),
    ]


def test_the_table_of_tcl() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    assert [line for line in lines if line.startswith("| **")] == tcl_rows()


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


@pytest.mark.parametrize("path", sorted((ROOT / "results").rglob("*.json")), ids=lambda p: p.stem)
def test_every_result_says_where_it_comes_from(path: Path) -> None:
    found = json.loads(path.read_text())
    assert found["machine"]["cores"] >= 1
    assert found["version"]
    if path.parent.name == "tcl":
        assert {"split", "graph", "update", "seeds", "file", "config"} <= found.keys()
    if path.parent.name == "floors":
        assert found["file"]
        for one in found.get("floors", [found]):
            assert {"split", "graph"} <= one.keys()
            assert "interactions" in one or {"update", "seed"} <= one.keys()
