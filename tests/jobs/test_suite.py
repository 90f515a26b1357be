"""Suites of real jobs, each in a process of its own, with their files."""

import multiprocessing
import random
import re
import time
from multiprocessing.context import ForkServerProcess
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from tclgraph.events.log_spec import LogSpec
from tclgraph.events.synthetic import SyntheticConfig, synthesize
from tclgraph.events.writers import write_file
from tclgraph.jobs.job import Job, read_outcome, read_ranks
from tclgraph.jobs.suite import Suite, SuiteStatus
from tclgraph.reports.breakdowns import comparison_tables, pairs_table, quarters_table
from tclgraph.reports.overall import overall_table
from tclgraph.reports.table import to_csv
from tclgraph.studies.overall import OverallStudy
from tclgraph.studies.study import Entry, OpenLog, Role
from tests.jobs.small_jobs import LONG, SMALL, make_job


@pytest.fixture
def spec(tmp_path: Path) -> LogSpec:
    path = tmp_path / "log.parquet"
    write_file(synthesize(SyntheticConfig(events=600, sources=20, targets=15)), path)
    return LogSpec(log=str(path))


def run(suite: Suite, seconds: float | None = None) -> tuple[list[str], list[SuiteStatus]]:
    lines: list[str] = []
    statuses: list[SuiteStatus] = []
    suite.run(seconds=seconds, print_line=lines.append, show_status=statuses.append)
    return lines, statuses


def test_finished_jobs_are_not_run_again(spec: LogSpec, tmp_path: Path) -> None:
    jobs = [make_job(spec), make_job(spec, "popularity")]
    lines, statuses = run(Suite(jobs, tmp_path / "out", workers=2))
    assert len(lines) == 2
    assert statuses[-1].done == 2
    assert not statuses[-1].waiting
    outcome = read_outcome(jobs[0], tmp_path / "out")
    assert outcome is not None
    assert outcome.learning is not None
    assert outcome.update == "streaming"
    assert len(outcome.learning.curve) == 3
    ranks = read_ranks(jobs[0], tmp_path / "out")
    assert outcome.report.events == len(ranks)
    assert outcome.report.metrics["MR"] == pytest.approx(ranks.mean())
    assert not [path for path in (tmp_path / "out" / "runs").rglob("*") if path.is_file()]

    again = Suite(jobs, tmp_path / "out", workers=2)
    assert not again.missing
    assert run(again) == ([], [])


def test_another_setting_seed_or_split_is_another_job(spec: LogSpec, tmp_path: Path) -> None:
    job = make_job(spec, "popularity")
    run(Suite([job], tmp_path, workers=1))
    others = [
        make_job(spec),
        make_job(spec, epochs=2),
        make_job(spec, seed=1),
        make_job(LogSpec(log=spec.log, split="60/20/20"), "popularity"),
    ]
    assert Suite([job, *others], tmp_path, workers=1).missing == others
    assert len({other.key for other in (job, *others)}) == 5


def test_a_failed_job_is_reported_and_does_not_stop_the_others(
    spec: LogSpec, tmp_path: Path
) -> None:
    bad, good = make_job(spec, learning_rate=1e9, ema_decay=None), make_job(spec, "popularity")
    suite = Suite([bad, good], tmp_path / "out", workers=1)
    lines, statuses = run(suite)
    assert list(suite.failed) == [bad.key]
    assert "training diverged" in suite.failed[bad.key]
    assert any(line.startswith(f"{bad.key}: failed, training diverged") for line in lines)
    assert statuses[-1].failed == 1
    assert str(statuses[-1]) == "1 done, 0 running, 0 waiting, 1 failed"
    assert read_outcome(good, tmp_path / "out") is not None
    assert Suite([bad, good], tmp_path / "out", workers=1).missing == [bad]


