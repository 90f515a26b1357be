"""The figures that the README shows are the ones that results/ holds."""

import json
from pathlib import Path

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


def tcl_rows() -> list[str]:
    """The table of TCL beside its paper and the best floor."""
    rows = []
    for name, label in (("collegemsg", "CollegeMsg"), ("wikipedia", "Wikipedia")):
        found = json.loads((ROOT / "results" / "tcl" / f"{name}.json").read_text())
        cells = {"paper": [], "tcl": [], "floor": []}  # type: ignore[var-annotated]
        for metric, digits in (("MR", 2), ("MRR", 4), ("Hit@10", 2)):
            ours, paper = found["summary"][metric], found["paper"].get(metric)
            cells["tcl"].append(f"{ours['mean']:.{digits}f} ± {ours['deviation']:.{digits}f}")
            cells["paper"].append(f"{paper[0]} ± {paper[1]}" if paper else "–")
            pick = min if metric == "MR" else max
            best = pick(floor["metrics"][metric] for floor in found["floors"]["test"])
            cells["floor"].append(f"{best:.{digits}f}")
        for model, title in (
            ("tcl", "TCL, here"),
            ("paper", "TCL, as published"),
            ("floor", "the best floor"),
        ):
            rows.append(f"| **{label}** {title} | " + " | ".join(cells[model]) + " |")
    return rows


def test_the_table_of_tcl() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    assert [line for line in lines if line.startswith("| **")] == tcl_rows()


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
