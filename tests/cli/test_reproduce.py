"""`tclgraph reproduce` on a tiny log, as a real command."""

import csv
import json
import os
from pathlib import Path

import pytest

from tclgraph.events.log_spec import LogSpec
from tclgraph.events.synthetic import SyntheticConfig, synthesize
from tclgraph.events.writers import write_file
from tclgraph.studies.study import OpenLog
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


def test_all_topics_of_the_paper_and_noise(cli: Cli, log: Path, tmp_path: Path) -> None:
    words = ["--data", "tiny.csv", "--seeds", "1", "--out", ".", "--json"]
    code, out, err = cli("reproduce", "all", "noise", *words)
    assert code == 0, err
    summary = json.loads(out)
    assert summary["failed"] == {}
    assert summary["missing"] == []
    names = {Path(table).stem for table in summary["tables"]}
    assert names == {
        "datasets",
        "claims-tiny",
        "overall-tiny",
        "overall-tiny-cost",
        "overall-tiny-pairs",
        "overall-tiny-quarters",
        "overall-tiny-MRR-compared",
        "overall-tiny-MR-compared",
        "overall-tiny-repeats",
        "ablation-tcl-tiny",
        "ablation-ranker-tiny",
        "depth-tiny",
        "heads-tiny",
        "noise-tiny",
        "noise-tiny-robustness",
    }
    for name in names:
        for suffix in (".md", ".csv", ".tex"):
            assert (tmp_path / "tables" / f"{name}{suffix}").stat().st_size
    figures = (
        "depth-tiny",
        "heads-tiny",
        "overall-tiny-curves",
        "noise-tiny-valid",
        "noise-tiny-test",
    )
    for figure in figures:
        for suffix in (".png", ".svg"):
            assert (tmp_path / "figures" / f"{figure}{suffix}").stat().st_size
    models = [row["model"] for row in rows(tmp_path / "tables" / "overall-tiny.csv")]
    assert models[-4:] == ["tcl", "ranker", "gain of tcl", "gain of ranker"]
    assert {"popularity", "graphsage", "tdig-mpnn"} <= set(models)
    ablated = rows(tmp_path / "tables" / "ablation-tcl-tiny.csv")
    assert [row["variant"] for row in ablated][-1] == "full"
    assert all(row["MR"] not in ("", "–") for row in ablated)
    noisy = rows(tmp_path / "tables" / "noise-tiny.csv")
    assert len(noisy) == 12
    assert all(row["MR"] not in ("", "–") for row in noisy)
    compared = rows(tmp_path / "tables" / "noise-tiny-robustness.csv")
    assert {row["holds on test"] for row in compared} <= {"yes", "no", "unclear"}
    outcomes = [json.loads(path.read_text()) for path in (tmp_path / "jobs").rglob("*.json")]
    noise = sorted(outcome["noise"] for outcome in outcomes if "noise" in outcome)
    assert noise == [0.05] * 3 + [0.1] * 3 + [0.2] * 3
    page = (tmp_path / "report.html").read_text()
    for text in ("Overall comparison on tiny", "Ablation of the ranker on", "threads per job"):
        assert text in page
    if not WITHOUT:
        with a_browser() as browser, opened(browser, tmp_path / "report.html") as shown:
            check_report(shown, tmp_path)

    # Other topics find the finished jobs: nothing is computed again.
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "jobs").rglob("*.json")}
    for topics in (["datasets", "overall"], ["ablation"], ["noise"], ["depth", "heads"]):
        code, _, err = cli("reproduce", *topics, *words)
        assert code == 0, err
    page = (tmp_path / "report.html").read_text()
    assert "TCL by depth of the sub-graphs on tiny" in page
    assert "TCL by number of heads on tiny" in page
    assert "Overall comparison" not in page
    after = {path: path.stat().st_mtime_ns for path in (tmp_path / "jobs").rglob("*.json")}
    assert after == before


