"""Measurements in separate processes, so that time and memory belong to one measurement only."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tclgraph import __version__
from tclgraph.environment import environment, peak_megabytes

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results" / "benchmarks"


def in_own_process(module: str, *arguments: str, package: Path | None = None) -> dict[str, Any]:
    """Run a benchmark module in a new process, and return the JSON object that it prints last.

    `package` is the folder that contains the package to measure; None means the installed one. The
    calling process must use little memory: the peak memory of a new process starts at the peak of
    its parent.
    """
    command = [sys.executable, "-m", module, *arguments]
    variables = {**os.environ, "PYTHONPATH": str(package)} if package else None
    process = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT, env=variables
    )
    result: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return result


def measured(job: Callable[[], Any]) -> dict[str, float]:
    """Run a job; return its duration and the peak memory of this process so far."""
    started = time.perf_counter()
    job()
    seconds = time.perf_counter() - started
    return {"seconds": round(seconds, 3), "peak_megabytes": peak_megabytes()}


def write_result(name: str, figures: dict[str, Any]) -> None:
    """Write figures to results/benchmarks, together with the version and the machine."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    context = {"command": "scripts/bench", "version": __version__, "machine": environment()}
    text = json.dumps({**context, **figures}, indent=2) + "\n"
    (RESULTS / f"{name}.json").write_text(text)
    print(text)
