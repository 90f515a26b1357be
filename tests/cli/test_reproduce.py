"""The whole evaluation section on a tiny log, by the real command."""

import csv
import json
from pathlib import Path

import pytest

from tclgraph.events.synthetic import SyntheticConfig, synthesize
from tclgraph.events.writers import write_file
from tests.pages import WITHOUT, a_browser, check_report, opened
from tests.streams import Cli


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.csv"
    write_file(synthesize(SyntheticConfig(events=240, sources=12, targets=10)), path)
    return path


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_everything_on_a_tiny_log(cli: Cli, log: Path, tmp_path: Path) -> None:
    words = ["--data", "tiny.csv", "--seeds", "1", "--out", ".", "--json"]
    code, out, err = cli("reproduce", "all", *words)
    assert code == 0, err
    found = json.loads(out)
    assert found["failed"] == {}
    assert found["missing"] == []
    names = {Path(table).stem for table in found["tables"]}
    assert names == {
        "datasets",
        "claims-tiny",
        "overall-tiny",
        "overall-tiny-cost",
        "overall-tiny-meetings",
        "overall-tiny-quarters",
        "overall-tiny-MRR-compared",
        "overall-tiny-MR-compared",
        "ablation-paper-tiny",
        "ablation-default-tiny",
        "depth-tiny",
        "heads-tiny",
    }
    for name in names:
        for suffix in (".md", ".csv", ".tex"):
            assert (tmp_path / "tables" / f"{name}{suffix}").stat().st_size
    for figure in ("depth-tiny", "heads-tiny", "overall-tiny-curves"):
        for suffix in (".png", ".svg"):
            assert (tmp_path / "figures" / f"{figure}{suffix}").stat().st_size
    models = [row["model"] for row in rows(tmp_path / "tables" / "overall-tiny.csv")]
    assert models[-2:] == ["gain of TCL, paper", "gain of TCL, default"]
    assert {"popularity", "graphsage", "tdig-mpnn", "TCL, paper", "TCL, default"} <= set(models)
    ablated = rows(tmp_path / "tables" / "ablation-paper-tiny.csv")
    assert [row["variant"] for row in ablated][-1] == "full"
    assert all(row["MR"] not in ("", "–") for row in ablated)
    page = (tmp_path / "report.html").read_text()
    for word in ("Overall comparison on tiny", "Ablation of preset default", "thread(s) a job"):
        assert word in page
    if not WITHOUT:
        with a_browser() as browser, opened(browser, tmp_path / "report.html") as shown:
            check_report(shown, tmp_path)

    # Sub-commands take what is there: nothing is computed again.
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "jobs").rglob("*.json")}
    for what in (["datasets", "overall"], ["ablation"], ["depth", "heads"]):
        code, _, err = cli("reproduce", *what, *words)
        assert code == 0, err
    page = (tmp_path / "report.html").read_text()
    assert "By depth of the sub-graphs on tiny" in page
    assert "By number of heads on tiny" in page
    assert "Overall comparison" not in page
    after = {path: path.stat().st_mtime_ns for path in (tmp_path / "jobs").rglob("*.json")}
    assert after == before


def test_data_sets_of_the_paper_with_and_without_its_filter(cli: Cli, tmp_path: Path) -> None:
    code, _, err = cli("reproduce", "datasets", "--data", "collegemsg", TCLGRAPH_DATA="")
    assert code == 0, err
    used, whole = rows(tmp_path / "runs" / "reproduce" / "tables" / "datasets.csv")
    assert used["interactions"] == "48,771 (48,771)"
    assert whole["interactions"] == "59,835 (48,771)"
    assert (used["split"], whole["split"]) == ("60/20/20 of rows, seen only", "60/20/20 of rows")


@pytest.mark.usefixtures("log")
def test_a_budget_says_what_is_missing(cli: Cli) -> None:
    words = ["--data", "tiny.csv", "--models", "heuristics,tgn", "--seeds", "1"]
    code, out, err = cli("reproduce", "overall", *words, "--budget", "0")
    assert code == 0, err
    assert "still to be done (7)" in err
    assert "tiny/tgn-0-" in err
    assert "Nothing has been computed yet." in out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["overall", "everything"], "cannot reproduce 'everything'"),
        (["overall", "--models", "tgnn"], "unknown model 'tgnn'; did you mean"),
        (["overall", "--data", "nowhere.csv"], "cannot find 'nowhere.csv'"),
        (["overall", *("--data", "a/x.csv", "--data", "x.csv")], "2 logs are called 'x'"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(
    cli: Cli, words: list[str], told: str, tmp_path: Path
) -> None:
    code, _, err = cli("reproduce", *words, "--out", "out")
    assert code == 2
    assert err.startswith("error: ")
    assert told in err
    assert err.count("\n") == 1
    assert not (tmp_path / "out").exists()
