"""Jobs in processes of their own, on real files."""

import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tclgraph.events.log_spec import LogSpec
from tclgraph.events.synthetic import SyntheticConfig, synthesize
from tclgraph.events.writers import write_file
from tclgraph.jobs.job import Job, digest_of, read_outcome, read_ranks
from tclgraph.jobs.suite import Standing, Suite
from tclgraph.reports import findings, summaries
from tclgraph.reports.table import to_csv
from tclgraph.studies.plans import Entry, Study

SMALL: dict[str, Any] = {"preset": "paper", "epochs": 3, "batch_size": 64, "width": 8, "heads": 2}


@pytest.fixture
def data(tmp_path: Path) -> LogSpec:
    path = tmp_path / "log.parquet"
    write_file(synthesize(SyntheticConfig(events=600, sources=20, targets=15)), path)
    return LogSpec(log=str(path))


def job(data: LogSpec, model: str = "tcl", seed: int = 0, **settings: Any) -> Job:
    own = {**SMALL, **settings} if model == "tcl" else settings
    return Job(data=data, events=digest_of(data.open()), model=model, settings=own, seed=seed)


def run(suite: Suite, seconds: float | None = None) -> tuple[list[str], list[Standing]]:
    lines: list[str] = []
    standings: list[Standing] = []
    suite.run(seconds=seconds, tell=lines.append, show=standings.append)
    return lines, standings


def test_what_is_done_is_not_done_again(data: LogSpec, tmp_path: Path) -> None:
    jobs = [job(data), job(data, "popularity")]
    lines, standings = run(Suite(jobs, tmp_path / "out", workers=2))
    assert len(lines) == 2
    assert standings[-1].done == 2
    assert not standings[-1].left
    outcome = read_outcome(jobs[0], tmp_path / "out")
    assert outcome is not None
    assert outcome["update"] == "streaming"
    assert len(outcome["curve"]) == 3
    assert outcome["test"]["events"] == len(read_ranks(jobs[0], tmp_path / "out"))
    mean = read_ranks(jobs[0], tmp_path / "out").mean()
    assert outcome["test"]["metrics"]["MR"] == pytest.approx(mean)
    assert not [one for one in (tmp_path / "out" / "runs").rglob("*") if one.is_file()]

    again = Suite(jobs, tmp_path / "out", workers=2)
    assert not again.missing
    assert run(again) == ([], [])
    # Another setting, another seed and another split are other jobs.
    others = [job(data, epochs=2), job(data, seed=1), job(LogSpec(log=data.log, split="60/20/20"))]
    assert len(Suite([*jobs, *others], tmp_path / "out", workers=1).missing) == 3


def test_a_failed_job_is_told_and_does_not_stop_the_rest(data: LogSpec, tmp_path: Path) -> None:
    bad, good = job(data, learning_rate=1e9, ema_decay=None), job(data, "popularity")
    suite = Suite([bad, good], tmp_path / "out", workers=1)
    lines, standings = run(suite)
    assert list(suite.failed) == [bad.key]
    assert "training diverged" in suite.failed[bad.key]
    assert any(line.startswith(f"{bad.key}: failed, training diverged") for line in lines)
    assert standings[-1].failed == 1
    assert read_outcome(good, tmp_path / "out") is not None
    assert Suite([bad, good], tmp_path / "out", workers=1).missing == [bad]


def test_a_budget_ends_it_in_time(data: LogSpec, tmp_path: Path) -> None:
    jobs = [job(data, epochs=100_000)]
    for seconds in (0.0, 1.0):
        suite = Suite(jobs, tmp_path / "out", workers=1)
        started = time.monotonic()
        run(suite, seconds=seconds)
        assert time.monotonic() - started < 60
        assert suite.missing == jobs
        assert not suite.failed


def test_an_interrupt_keeps_what_was_done(data: LogSpec, tmp_path: Path) -> None:
    long = job(data, epochs=100_000)
    suite = Suite([job(data, "popularity"), long], tmp_path / "out", workers=1)
    told_left = None

    def interrupt(standing: Standing) -> None:
        nonlocal told_left
        told = re.search(r"epoch (\d+)/", standing.running[0]) if standing.running else None
        if told and int(told[1]) > 2:
            told_left = standing.seconds_left
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        suite.run(tell=lambda line: None, show=interrupt)
    assert suite.missing == [long]
    reached = tmp_path / "out" / "runs" / long.key / "metrics.jsonl"
    assert len(reached.read_text().splitlines()) > 2  # the heuristic, and epochs that are not lost
    # By what it has done so far: the heuristic before it took no time, and tells nothing.
    assert told_left is not None
    assert told_left > 100


def test_an_interrupt_while_a_job_starts_loses_none(
    data: LogSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [job(data), job(data, "popularity")]
    suite = Suite(jobs, tmp_path / "out", workers=1)

    def interrupted(_: Job) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(suite, "_start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(suite)
    assert suite.missing == jobs


SCRIPT = """
import sys
from pathlib import Path
from tclgraph.events.log_spec import LogSpec
from tclgraph.jobs.job import Job, digest_of
from tclgraph.jobs.suite import Suite
from tests.jobs.test_suite import LONG, job

if __name__ == "__main__":
    data, out = LogSpec(log=sys.argv[1]), Path(sys.argv[2])
    jobs = [job(data, **LONG, seed=seed) for seed in range(4)] + [job(data, "popularity")]

    def show(standing):
        if any("epoch" in one for one in standing.running):
            print("training", flush=True)

    Suite(jobs, out, workers=2).run(tell=lambda line: None, show=show)
"""
LONG = {"epochs": 60, "patience": 60}


def test_kill_9_at_ten_random_moments_ends_with_the_same_tables(
    data: LogSpec, tmp_path: Path
) -> None:
    script = tmp_path / "run.py"
    script.write_text(SCRIPT)
    root = str(Path(__file__).parents[2])

    def start(out: Path) -> "subprocess.Popen[str]":
        command = [sys.executable, str(script), data.log, str(out)]
        return subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            text=True,
            cwd=root,
            env={**os.environ, "PYTHONPATH": root},
        )

    def finish(out: Path) -> None:
        with start(out) as process:
            process.communicate(timeout=300)
            assert process.returncode == 0

    finish(tmp_path / "whole")
    chance = random.Random(3)
    num_hit = 0
    for _ in range(10):
        with start(tmp_path / "killed") as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(chance.uniform(0.0, 1.0))
            num_hit += process.poll() is None
            process.kill()
        time.sleep(0.5)  # what it had begun sees that it is gone, and ends
    assert num_hit >= 5  # the others came too late, on a quick machine
    finish(tmp_path / "killed")

    split = data.open()
    entries = (
        Entry(name="popularity", group="heuristic", kinds=(("popularity", {}),)),
        Entry(name="small", group="TCL", kinds=(("tcl", {**SMALL, **LONG}),)),
    )
    made = Study(name="overall", data=data, split=split, events=digest_of(split), entries=entries)

    def tables(out: Path) -> list[str]:
        found = made.results(tmp_path / out)
        assert len(found["small"].outcomes) == 4
        return [
            to_csv(table)
            for table in (
                summaries.table_of_models(made, found),
                findings.table_of_meetings(made, found),
                findings.table_of_quarters(made, found),
                *findings.table_of_comparisons(made, found),
            )
        ]

    assert tables(tmp_path / "killed") == tables(tmp_path / "whole")
