"""Tests of `tclgraph tune`: continued, shared, interrupted and killed searches, and bad input."""

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
from tclgraph.models.tcl.model import TCL
from tests.streams import Cli

TUNE = (
    "tune",
    "log.csv",
    "--model",
    "tcl",
    *(
        word
        for setting in ("epochs=1", "batch_size=8", "width=4", "heads=2", "levels=3", "threads=1")
        for word in ("--set", setting)
    ),
)
"""A command that leaves 4 learning rates and 3 dropout rates to search."""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.csv"
    write_file(synthesize(SyntheticConfig(events=200, sources=12, targets=15)), path)
    return path


@pytest.fixture
def run_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Cli:
    """Run the command in this process, which has already imported torch: faster for many calls."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["tclgraph", *words])
        with pytest.raises(SystemExit) as exit_:
            main()
        out, err = capsys.readouterr()
        return int(exit_.value.code or 0), out, err

    return run


def start(folder: Path, *words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "tclgraph.cli.main", *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def combinations(output: dict[str, Any]) -> set[tuple[Any, ...]]:
    return {tuple(trial["settings"].values()) for trial in output["trials"]}


def figures(output: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [(trial["settings"], trial["epoch"], trial["valid"]) for trial in output["trials"]]


def test_the_same_command_continues_and_repeats_no_trial(
    run_here: Cli, log: Path, tmp_path: Path
) -> None:
    code, out, err = run_here(*TUNE, "--trials", "3", "--json")
    assert code == 0, err
    first = json.loads(out)
    assert len(first["trials"]) == 3
    assert (first["metric"], first["combinations"], first["folder"]) == (
        "MRR",
        12,
        "runs/tune-tcl-log",
    )
    lines = [line for line in err.splitlines() if not line.startswith("note: ")]
    assert [line.split(":")[0] for line in lines] == ["trial 1", "trial 2", "trial 3"]
    untuned = TCL().config
    assert (
        f"learning_rate={untuned.learning_rate} input_dropout={untuned.input_dropout}" in lines[0]
    )
    assert {path.name for path in (tmp_path / "runs/tune-tcl-log").iterdir()} == {
        "config.json",
        "environment.json",
        "journal.log",
        "lock",
    }

    code, out, err = run_here(*TUNE, "--trials", "4")
    assert code == 0
    assert "continuing: 3 trials finished\ntrial 4: " in err
    assert "log.csv: 4 trials of 12 combinations" in out
    assert out.count("complete") == 4
    assert "; without tuning: valid MRR " in out
    assert "next: tclgraph train log.csv --model tcl --set epochs=1" in out
    assert "to continue" not in out  # --trials forbids a further trial

    code, out, err = run_here(*TUNE, "--json")
    last = json.loads(out)
    assert all(trial in last["trials"] for trial in first["trials"])
    assert len(combinations(last)) == len(last["trials"]) == 12
    assert last["best"] == last["trials"][0]
    code, out, err = run_here(*TUNE)
    assert code == 0
    assert err.endswith("continuing: 12 trials finished\n")


def test_the_printed_command_trains_the_best_settings(
    run_here: Cli, log: Path, tmp_path: Path
) -> None:
    flags = ("--trials", "3", "--set", "negative_pool=256", "--split", "60/20/20", "--seen-only")
    code, out, err = run_here(*TUNE, *flags, "--json")
    assert code == 0, err
    tuned = json.loads(out)
    name, *command = shlex.split(tuned["command"])
    assert name == "tclgraph"
    code, out, err = run_here(*command, "--json")
    assert code == 0, err
    trained = json.loads(out)
    assert trained["valid"] == tuned["best"]["valid"]
    config = json.loads((tmp_path / trained["run"] / "config.json").read_text())
    assert config["settings"]["negative_pool"] == 256
    assert config["data"]["split"] == "60/20/20 of rows, seen only"


def test_kill_9_loses_only_the_running_trial(run_here: Cli, log: Path, tmp_path: Path) -> None:
    long = (*TUNE, "--set", "epochs=40", "--set", "batch_size=64")
    uninterrupted = json.loads(run_here(*long, "--trials", "4", "--folder", "other", "--json")[1])
    journal = tmp_path / "killed/journal.log"
    with start(tmp_path, *long, "--folder", "killed") as process:
        while not journal.exists() or '"trial_id":2,"step":5,' not in journal.read_text():
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.01)
        process.kill()
    code, out, err = run_here(*long, "--trials", "4", "--folder", "killed", "--json")
    assert code == 0, err
    assert "continuing: 2 trials finished" in err
    assert figures(json.loads(out)) == figures(uninterrupted)
    # The killed trial is not continued; a new trial replaces it.
    assert '"trial_id":2,"step":20,' not in journal.read_text()


def test_ctrl_c_keeps_finished_trials_and_says_how_to_continue(
    run_here: Cli, log: Path, tmp_path: Path
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
    assert (
        "stopped; runs/tune-tcl-log holds 1 trial; to continue the search, run the same command "
        "again" in err
    )
    assert "Traceback" not in err
    _, out, err = run_here(*TUNE, "--set", "epochs=50", "--budget", "0", "--json")
    assert "continuing: 1 trial finished" in err
    assert len(json.loads(out)["trials"]) == 1


def test_two_processes_share_a_search(run_here: Cli, log: Path, tmp_path: Path) -> None:
    processes = [start(tmp_path, *TUNE, "--trials", "8", "--json") for _ in range(2)]
    trial_lines = []
    for process in processes:
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        trial_lines += [line for line in err.splitlines() if line.startswith("trial ")]
    assert len(trial_lines) == 8
    output = json.loads(run_here(*TUNE, "--trials", "8", "--json")[1])
    assert len(combinations(output)) == len(output["trials"]) == 8


def test_a_budget_shorter_than_a_trial_is_an_error(run_here: Cli, log: Path) -> None:
    code, out, err = run_here(*TUNE, "--set", "epochs=1000", "--budget", "0.0001")
    assert (code, out) == (2, "")
    assert err.splitlines()[-1] == (
        "error: no trial finished within 0.0001 minutes; give a larger --budget, or shorten the "
        "trials, for example by --set epochs=5"
    )


def test_without_optuna_the_error_says_what_to_install(log: Path, tmp_path: Path) -> None:
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


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")
def test_a_terminal_shows_a_bar_with_the_remaining_time(log: Path, tmp_path: Path) -> None:
    reading_end, writing_end = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "tclgraph.cli.main", *TUNE, "--trials", "2"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=writing_end,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80"},
    ) as process:
        os.close(writing_end)
        shown = b""
        while True:
            try:
                block = os.read(reading_end, 4096)
            except OSError:  # the process has closed its end of the terminal
                break
            shown += block
    os.close(reading_end)
    assert process.returncode == 0
    assert b"trial 2  epoch 1/1" in shown
    assert b"0:29:" in shown
    assert b"trial 1: learning_rate" in shown


BAD_INPUT: list[tuple[tuple[str, ...], str]] = [
    (("tune", "nowhere.csv"), "nowhere.csv"),
    ((*TUNE, "--set", "widht=8"), "unknown setting 'widht'; did you mean \"width\""),
    ((*TUNE, "--set", "width"), "cannot read the setting 'width'"),
    ((*TUNE, "--model", "tlc"), "unknown model 'tlc'; did you mean \"tcl\""),
    ((*TUNE, "--model", "popularity"), "popularity has no settings to tune"),
    (
        (*TUNE, "--set", "learning_rate=0.1", "--set", "input_dropout=0.1"),
        "--set leaves nothing to search; leave out one of learning_rate, input_dropout",
    ),
    (
        (*TUNE, "--set", "epochs=2"),
        "runs/tune-tcl-log was started with other settings (epochs: then 1, now 2)",
    ),
    (
        (*TUNE, "--set", "input_dropout=0.6"),
        "runs/tune-tcl-log was started with other search_space",
    ),
    (("tune", "other.csv", *TUNE[2:], "--folder", "runs/tune-tcl-log"), "started with other data"),
    ((*TUNE, "--folder", "log.csv"), "cannot read log.csv/config.json"),
    ((*TUNE, "--folder", "/proc/search"), "cannot write /proc/search"),
]


def test_bad_input_gives_one_sentence_and_exit_code_2(
    run_here: Cli, log: Path, tmp_path: Path
) -> None:
    stream = synthesize(SyntheticConfig(events=200, sources=12, targets=15, seed=1))
    write_file(stream, tmp_path / "other.csv")
    assert run_here(*TUNE, "--trials", "1")[0] == 0
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    for words, message in BAD_INPUT:
        code, out, err = run_here(*words)
        assert code == 2, words
        assert out == ""
        *notes, error = err.splitlines()
        assert error.startswith("error: ")
        assert message in error
        assert all(note.startswith("note: ") for note in notes)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    for words in (
        ("tune",),
        (*TUNE, "--trials", "0"),
        (*TUNE, "--budget", "inf"),
        (*TUNE, "--preset", "paper"),
    ):
        code, _, err = run_here(*words)
        assert code == 2
        assert "Traceback" not in err
