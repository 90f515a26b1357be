"""One measurement in a process of its own, so that time and memory belong to it alone."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tclgraph import __version__
from tclgraph.environment import environment, peak_megabytes

RESULTS = Path(__file__).parent.parent / "results" / "benchmarks"


def in_own_process(module: str, *words: str) -> dict[str, float]:
    """Run a benchmark module with words, for which it prints what `measured` returns.

    The caller must stay small: a new process starts with its parent's peak of memory.
    """
    command = [sys.executable, "-m", module, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def measured(job: Callable[[], Any]) -> dict[str, float]:
    """Seconds, and the peak memory of this process so far."""
    started = time.perf_counter()
    job()
    seconds = time.perf_counter() - started
    return {"seconds": round(seconds, 3), "peak_megabytes": peak_megabytes()}


def write_result(name: str, found: dict[str, Any]) -> None:
    RESULTS.mkdir(parents=True, exist_ok=True)
    told = {"command": "scripts/bench", "version": __version__, "machine": environment(), **found}
    text = json.dumps(told, indent=2) + "\n"
    (RESULTS / f"{name}.json").write_text(text)
    print(text)
