"""The process that runs one job, and the messages that it sends to the suite.

A job has a process of its own, so that it shares no memory with others, and a failure ends only
this job. An interrupted job keeps its checkpoint and resumes from it the next time. A process
ends by itself when the suite's process is gone.
"""

import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.process import BaseProcess
from pathlib import Path

from tclgraph.errors import InputError
from tclgraph.jobs.job import Job
from tclgraph.jobs.run import run_job
from tclgraph.training.progress import ProgressCallback, ProgressUpdate

SECONDS_BETWEEN_MESSAGES = 0.5
# Importing these takes longer than a small job. The last are imported by torch's optimizers and by
# numba, when it loads the first compiled loop.
_PRELOADED_MODULES = [
    "tclgraph.jobs.run",
    "tclgraph.models.tcl.model",
    "tclgraph.models.ranker.model",
    "torch._dynamo",
    "numba.np.npyimpl",
    "scipy.linalg",
]


@dataclass(frozen=True, slots=True)
class ProgressMessage:
    """How far a job is."""

    text: str
    seconds_left: float | None
    """Time that the job expects to need; None before it can tell."""


@dataclass(frozen=True, slots=True)
class FailureMessage:
    """Why a job has failed."""

    error: str


def start_worker(job: Job, folder: Path, threads: int) -> tuple[BaseProcess, Connection]:
    """Start a job in a process of its own; return the process and where its messages arrive."""
    context = _context()
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(job, folder, threads, sender), daemon=True)
    process.start()
    # Only the new process holds the sending end now, so that its end closes the pipe.
    sender.close()
    return process, receiver


def _context() -> ForkServerContext | SpawnContext:
    """Return the start method: a fork server with everything imported on Linux, else spawn.

    On macOS the system libraries are not safe to use after a fork.
    """
    if sys.platform != "linux":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED_MODULES)
    return context


def _work(job: Job, folder: Path, threads: int, messages: Connection) -> None:
    """Run a job in this process, with its output in a log file that a success removes."""
    # A session of its own: Ctrl-C reaches only the suite, which passes the interrupt on once. The
    # handler is set because a process that was started in the background ignores interrupts.
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    log = folder / "runs" / f"{job.key}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as file:
        os.dup2(file.fileno(), sys.stdout.fileno())
        os.dup2(file.fileno(), sys.stderr.fileno())
    threading.Thread(target=_exit_with_suite, daemon=True).start()
    try:
        run_job(job, folder, threads=threads, progress=_sender(messages))
    except KeyboardInterrupt:
        sys.exit(130)
    except InputError as error:
        traceback.print_exc()
        messages.send(FailureMessage(str(error)))
        sys.exit(1)
    except Exception as error:  # any failure is reported, and the other jobs continue
        traceback.print_exc()
        messages.send(FailureMessage(f"{type(error).__name__}: {error} (see {log})"))
        sys.exit(1)
    log.unlink(missing_ok=True)


def _sender(messages: Connection) -> ProgressCallback:
    """Return a progress callback that sends messages, with the time left by the rate so far."""
    first: tuple[float, float] | None = None
    last_sent = 0.0

    def progress(update: ProgressUpdate) -> None:
        nonlocal first, last_sent
        now, seconds_left = time.monotonic(), None
        if first is None:
            first = now, update.share
        elif update.share > first[1]:
            seconds_left = (1 - update.share) * (now - first[0]) / (update.share - first[1])
        if now - last_sent > SECONDS_BETWEEN_MESSAGES:
            last_sent = now
            messages.send(ProgressMessage(str(update), seconds_left))

    return progress


def _exit_with_suite() -> None:
    """End this process when the suite's process ends, even if that one is killed."""
    suite = multiprocessing.parent_process()
    assert suite is not None
    suite.join()
    os._exit(1)
