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
        if line.startswith("| ") and not line.startswith("| floor")
    ]
    collegemsg, wikipedia = figures("collegemsg"), figures("wikipedia")
    assert [row[0] for row in rows] == list(collegemsg)
    for name, *cells in rows:
        assert cells == collegemsg[name] + wikipedia.get(name, ["–"] * 3)


@pytest.mark.parametrize("path", sorted((ROOT / "results").rglob("*.json")), ids=lambda p: p.stem)
def test_every_result_says_where_it_comes_from(path: Path) -> None:
    found = json.loads(path.read_text())
    assert found["machine"]["cores"] >= 1
    assert found["version"]
    if path.parent.name == "floors":
        assert found["file"]
        for one in found.get("floors", [found]):
            assert {"split", "graph"} <= one.keys()
            assert "interactions" in one or {"update", "seed"} <= one.keys()
