"""`tclgraph tune` through the real command: going on, sharing, kill -9, bad input."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tclgraph.cli.main import main
from tclgraph.events.synthetic import SyntheticConfig, synthesize
from tclgraph.events.writers import write_file
from tests.streams import Cli

TUNE = (
    "tune",
    "log.csv",
    "--preset",
    "paper",
    *(
        word
        for setting in ("epochs=1", "batch_size=8", "width=4", "heads=2", "levels=3", "threads=1")
        for word in ("--set", setting)
    ),
)
# 4 learning rates and 3 rates of dropout are left to search.


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.csv"
    write_file(synthesize(SyntheticConfig(events=200, sources=12, targets=15)), path)
    return path


@pytest.fixture
def here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Cli:
    """The command in this process, which has torch already: for where many calls are made."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["tclgraph", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return run


def start(folder: Path, *words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "tclgraph.cli.main", *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def settings(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [trial["settings"] for trial in found["trials"]]


def figures(found: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [(trial["settings"], trial["epoch"], trial["valid"]) for trial in found["trials"]]


def test_the_same_command_goes_on_and_repeats_nothing(here: Cli, log: Path, tmp_path: Path) -> None:
    code, out, err = here(*TUNE, "--trials", "3", "--json")
    assert code == 0, err
    first = json.loads(out)
    assert len(first["trials"]) == 3
    assert (first["metric"], first["combinations"], first["study"]) == (
        "MRR",
        12,
        "runs/tune-tcl-log",
    )
    lines = [line for line in err.splitlines() if not line.startswith("note: ")]
    assert [line.split(":")[0] for line in lines] == ["trial 1", "trial 2", "trial 3"]
    assert "learning_rate=0.0005 input_dropout=0.6" in lines[0]  # the preset's own
    assert {path.name for path in (tmp_path / "runs/tune-tcl-log").iterdir()} == {
        "config.json",
        "environment.json",
        "journal.log",
        "lock",
    }

    code, out, err = here(*TUNE, "--trials", "4")
    assert code == 0
    assert "continuing: 3 trials done\ntrial 4: " in err
    assert "log.csv: 4 trials of 12 combinations" in out
    assert out.count("complete") == 4
    assert "paper as it is: valid MRR " in out
    assert "next: tclgraph train log.csv --preset paper --set epochs=1" in out
    assert "searches on" not in out  # as it was told not to

    code, out, err = here(*TUNE, "--json")
    found = json.loads(out)
    assert all(trial in found["trials"] for trial in first["trials"])
    assert len({tuple(one.values()) for one in settings(found)}) == len(found["trials"]) == 12
    assert found["best"] == found["trials"][0]
    code, out, err = here(*TUNE)
    assert code == 0
    assert err.endswith("continuing: 12 trials done\n")


def test_the_command_it_ends_with_trains_the_best(here: Cli, log: Path, tmp_path: Path) -> None:
    words = ("--trials", "3", "--preset", "fast", "--split", "60/20/20", "--seen-only")
    code, out, err = here(*TUNE, *words, "--json")
    assert code == 0, err
    found = json.loads(out)
    name, *command = shlex.split(found["command"])
    assert name == "tclgraph"
    code, out, err = here(*command, "--json")
    assert code == 0, err
    trained = json.loads(out)
    assert trained["valid"] == found["best"]["valid"]
    config = json.loads((tmp_path / trained["run"] / "config.json").read_text())
    assert config["settings"]["negative_pool"] == 256
    assert config["data"]["split"] == "60/20/20 of rows, seen only"


def test_kill_9_loses_nothing_but_the_trial_that_was_running(
    here: Cli, log: Path, tmp_path: Path
) -> None:
    long = (*TUNE, "--set", "epochs=40", "--set", "batch_size=64")
    whole = json.loads(here(*long, "--trials", "4", "--study", "whole", "--json")[1])
    journal = tmp_path / "broken/journal.log"
    with start(tmp_path, *long, "--study", "broken") as process:
        while not journal.exists() or '"trial_id":2,"step":5,' not in journal.read_text():
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.01)
        process.kill()
    code, out, err = here(*long, "--trials", "4", "--study", "broken", "--json")
    assert code == 0, err
    assert "continuing: 2 trials done" in err
    assert figures(json.loads(out)) == figures(whole)
    assert '"trial_id":2,"step":20,' not in journal.read_text()  # it was given up, for another


def test_ctrl_c_keeps_the_trials_and_says_how_to_go_on(
    here: Cli, log: Path, tmp_path: Path
) -> None:
    with start(tmp_path, *TUNE, "--set", "epochs=50") as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("trial 1:"):
                break
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert "stopped; 1 trial kept in runs/tune-tcl-log; the same command goes on" in err
    assert "Traceback" not in err
    _, out, err = here(*TUNE, "--set", "epochs=50", "--budget", "0", "--json")
    assert "continuing: 1 trial done" in err
    assert len(json.loads(out)["trials"]) == 1


def test_processes_share_a_search(here: Cli, log: Path, tmp_path: Path) -> None:
    both = [start(tmp_path, *TUNE, "--trials", "8", "--json") for _ in range(2)]
    told = []
    for process in both:
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        told.append([line for line in err.splitlines() if line.startswith("trial ")])
    assert len(told[0]) + len(told[1]) == 8
    found = json.loads(here(*TUNE, "--trials", "8", "--json")[1])
    assert len({tuple(one.values()) for one in settings(found)}) == len(found["trials"]) == 8


def test_a_budget_too_small_for_a_trial(here: Cli, log: Path) -> None:
    code, out, err = here(*TUNE, "--set", "epochs=1000", "--budget", "0.0001")
    assert (code, out) == (2, "")
    assert err.splitlines()[-1] == (
        "error: no trial was over within 0.0001 minutes; give a larger --budget, or shorter "
        "trials, like --set epochs=5"
    )


def test_without_optuna_it_says_what_to_install(log: Path, tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['optuna'] = None; sys.argv = ['tclgraph', 'tune', 'log.csv']\n"
        "from tclgraph.cli.main import main\n"
        "main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 2
    assert done.stderr == 'error: tclgraph tune needs optuna: pip install "tclgraph[tune]"\n'


@pytest.mark.skipif(sys.platform == "win32", reason="no terminal to be had")
def test_on_a_terminal_a_bar_tells_the_time_left(log: Path, tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "tclgraph.cli.main", *TUNE, "--trials", "2"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80"},
    ) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                block = os.read(ours, 4096)
            except OSError:  # how a terminal says that the other side has left
                break
            shown += block
    os.close(ours)
    assert process.returncode == 0
    assert b"trial 2  epoch 1/1" in shown
    assert b"0:29:" in shown
    assert b"trial 1: learning_rate" in shown


BAD_INPUT: list[tuple[tuple[str, ...], str]] = [
    (("tune", "nowhere.csv"), "nowhere.csv"),
    ((*TUNE, "--set", "widht=8"), "unknown setting 'widht'; did you mean \"width\""),
    ((*TUNE, "--set", "width"), "cannot read the setting 'width'"),
    ((*TUNE, "--preset", "fats"), "unknown preset 'fats'; did you mean \"fast\""),
    ((*TUNE, "--model", "tlc"), "unknown model 'tlc'; did you mean \"tcl\""),
    ((*TUNE, "--model", "popularity"), "popularity is a rule and learns nothing"),
    (
        (*TUNE, "--set", "learning_rate=0.1", "--set", "input_dropout=0.1"),
        "--set leaves nothing to search; leave out one of learning_rate, input_dropout",
    ),
    (
        (*TUNE, "--set", "epochs=2"),
        "runs/tune-tcl-log was begun with other settings (epochs: then 1, now 2)",
    ),
    ((*TUNE, "--set", "input_dropout=0.6"), "runs/tune-tcl-log was begun with other search_space"),
    (("tune", "other.csv", *TUNE[2:], "--study", "runs/tune-tcl-log"), "begun with other data"),
    ((*TUNE, "--study", "log.csv"), "cannot read log.csv/config.json"),
    ((*TUNE, "--study", "/proc/study"), "cannot write /proc/study"),
]


def test_bad_input_is_one_sentence_and_exit_code_2(here: Cli, log: Path, tmp_path: Path) -> None:
    stream = synthesize(SyntheticConfig(events=200, sources=12, targets=15, seed=1))
    write_file(stream, tmp_path / "other.csv")
    assert here(*TUNE, "--trials", "1")[0] == 0
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    for words, told in BAD_INPUT:
        code, out, err = here(*words)
        assert code == 2, words
        assert out == ""
        *notes, error = err.splitlines()
        assert error.startswith("error: ")
        assert told in error
        assert all(note.startswith("note: ") for note in notes)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    for words in (("tune",), (*TUNE, "--trials", "0"), (*TUNE, "--budget", "inf")):
        code, _, err = here(*words)
        assert code == 2
        assert "Traceback" not in err
