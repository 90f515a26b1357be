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
    for setting in ("epochs=2", "batch_size=64", "width=8", "heads=2", "levels=3", "threads=1")
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
    found = json.loads(out)
    assert found["run"] == "runs/tcl-log"
    assert found["epoch"] in (1, 2)
    assert "epoch 2/2" in err
    assert "events/s" in err
    assert "(heuristic " in err
    folder = tmp_path / "runs/tcl-log"
    assert {path.name for path in folder.iterdir()} == {
        "config.json",
        "environment.json",
        "last.safetensors",
        "log.json",
        "metrics.jsonl",
        "model.safetensors",
    }
    assert json.loads((folder / "config.json").read_text())["settings"]["width"] == 8
    assert json.loads((folder / "environment.json").read_text())["torch"]


def test_evaluating_a_run_shows_the_floors_beside_it(cli: Cli, run: Path, tmp_path: Path) -> None:
    code, out, _ = cli("evaluate", "run")
    assert code == 0
    assert "tcl on test: 60 events" in out
    for name in ("popularity", "own-recency", "edgebank-window"):
        assert f"\n{name}" in out
    code, out, _ = cli("evaluate", "run", "--update", "every=7", "--json")
    found = json.loads(out)
    assert (found["model"], found["update"], found["data"]) == ("tcl", "every=7", "log.csv")
    assert len(found["heuristics"]) == 6
    assert {heuristic["update"] for heuristic in found["heuristics"]} == {"every=7"}
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
    found = json.loads(out)["recommendations"]
    assert len(found) == 4
    scores = [one["score"] for one in found]
    assert scores == sorted(scores, reverse=True)
    code, out, _ = cli("recommend", "run", "--source", "3", "--top", "4")
    assert "3, after the whole log:" in out
    assert str(found[0]["target"]) in out
    code, early, _ = cli("recommend", "run", "--source", "3", "--at", "1970-01-02", "--json")
    assert code == 0
    assert json.loads(early)["recommendations"][:4] != found


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
    ours, theirs = (load_file(tmp_path / one / "model.safetensors") for one in ("broken", "whole"))
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
    assert len(json.loads(out)["recommendations"]) == 10
    code, out, err = cli("embed", run, "--out", "vectors.parquet")
    assert code == 0, err
    assert pl.read_parquet(tmp_path / "vectors.parquet")["side"].n_unique() == 2


BAD_INPUT: list[tuple[tuple[str, ...], str]] = [
    (("train",), "give a log to train on"),
    (("train", "log.csv", "--set", "width"), "cannot read the setting 'width'"),
    (
        ("train", "log.csv", "--set", "widht=8"),
        "unknown setting 'widht'; did you mean \"width\"",
    ),
    (("train", "log.csv", "--set", "heads=7"), "7 heads cannot split a width of 64"),
    (("train", "log.csv", "--preset", "fats"), "unknown preset 'fats'; did you mean \"fast\""),
    (("train", "log.csv", "--model", "jodi"), "unknown model 'jodi'; did you mean \"jodie\""),
    (("train", "log.csv", "--model", "popularity"), "popularity is a rule and learns nothing"),
    (("train", "log.csv", "--model", "jodie", "--preset", "paper"), "jodie has no presets"),
    (("train", "--run", "run", "--resume", "--model", "jodie"), "with the model tcl, not jodie"),
    (("train", "log.csv", "--run", "run"), "run holds a run already"),
    (
        ("train", "--run", "run", "--resume", "--set", "width=16"),
        "run was begun with other settings (width: then 8, now 16)",
    ),
    (("train", "--run", "nowhere", "--resume"), "nowhere holds no run to resume"),
    (("train", "other.csv", "--run", "run", "--resume"), "log.csv, not other.csv; leave it out"),
    (("evaluate",), "give the folder of a run, or --model and --data"),
    (("evaluate", "run", "--model", "tcl"), "a run knows its model"),
    (("evaluate", "nowhere"), "no saved model in nowhere"),
    (("recommend", "nowhere", "--source", "1"), "no saved model in nowhere"),
    (("recommend", "run", "--source", "nobody"), "unknown key 'nobody'"),
    (("recommend", "run", "--source", "3", "--at", "noon"), "time 'noon'"),
    (("embed", "run", "--out", "vectors.csv"), "the name must end in .parquet"),
]


def test_bad_input_is_one_sentence_and_exit_code_2(cli: Cli, run: Path, tmp_path: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    for words, told in BAD_INPUT:
        code, out, err = cli(*words)
        assert code == 2, words
        assert out == ""
        *notes, error = err.splitlines()  # what was noticed while reading the log may come first
        assert error.startswith("error: ")
        assert told in error
        assert all(note.startswith("note: ") for note in notes)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
