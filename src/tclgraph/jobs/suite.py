"""Many jobs, several at a time, until all are done or time is up.

Every job is a process of its own: what it uses is its own, and if it fails the others go on. One
that is interrupted keeps its checkpoint and goes on from there the next time. Should this process
be killed, the others see it and end.
"""

import multiprocessing
import os
import signal
import statistics
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing import connection
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from tclgraph.errors import InputError
from tclgraph.evaluation.report import decimals
from tclgraph.jobs.job import Job, read_outcome, run_job
from tclgraph.training.progress import ProgressUpdate

_SECONDS_BETWEEN_MESSAGES = 0.5
# For a checkpoint to be written; who takes longer is killed, and loses what came after the last.
_SECONDS_TO_STOP = 60.0
# What takes longer to import than a small job takes. Torch's optimizers import the last.
_IMPORTED_ONCE = ["tclgraph.jobs.job", "tclgraph.models.tcl.model", "torch._dynamo"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where a suite is."""

    done: int
    running: tuple[str, ...]
    left: int
    failed: int
    seconds_left: float | None
    """None: nothing is known yet of how long a job takes."""

    def __str__(self) -> str:
        words = [f"{self.done} done", f"{len(self.running)} running", f"{self.left} left"]
        if self.failed:
            words.append(f"{self.failed} failed")
        return ", ".join(words)


@dataclass(slots=True, kw_only=True)
class _Running:
    process: BaseProcess
    messages: Connection
    job: Job
    started: float
    told: str = "starting"
    seconds_left: float | None = None
    """By its own account."""
    error: str | None = None

    def listen(self) -> None:
        try:
            while self.messages.poll():
                kind, *rest = self.messages.recv()
                if kind == "failed":
                    (self.error,) = rest
                else:
                    self.told, self.seconds_left = rest
        except (EOFError, ConnectionResetError):
            pass


class Suite:
    """The jobs of a folder that are still to be done."""

    def __init__(self, jobs: Sequence[Job], folder: Path, *, workers: int) -> None:
        self.folder, self._workers = folder, workers
        self._threads = max(1, (os.cpu_count() or 1) // workers)
        self.failed: dict[str, str] = {}
        """Errors by the keys of jobs."""
        self._seconds: dict[tuple[str, str], list[float]] = {}
        self._running: list[_Running] = []
        self._waiting: list[Job] = []
        self._done = 0
        for job in jobs:
            outcome = read_outcome(job, folder)
            if outcome is None:
                self._waiting.append(job)
            else:
                self._count(job, outcome)

    def run(
        self,
        *,
        seconds: float | None = None,
        tell: Callable[[str], None],
        show: Callable[[Standing], None],
    ) -> None:
        """Do what there is to do; `tell` gets a line for every job that ends, `show` the rest."""
        deadline = None if seconds is None else time.monotonic() + seconds
        try:
            while self._waiting or self._running:
                if deadline is not None and time.monotonic() >= deadline:
                    break
                while self._waiting and len(self._running) < self._workers:
                    # Waiting until it runs: an interrupt may come while it starts.
                    self._running.append(self._start(self._waiting[0]))
                    self._waiting.pop(0)
                sources = [one.process.sentinel for one in self._running]
                connection.wait(
                    [*sources, *(one.messages for one in self._running)], _SECONDS_BETWEEN_MESSAGES
                )
                self._collect(tell)
                show(self._standing())
        finally:
            self._stop()

    def _start(self, job: Job) -> _Running:
        context = _context()
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(
            target=_work, args=(job, self.folder, self._threads, sender), daemon=True
        )
        process.start()
        sender.close()  # the other process has it, and this one is to see when it is gone
        return _Running(process=process, messages=receiver, job=job, started=time.monotonic())

    def _collect(self, tell: Callable[[str], None]) -> None:
        """Take note of jobs that have ended."""
        for one in list(self._running):
            one.listen()
            if one.process.is_alive():
                continue
            one.process.join()
            one.listen()
            self._running.remove(one)
            outcome = read_outcome(one.job, self.folder)
            if outcome is None:
                code = one.process.exitcode
                error = one.error or f"its process ended with exit code {code}"
                self.failed[one.job.key] = error
                tell(f"{one.job.key}: failed, {error}")
                continue
            self._count(one.job, outcome)
            metrics = outcome["test"]["metrics"]
            figures = " ".join(
                f"{name} {metrics[name]:.{decimals(name)}f}" for name in ("MR", "MRR", "Hit@10")
            )
            tell(f"{one.job.key}: {figures}  {time.monotonic() - one.started:.0f} s")

    def _stop(self) -> None:
        """Let what runs save where it is."""
        for one in self._running:
            if one.process.pid and one.process.is_alive():
                os.kill(one.process.pid, signal.SIGINT)
        until = time.monotonic() + _SECONDS_TO_STOP
        for one in self._running:
            one.process.join(max(0.0, until - time.monotonic()))
            if one.process.is_alive():
                one.process.kill()
                one.process.join()
        self._waiting = [*(one.job for one in self._running), *self._waiting]
        self._running = []

    @property
    def missing(self) -> list[Job]:
        """What has not been done and has not failed."""
        return list(self._waiting)

    def _count(self, job: Job, outcome: dict[str, Any]) -> None:
        self._done += 1
        if "curve" in outcome:  # heuristics take no time, and tell nothing of what learns
            seconds = outcome["seconds"] + outcome["test"]["seconds"]
            self._seconds.setdefault((job.data.name, job.name), []).append(seconds)

    def _standing(self) -> Standing:
        return Standing(
            done=self._done,
            running=tuple(f"{one.job.key}: {one.told}" for one in self._running),
            left=len(self._waiting),
            failed=len(self.failed),
            seconds_left=self._seconds_left(),
        )

    def _seconds_left(self) -> float | None:
        """By jobs of the same name, of the same log, or of any, in this order of preference."""
        now = time.monotonic()
        means = {one: statistics.fmean(seconds) for one, seconds in self._seconds.items()}
        for one in self._running:
            if one.seconds_left is not None:
                whole = now - one.started + one.seconds_left
                means.setdefault((one.job.data.name, one.job.name), whole)
        if not means:
            return None
        by_log: dict[str, list[float]] = {}
        for (log, _), mean in means.items():
            by_log.setdefault(log, []).append(mean)
        everything = statistics.fmean(means.values())

        def expected(job: Job) -> float:
            of_log = by_log.get(job.data.name)
            return means.get(
                (job.data.name, job.name), statistics.fmean(of_log) if of_log else everything
            )

        running = [
            max(expected(one.job) - (now - one.started), 0.0)
            if one.seconds_left is None
            else one.seconds_left
            for one in self._running
        ]
        waiting = sum(expected(job) for job in self._waiting)
        return max(*running, (sum(running) + waiting) / self._workers, 0.0)


def _context() -> ForkServerContext | SpawnContext:
    """On Linux jobs are forked from a process that has imported it all and done nothing else.

    On macOS the system's own libraries cannot be relied on after a fork.
    """
    if sys.platform != "linux":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_IMPORTED_ONCE)
    return context


def _work(job: Job, folder: Path, threads: int, messages: Connection) -> None:
    """In a process of its own."""
    # Not of the terminal's group: an interrupt reaches the suite, which passes it on once, also
    # where it was told to ignore interrupts, as what runs in the background is.
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    log = folder / "runs" / f"{job.key}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as file:
        os.dup2(file.fileno(), sys.stdout.fileno())
        os.dup2(file.fileno(), sys.stderr.fileno())
    threading.Thread(target=_end_with_suite, daemon=True).start()
    first: tuple[float, float] | None = None
    last_sent = 0.0

    def progress(update: ProgressUpdate) -> None:
        nonlocal first, last_sent
        now, left = time.monotonic(), None
        if first is None:
            first = now, update.share
        elif update.share > first[1]:
            left = (1 - update.share) * (now - first[0]) / (update.share - first[1])
        if now - last_sent > _SECONDS_BETWEEN_MESSAGES:
            last_sent = now
            messages.send(("at", str(update), left))

    try:
        run_job(job, folder, threads=threads, progress=progress)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:  # whatever it is, it is told, and the other jobs go on
        traceback.print_exc()
        what = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
        messages.send(("failed", what if isinstance(error, InputError) else f"{what} (see {log})"))
        sys.exit(1)
    log.unlink(missing_ok=True)


def _end_with_suite() -> None:
    """Once the suite's process is gone nobody would see what this one does."""
    suite = multiprocessing.parent_process()
    assert suite is not None
    suite.join()
    os._exit(1)