def test_parts_of_the_ranker_are_ranked_on_validation(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "tiny.csv"
    config = SyntheticConfig(events=240, sources=12, targets=12, kind="one-mode")
    write_file(synthesize(config), path)
    words = ["--data", "tiny.csv", "--kind", "one-mode", "--seeds", "1", "--out", "."]
    code, out, err = cli("reproduce", "parts", *words)
    assert code == 0, err
    assert "The ranker without each of its parts on tiny" in out
    variants = rows(tmp_path / "tables" / "parts-tiny.csv")
    assert [row["variant"] for row in variants][:2] == ["complete", "without encoder"]
    assert [row["variant"] for row in variants][-1] == "without one identity"
    assert all(row["MR"] not in ("", "–") for row in variants)
    ahead = rows(tmp_path / "tables" / "parts-ahead-tiny.csv")
    assert len(ahead) == 5
    outcomes = [json.loads(path.read_text()) for path in (tmp_path / "jobs").rglob("*.json")]
    assert len(outcomes) == 13 + 5
    # Without `ahead` the jobs rank the validation part; with it the log has no test events.
    parts = {
        ("test left out" in outcome["split"], outcome["report"]["part"]) for outcome in outcomes
    }
    assert parts == {(False, "valid"), (True, "test")}


def test_data_sets_of_the_paper_with_and_without_its_filter(cli: Cli, tmp_path: Path) -> None:
    code, _, err = cli("reproduce", "datasets", "--data", "collegemsg", TCLGRAPH_DATA="")
    assert code == 0, err
    used, unfiltered = rows(tmp_path / "runs" / "reproduce" / "tables" / "datasets.csv")
    assert used["interactions"] == "48,771 (48,771)"
    assert unfiltered["interactions"] == "59,835 (48,771)"
    splits = (used["split"], unfiltered["split"])
    assert splits == ("60/20/20 of rows, seen only", "60/20/20 of rows")


@pytest.mark.usefixtures("log")
def test_a_budget_leaves_jobs_that_are_listed_as_missing(cli: Cli) -> None:
    words = ["--data", "tiny.csv", "--models", "heuristics,tgn", "--seeds", "1"]
    code, out, err = cli("reproduce", "overall", *words, "--budget", "0")
    assert code == 0, err
    assert "not done yet (7)" in err
    assert "tiny/tgn-0-" in err
    assert "Nothing has been computed yet." in out


EXTERNAL_MODELS = """
import numpy as np
from tclgraph.models.interface import Model
from tclgraph.models.ranker.model import Ranker

class ById(Model):
    name = "by-id"

    def fit(self, split):
        self.measured = {}
        self.start_state(split.events)
        self.observe(split.train)
        return self

    def score(self, source, time):
        num_targets = self.state.graph.space.num_targets
        return np.tile(-np.arange(num_targets, dtype=float), (len(source), 1))

    def reset_state(self):
        pass

    def update_state(self, events):
        pass

class Small(Ranker):
    name = "small"

    def __init__(self, **settings):
        super().__init__(**{"epochs": 1, "encoder": None, **settings})
"""


@pytest.mark.usefixtures("log")
def test_models_of_another_package_are_compared(cli: Cli, tmp_path: Path) -> None:
    package = tmp_path / "installed"
    metadata = package / "othermodels-1.0.dist-info"
    metadata.mkdir(parents=True)
    (package / "othermodels.py").write_text(EXTERNAL_MODELS)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: othermodels\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[tclgraph.models]\nby-id = othermodels:ById\nsmall = othermodels:Small\n"
    )
    search_path = os.pathsep.join(filter(None, [str(package), os.environ.get("PYTHONPATH")]))
    words = ["--data", "tiny.csv", "--models", "small,by-id,popularity", "--seeds", "2"]
    code, _, err = cli("reproduce", "overall", *words, "--out", ".", PYTHONPATH=search_path)
    assert code == 0, err
    table = rows(tmp_path / "tables" / "overall-tiny.csv")
    assert [(row["model"], row["seeds"]) for row in table] == [
        ("popularity", "–"),
        ("small", "2"),
        ("by-id", "–"),
    ]
    assert all(row["MR"] not in ("", "–") for row in table)


def test_a_foreign_file_among_the_jobs_is_refused(cli: Cli, log: Path, tmp_path: Path) -> None:
    job = OpenLog.open(LogSpec(log=str(log))).job("popularity")
    path = job.outcome_path(tmp_path / "out")
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    words = ["--data", "tiny.csv", "--models", "popularity", "--out", "out"]
    code, _, err = cli("reproduce", "overall", *words)
    assert code == 2
    message = err.splitlines()[-1]
    assert message.startswith(f"error: {path.relative_to(tmp_path)} is not a readable job file")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["overall", "everything"], "cannot reproduce 'everything'"),
        (["overall", "--models", "tgnn"], "unknown model 'tgnn'; did you mean"),
        (["overall", "--models", "tcl:heads"], "cannot read the setting 'heads'"),
        (["overall", "--data", "nowhere.csv"], "cannot find 'nowhere.csv': it is neither a file"),
        (["overall", "--data", "a/x.csv", "--data", "x.csv"], "2 logs are called 'x'"),
    ],
)
def test_bad_input_is_refused_with_one_sentence(
    cli: Cli, words: list[str], message: str, tmp_path: Path
) -> None:
    code, _, err = cli("reproduce", *words, "--out", "out")
    assert code == 2
    assert err.startswith("error: ")
    assert message in err
    assert err.count("\n") == 1
    assert not (tmp_path / "out").exists()