def test_a_suite_ends_when_its_time_is_up(spec: LogSpec, tmp_path: Path) -> None:
    jobs = [make_job(spec, epochs=100_000)]
    for seconds in (0.0, 1.0):
        suite = Suite(jobs, tmp_path / "out", workers=1)
        started = time.monotonic()
        run(suite, seconds=seconds)
        assert time.monotonic() - started < 60
        assert suite.missing == jobs
        assert not suite.failed


def test_an_interrupt_keeps_finished_epochs(spec: LogSpec, tmp_path: Path) -> None:
    long = make_job(spec, epochs=100_000)
    suite = Suite([make_job(spec, "popularity"), long], tmp_path / "out", workers=1)
    seconds_left = None

    def interrupt(status: SuiteStatus) -> None:
        nonlocal seconds_left
        epoch = re.search(r"epoch (\d+)/", status.running[0]) if status.running else None
        if epoch and int(epoch[1]) > 2:
            seconds_left = status.seconds_left
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        suite.run(print_line=lambda line: None, show_status=interrupt)
    assert suite.missing == [long]
    metrics = long.run_path(tmp_path / "out") / "metrics.jsonl"
    assert len(metrics.read_text().splitlines()) > 2  # a line for the heuristic, then the epochs
    # The estimate comes from the running job: the finished heuristic took no time.
    assert seconds_left is not None
    assert seconds_left > 100


def test_an_interrupt_while_a_job_starts_loses_no_job(
    spec: LogSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [make_job(spec), make_job(spec, "popularity")]
    suite = Suite(jobs, tmp_path / "out", workers=1)

    def interrupt(_: Job) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(suite, "_start", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run(suite)
    assert suite.missing == jobs


# Every suite is a process of its own, forked from one that has imported what it needs.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload([__name__])


def run_five_jobs(spec: LogSpec, out: Path, is_training: Event) -> None:
    jobs = [make_job(spec, **LONG, seed=seed) for seed in range(4)]
    jobs.append(make_job(spec, "popularity"))

    def show_status(status: SuiteStatus) -> None:
        if any("epoch" in line for line in status.running):
            is_training.set()

    Suite(jobs, out, workers=2).run(print_line=lambda line: None, show_status=show_status)


def test_kill_9_at_ten_random_moments_ends_with_the_same_tables(
    spec: LogSpec, tmp_path: Path
) -> None:
    def start(out: Path) -> tuple[ForkServerProcess, Event]:
        is_training = CONTEXT.Event()
        process = CONTEXT.Process(target=run_five_jobs, args=(spec, out, is_training))
        process.start()
        return process, is_training

    def finish(out: Path) -> None:
        process, _ = start(out)
        process.join(timeout=300)
        assert process.exitcode == 0

    finish(tmp_path / "undisturbed")
    chance = random.Random(3)
    num_killed = 0
    for _ in range(10):
        process, is_training = start(tmp_path / "killed")
        while process.is_alive() and not is_training.wait(0.1):
            pass
        time.sleep(chance.uniform(0.0, 1.0))
        process.kill()
        process.join()
        num_killed += process.exitcode == -9
        time.sleep(0.5)  # its jobs notice that it is gone, and end
    assert num_killed >= 5  # on a fast machine some runs end before they are killed
    finish(tmp_path / "killed")

    log = OpenLog.open(spec)
    small = Entry(name="small", role=Role.OURS, jobs=(log.job("tcl", {**SMALL, **LONG}),))
    heuristic = Entry(name="popularity", role=Role.HEURISTIC, jobs=(log.job("popularity"),))
    study = OverallStudy(log=log, entries=(heuristic, small), tcl=small, ranker=None)

    def tables(folder: Path) -> list[str]:
        results = study.results(folder)
        assert len(results[small].outcomes) == 4
        return [
            to_csv(table)
            for table in (
                overall_table(study, results),
                pairs_table(study, results),
                quarters_table(study, results),
                *comparison_tables(study, results),
            )
        ]

    assert tables(tmp_path / "killed") == tables(tmp_path / "undisturbed")
