"""Run many jobs, several at a time, until all are done or the time is up."""

import os
import signal
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing import connection
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

from tclgraph.evaluation.report import decimals
from tclgraph.jobs.job import Job, read_outcome
from tclgraph.jobs.outcome import Outcome
from tclgraph.jobs.worker import SECONDS_BETWEEN_MESSAGES, FailureMessage, start_worker

# Time for a job to write its checkpoint after an interrupt; a slower job is killed and loses what
# it did since its last checkpoint.
_SECONDS_TO_STOP = 60.0
_METRICS_SHOWN = ("MR", "MRR", "Hit@10")


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteStatus:
    """How far a suite is."""

    done: int
    """Number of finished jobs."""
    running: tuple[str, ...]
    """A line for each running job."""
    waiting: int
    """Number of jobs that have not started."""
    failed: int
    """Number of failed jobs."""
    seconds_left: float | None
    """Estimated time until all jobs are done; None before any duration is known."""

    def __str__(self) -> str:
        counts = [f"{self.done} done", f"{len(self.running)} running", f"{self.waiting} waiting"]
        if self.failed:
            counts.append(f"{self.failed} failed")
        return ", ".join(counts)


@dataclass(slots=True, kw_only=True)
class _RunningJob:
    job: Job
    process: BaseProcess
    messages: Connection
    started: float
    progress: str = "starting"
    seconds_left: float | None = None
    error: str | None = None

    def receive(self) -> None:
        """Read all messages that have arrived."""
        try:
            while self.messages.poll():
                message = self.messages.recv()
                if isinstance(message, FailureMessage):
                    self.error = message.error
                else:
                    self.progress, self.seconds_left = message.text, message.seconds_left
        except (EOFError, ConnectionResetError):
            pass  # the process has ended


class Suite:
    """The jobs of a folder: finished, running, waiting and failed."""

    def __init__(self, jobs: Sequence[Job], folder: Path, *, workers: int) -> None:
        self.folder = folder
        self.failed: dict[str, str] = {}
        """Error messages by the keys of failed jobs."""
        self._workers = workers
        self._threads = max(1, (os.cpu_count() or 1) // workers)
        self._durations: dict[tuple[str, str], list[float]] = {}
        """Seconds of finished learned jobs, by the names of log and job."""
        self._running: list[_RunningJob] = []
        self._waiting: list[Job] = []
        self._num_done = 0
        for job in jobs:
            outcome = read_outcome(job, folder)
            if outcome is None:
                self._waiting.append(job)
            else:
                self._record(job, outcome)

    @property
    def missing(self) -> list[Job]:
        """Return the jobs that are neither done nor failed."""
        return list(self._waiting)

    def run(
        self,
        *,
        seconds: float | None = None,
        print_line: Callable[[str], None],
        show_status: Callable[[SuiteStatus], None],
    ) -> None:
        """Run the waiting jobs, for at most `seconds`.

        `print_line` gets a line for every job that ends, and `show_status` the status of the
        suite about twice a second. At the end of the time, and when an exception such as
        `KeyboardInterrupt` ends the run, running jobs write a checkpoint and count as missing.
        """
        deadline = None if seconds is None else time.monotonic() + seconds
        try:
            while self._waiting or self._running:
                if deadline is not None and time.monotonic() >= deadline:
                    break
                while self._waiting and len(self._running) < self._workers:
                    # The job stays in the list while it starts: an interrupt may come then.
                    self._running.append(self._start(self._waiting[0]))
                    self._waiting.pop(0)
                sentinels = [running.process.sentinel for running in self._running]
                pipes = [running.messages for running in self._running]
                connection.wait([*sentinels, *pipes], SECONDS_BETWEEN_MESSAGES)
                self._collect(print_line)
                show_status(self._status())
        finally:
            self._stop()

    def _start(self, job: Job) -> _RunningJob:
        process, messages = start_worker(job, self.folder, self._threads)
        return _RunningJob(job=job, process=process, messages=messages, started=time.monotonic())

    def _collect(self, print_line: Callable[[str], None]) -> None:
        """Read messages, and record the jobs that have ended."""
        for running in list(self._running):
            running.receive()
            if running.process.is_alive():
                continue
            running.process.join()
            running.receive()
            self._running.remove(running)
            outcome = read_outcome(running.job, self.folder)
            if outcome is None:
                code = running.process.exitcode
                error = running.error or f"its process ended with exit code {code}"
                self.failed[running.job.key] = error
                print_line(f"{running.job.key}: failed, {error}")
            else:
                self._record(running.job, outcome)
                print_line(_result_line(running, outcome))

    def _stop(self) -> None:
        """Interrupt the running jobs and wait until they have written their checkpoints."""
        for running in self._running:
            if running.process.pid and running.process.is_alive():
                os.kill(running.process.pid, signal.SIGINT)
        deadline = time.monotonic() + _SECONDS_TO_STOP
        for running in self._running:
            running.process.join(max(0.0, deadline - time.monotonic()))
            if running.process.is_alive():
                running.process.kill()
                running.process.join()
        self._waiting = [*(running.job for running in self._running), *self._waiting]
        self._running = []

    def _record(self, job: Job, outcome: Outcome) -> None:
        self._num_done += 1
        # A heuristic takes no time, so its duration says nothing about learned models.
        if outcome.learning is not None:
            self._durations.setdefault((job.spec.name, job.name), []).append(outcome.seconds)

    def _status(self) -> SuiteStatus:
        return SuiteStatus(
            done=self._num_done,
            running=tuple(f"{running.job.key}: {running.progress}" for running in self._running),
            waiting=len(self._waiting),
            failed=len(self.failed),
            seconds_left=self._seconds_left(),
        )

    def _seconds_left(self) -> float | None:
        """Estimate the time left from the durations that are known."""
        now = time.monotonic()
        means = {key: statistics.fmean(seconds) for key, seconds in self._durations.items()}
        for running in self._running:
            if running.seconds_left is not None:
                duration = now - running.started + running.seconds_left
                means.setdefault((running.job.spec.name, running.job.name), duration)
        if not means:
            return None
        left_running = [
            max(_expected_seconds(running.job, means) - (now - running.started), 0.0)
            if running.seconds_left is None
            else running.seconds_left
            for running in self._running
        ]
        left_waiting = sum(_expected_seconds(job, means) for job in self._waiting)
        return max(*left_running, (sum(left_running) + left_waiting) / self._workers, 0.0)


def _expected_seconds(job: Job, means: dict[tuple[str, str], float]) -> float:
    """Return the mean duration of jobs of the same name, else of the same log, else of all."""
    if (job.spec.name, job.name) in means:
        return means[job.spec.name, job.name]
    of_log = [mean for (log, _), mean in means.items() if log == job.spec.name]
    return statistics.fmean(of_log or means.values())


def _result_line(running: _RunningJob, outcome: Outcome) -> str:
    metrics = outcome.report.metrics
    figures = " ".join(f"{name} {metrics[name]:.{decimals(name)}f}" for name in _METRICS_SHOWN)
    return f"{running.job.key}: {figures}  {time.monotonic() - running.started:.0f} s"
