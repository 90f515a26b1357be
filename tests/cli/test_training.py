"""From a log to a trained model and its answers, through the real command."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
import torch
from safetensors.torch import load_file

from tclgraph.events.synthetic import SyntheticConfig, synthesize
from tclgraph.events.writers import write_file
from tests.streams import Cli

SMALL = tuple(
    word
    for setting in (
        "epochs=2",
        "batch_size=64",
        "threads=1",
        "encoder.width=8",
        "encoder.heads=2",
        "encoder.levels=3",
    )
    for word in ("--set", setting)
)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.csv"
    write_file(synthesize(SyntheticConfig(events=400, sources=20, targets=15)), path)
    return path


@pytest.fixture
def run(cli: Cli, log: Path, tmp_path: Path) -> Path:
    code, out, err = cli("train", "log.csv", *SMALL, "--run", "run")
    assert code == 0, err
    assert "run: best after epoch" in out
    return tmp_path / "run"


def test_training_tells_how_it_goes_and_leaves_a_run(cli: Cli, log: Path, tmp_path: Path) -> None:
    code, out, err = cli("train", "log.csv", *SMALL, "--json")
    assert code == 0
    result = json.loads(out)
    assert result["run"] == "runs/ranker-log"
    assert result["epoch"] in (1, 2)
    assert "epoch 2/2" in err
    assert "events/s" in err
    assert "(best heuristic: " in err
    folder = tmp_path / "runs/ranker-log"
    assert {path.name for path in folder.iterdir()} == {
        "config.json",
        "environment.json",
        "last.safetensors",
        "log.json",
        "metrics.jsonl",
        "model.safetensors",
    }
    assert json.loads((folder / "config.json").read_text())["settings"]["encoder"]["width"] == 8
    assert json.loads((folder / "environment.json").read_text())["torch"]


def test_evaluating_a_run_shows_the_heuristics_too(cli: Cli, run: Path, tmp_path: Path) -> None:
    code, out, _ = cli("evaluate", "run")
    assert code == 0
    assert "ranker on test: 60 events" in out
    for name in ("popularity", "own-recency", "edgebank-window"):
        assert f"\n{name}" in out
    code, out, _ = cli("evaluate", "run", "--update", "every=7", "--json")
    result = json.loads(out)
    assert (result["model"], result["update"], result["data"]) == ("ranker", "every=7", "log.csv")
    assert len(result["heuristics"]) == 6
    assert {heuristic["update"] for heuristic in result["heuristics"]} == {"every=7"}
    # The log is found from anywhere.
    elsewhere = subprocess.run(
        [sys.executable, "-m", "tclgraph.cli.main", "evaluate", run, "--json"],
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(elsewhere.stdout)["events"] == 60


def test_recommending(cli: Cli, run: Path) -> None:
    code, out, _ = cli("recommend", "run", "--source", "3", "--top", "4", "--json")
    assert code == 0
    (entry,) = json.loads(out)["sources"]
    ranking = entry["recommendations"]
    assert (entry["source"], len(ranking)) == ("3", 4)
    scores = [recommendation["score"] for recommendation in ranking]
    assert scores == sorted(scores, reverse=True)
    code, out, _ = cli("recommend", "run", "--source", "3", "--top", "4")
    assert "3, after the complete log:" in out
    assert str(ranking[0]["target"]) in out
    code, early, _ = cli("recommend", "run", "--source", "3", "--at", "1970-01-02", "--json")
    assert code == 0
    assert json.loads(early)["sources"][0]["recommendations"][:4] != ranking


def test_recommending_to_many_sources_among_candidates(cli: Cli, run: Path) -> None:
    words = ("--source", "3", "--source", "5", "--candidate", "1", "--candidate", "2", "--json")
    code, out, err = cli("recommend", "run", *words)
    assert code == 0, err
    entries = json.loads(out)["sources"]
    assert [entry["source"] for entry in entries] == ["3", "5"]
    for entry in entries:
        assert {item["target"] for item in entry["recommendations"]} == {1, 2}
    code, out, _ = cli(
        "recommend", "run", "--source", "3", "--exclude-seen", "--top", "99", "--json"
    )
    new = json.loads(out)["sources"][0]["recommendations"]
    assert code == 0
    assert 0 < len(new) < 15


def test_similar_nodes(cli: Cli, run: Path) -> None:
    code, out, err = cli("similar", "run", "--key", "3", "--top", "4", "--json")
    assert code == 0, err
    neighbors = json.loads(out)["nodes"]
    assert len(neighbors) == 4
    assert "3" not in {str(neighbor["key"]) for neighbor in neighbors}
    code, out, _ = cli("similar", "run", "--key", "3", "--side", "target", "--top", "4")
    assert code == 0
    assert "most similar to 3:" in out


def test_a_heuristic_is_fitted_saved_and_asked(cli: Cli, log: Path) -> None:
    code, out, err = cli("train", "log.csv", "--model", "own-recency", "--json")
    assert code == 0, err
    result = json.loads(out)
    assert result["run"] == "runs/own-recency-log"
    assert result["valid"]["MRR"] > 0
    code, out, err = cli("recommend", result["run"], "--source", "3", "--json")
    assert code == 0, err
    assert len(json.loads(out)["sources"][0]["recommendations"]) == 10
    code, _, err = cli("similar", result["run"], "--key", "3")
    assert code == 2
    assert "own-recency has no vectors" in err


def test_embedding(cli: Cli, run: Path, tmp_path: Path) -> None:
    code, out, _ = cli("embed", "run", "--out", "vectors.parquet")
    assert code == 0
    assert "vectors of width 8" in out
    frame = pl.read_parquet(tmp_path / "vectors.parquet")
    assert frame.columns == ["side", "key", "vector"]
    assert frame["vector"].dtype == pl.Array(pl.Float32, 8)
    assert set(frame["side"]) == {"source", "target"}


def test_ctrl_c_leaves_a_run_that_resumes_to_the_same_weights(
    cli: Cli, log: Path, tmp_path: Path
) -> None:
    longer = (*SMALL, "--set", "epochs=30")
    command = [sys.executable, "-m", "tclgraph.cli.main", "train", "log.csv", *longer]
    assert cli("train", "log.csv", *longer, "--run", "whole")[0] == 0
    with subprocess.Popen(
        [*command, "--run", "broken"], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("epoch 3/"):
                break
        process.send_signal(signal.SIGINT)
        time.sleep(0)
        err = process.stderr.read()
        assert process.wait(timeout=60) == 130
    assert "stopped; continue with: tclgraph train --run broken --resume" in err
    assert "Traceback" not in err
    code, _, err = cli("train", "--run", "broken", "--resume")
    assert code == 0, err
    ours, theirs = (
        load_file(tmp_path / name / "model.safetensors") for name in ("broken", "whole")
    )
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[key], theirs[key]) for key in ours)


@pytest.mark.parametrize("name", ["graphsage", "jodie"])
def test_every_model_is_trained_and_asked_alike(
    cli: Cli, log: Path, tmp_path: Path, name: str
) -> None:
    small = ("--set", "epochs=1", "--set", "width=8", "--set", "threads=1")
    code, out, err = cli("train", "log.csv", "--model", name, *small, "--json")
    assert code == 0, err
    run = json.loads(out)["run"]
    assert run == f"runs/{name}-log"
    code, out, err = cli("evaluate", run, "--json")
    assert code == 0, err
    assert json.loads(out)["model"] == name
    code, out, err = cli("recommend", run, "--source", "3", "--at", "2020-01-01", "--json")
    assert code == 0, err
    assert len(json.loads(out)["sources"][0]["recommendations"]) == 10
    code, out, err = cli("embed", run, "--out", "vectors.parquet")
    assert code == 0, err
    assert pl.read_parquet(tmp_path / "vectors.parquet")["side"].n_unique() == 2


BAD_INPUT: list[tuple[tuple[str, ...], str]] = [
    (("train",), "give a log to train on"),
    (("train", "log.csv", "--set", "epochs"), "cannot read the setting 'epochs'"),
    (
        ("train", "log.csv", "--set", "epoch=8"),
        "unknown setting 'epoch'; did you mean \"epochs\"",
    ),
    (("train", "log.csv", "--set", "encoder.heads=7"), "7 heads cannot split a width of 64"),
    (("train", "log.csv", "--set", "negatives=50"), "unknown setting 'negatives'"),
    (
        ("train", "log.csv", "--set", "encoder=none", "--set", "encoder.levels=3"),
        "encoder.levels has no effect with encoder=none",
    ),
    (
        ("train", "log.csv", "--model", "tcl", "--set", "rank_by=density"),
        "rank_by has no effect with objective=contrastive",
    ),
    (("train", "log.csv", "--set", "device=cuda:9"), "the device 'cuda:9' is not available"),
    (("train", "log.csv", "--model", "jodi"), "unknown model 'jodi'; did you mean \"jodie\""),
    (
        ("train", "log.csv", "--model", "popularity", "--set", "epochs=1"),
        "'popularity' does not take these settings",
    ),
    (("train", "--run", "run", "--resume", "--model", "jodie"), "with the model ranker, not jodie"),
    (("train", "--run", "run", "--resume", "--seen-only"), "run already says how its log is read"),
    (("train", "log.csv", "--run", "run"), "run holds a run already"),
    (
        ("train", "--run", "run", "--resume", "--set", "encoder.width=16"),
        "run was started with other settings (encoder: width: then 8, now 16)",
    ),
    (("train", "--run", "nowhere", "--resume"), "nowhere holds no run to resume"),
    (
        ("train", "other.csv", "--run", "run", "--resume"),
        "log.csv, not other.csv; leave out the log",
    ),
    (("evaluate",), "give the folder of a run, or --model and --data"),
    (("evaluate", "run", "--model", "tcl"), "the run folder names its model"),
    (("evaluate", "run", "--split", "60/20/20"), "run already says how its log is read"),
    (("evaluate", "nowhere"), "no saved model in nowhere"),
    (("recommend", "nowhere", "--source", "1"), "no saved model in nowhere"),
    (("recommend", "run", "--source", "nobody"), "the key 'nobody' is text, but those of the log"),
    (("recommend", "run", "--source", "3", "--candidate", "x"), "the key 'x' is text"),
    (("recommend", "run", "--source", "3", "--at", "noon"), "time 'noon'"),
    (("similar", "run", "--key", "nobody"), "the key 'nobody' is text"),
    (("similar", "run", "--key", "3", "--side", "left"), "unknown side 'left'"),
    (("embed", "run", "--out", "vectors.csv"), "the name must end in .parquet"),
]


def test_bad_input_is_one_sentence_and_exit_code_2(cli: Cli, run: Path, tmp_path: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    for words, message in BAD_INPUT:
        code, out, err = cli(*words)
        assert code == 2, words
        assert out == ""
        *notes, error = err.splitlines()  # notices about the log may come first
        assert error.startswith("error: ")
        assert message in error
        assert all(note.startswith("note: ") for note in notes)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
