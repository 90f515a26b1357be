"""What `tclgraph evaluate` reports beyond accuracy, by segment, and among known targets."""

import json
from pathlib import Path

import pytest

from tests.streams import Cli, write


def row(n: int) -> str:
    """Return an event; sources have a plan, and every fourth event has a new target."""
    target = n // 4 if n % 4 == 0 else n * n % (1 + n // 4)
    return f"u{n % 7},t{target},{n},{'gold' if n % 7 < 2 else 'red'}"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write(
        tmp_path, "log.csv", "source,target,time,plan\n" + "\n".join(map(row, range(80))) + "\n"
    )


def test_metrics_are_reported_by_segment(cli: Cli, log: Path) -> None:
    arguments = ("evaluate", "--data", "log.csv", "--by", "plan", "--model")
    document = json.loads(cli(*arguments, "own-recency", "--json")[1])
    assert document["segmented_by"] == "plan"
    segments = document["segments"]
    assert list(segments) == ["red", "gold"]
    assert sum(segment["events"] for segment in segments.values()) == document["events"]
    mean = sum(segment["events"] * segment["metrics"]["MR"] for segment in segments.values())
    assert mean / document["events"] == pytest.approx(document["metrics"]["MR"])
    text = cli(*arguments, "own-recency")[1]
    assert "by plan:" in text
    assert f"\ngold {segments['gold']['events']:>21}" in text
    compared = cli(*arguments, "heuristics")[1]
    assert "MRR by plan" in compared
    assert f"{segments['gold']['metrics']['MRR']:.4f}" in compared
    every = json.loads(cli(*arguments, "heuristics", "--json")[1])["heuristics"]
    assert all(list(report["segments"]) == ["red", "gold"] for report in every)


def test_a_run_is_evaluated_by_segment(cli: Cli, log: Path) -> None:
    assert cli("train", "log.csv", "--model", "own-recency", "--run", "run")[0] == 0
    of_run = json.loads(cli("evaluate", "run", "--by", "plan", "--json")[1])
    fitted = ("evaluate", "--model", "own-recency", "--data", "log.csv", "--json")
    of_model = json.loads(cli(*fitted, "--by", "plan")[1])
    assert of_run["segments"] == of_model["segments"]
    assert "segments" not in json.loads(cli(*fitted)[1])


def test_known_candidates_count_first_occurrences(cli: Cli, log: Path) -> None:
    arguments = ("evaluate", "--data", "log.csv", "--candidates", "known", "--model")
    document = json.loads(cli(*arguments, "own-recency", "--json")[1])
    assert document["candidates"] == "known"
    assert document["first_occurrences"]["events"] > 0
    for model in ("own-recency", "heuristics"):
        text = cli(*arguments, model)[1]
        assert "each ranked among at most" in text
        assert "first occurrences: the true target of" in text


def test_coverage_novelty_and_unseen_nodes_are_reported(cli: Cli, log: Path) -> None:
    arguments = ("evaluate", "--data", "log.csv", "--model")
    document = json.loads(cli(*arguments, "popularity", "--json")[1])
    assert document["top"]["depth"] == 10
    assert 0 < document["top"]["coverage"] < 100
    assert document["top"]["novelty"] > 0
    assert document["unseen"]["MR"] > document["metrics"]["MR"]
    assert document["events_by_group"]["unseen"] > 0
    compared = cli(*arguments, "heuristics")[1]
    for column in ("coverage", "novelty", "MR unseen"):
        assert column in compared
