"""Speed before and after a change, beside PyG's TGN, and cost early and late in long streams.

    scripts/bench speed                 # all three parts, about 50 minutes
    scripts/bench speed before-after    # or pyg, or flat

*Before* is the package as of the commit `BEFORE`, which git unpacks into a temporary folder. Every
figure is measured in a process of its own. Before and after take turns, twice each, and the faster
turn of each counts, so that a slow minute of the machine matters less. Compiling is not counted:
kernels are compiled for both packages first, and every process starts with a few batches that do
not count. Run this on an idle machine, with TCLGRAPH_DATA naming the folder of the logs.

A part writes its figures into results/benchmarks/speed.json and leaves the other parts there as
they are; speed.md beside it has the tables.
"""

import io
import json
import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.measuring import RESULTS, ROOT, in_own_process, write_result
from benchmarks.speed_tables import markdown
from tclgraph.environment import environment

BEFORE = "3db5c2c541cc320e998f706f47be17eaf6b51719"
"""Commit of the package before the change."""
LOGS = ("collegemsg", "wikipedia", "lastfm_head", "movielens_small", "mathoverflow")
TRAINED = ("ranker_without_encoder", "ranker", "tcl")
POOLED = "tcl_negative_pool_256"
RANKED = ("tgn", "tgat")
LOGS_OF_RANKED = ("collegemsg", "wikipedia")
SHAPES = ("lastfm", "reddit", "mathoverflow")
SHAPE_OF_CONTRAST = "lastfm"
"""Shape for which the flat part also measures the ranker before the change."""

Figures = dict[str, Any]


def threads_on(log: str) -> tuple[int, ...]:
    """Return the numbers of threads to measure with."""
    return (1, 2) if log == "collegemsg" else (2,)


@contextmanager
def package_before() -> Iterator[Path]:
    """Unpack the package before the change; yield the folder that contains it."""
    command = ["git", "archive", "--format=tar", BEFORE, "src"]
    archive = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    with TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(archive)) as members:
            members.extractall(folder, filter="data")
        yield Path(folder) / "src"


def summary(figures: Figures) -> str:
    """Return the main figures of a measurement, for people who wait."""
    rates = [
        f"{task} {figures[task]['events_per_second']:,.0f} events/s"
        for task in ("training", "ranking")
        if task in figures
    ]
    ratios = [f"{name} {cost['ratio']:.2f}" for name, cost in figures.get("costs", {}).items()]
    return ", ".join([*rates, *ratios]) or figures.get("error", "done")


class Progress:
    """Prints the number of finished measurements and the time left."""

    def __init__(self, num_measurements: int) -> None:
        self._total = num_measurements
        self._num_done = 0
        self._started = time.monotonic()

    def measure(self, module: str, *arguments: str, package: Path = ROOT / "src") -> Figures:
        """Measure in a process of its own; a failure is reported and ends only this measurement."""
        try:
            figures = in_own_process(module, *arguments, package=package)
        except subprocess.CalledProcessError as error:
            figures = {"error": f"exit status {error.returncode}; the reason is on stderr"}
        self._num_done += 1
        minutes = (time.monotonic() - self._started) / 60
        left = minutes / self._num_done * (self._total - self._num_done)
        print(
            f"[{self._num_done}/{self._total}] {module} {' '.join(arguments)}: "
            f"{summary(figures)}; {minutes:.1f} min, about {left:.0f} min left in this part",
            file=sys.stderr,
            flush=True,
        )
        return figures


def faster(turns: list[Figures]) -> Figures:
    """Return the higher rate of each task and the highest memory; a failure counts as a failure."""
    failed = [figures for figures in turns if "error" in figures]
    if failed:
        return failed[0]
    tasks = [task for task in ("training", "ranking") if task in turns[0]]
    highest = {
        name: max(figures[name] for figures in turns) for name in turns[0] if name not in tasks
    }
    rates: Figures = {
        task: max((figures[task] for figures in turns), key=lambda rate: rate["events_per_second"])
        for task in tasks
    }
    return {**rates, **highest}


def before_after(logs: list[str]) -> Figures:
    """Measure training and ranking with both packages."""
    cases = [
        ("train", log, variant, threads)
        for log in logs
        for threads in threads_on(log)
        for variant in TRAINED
    ]
    cases += [("rank", log, name, 2) for log in logs if log in LOGS_OF_RANKED for name in RANKED]
    has_dense = "collegemsg" in logs
    if has_dense:
        cases += [("train", "collegemsg_bipartite", name, 2) for name in ("tcl", POOLED)]
    after = ROOT / "src"
    results = []
    with package_before() as before:
        progress = Progress(4 * len(cases) + 2 + 2 * has_dense)
        for package in (before, after):
            progress.measure("benchmarks.model_speed", "compile", package=package)
        for task, log, variant, threads in cases:
            arguments = (task, log, variant, str(threads))
            module = "benchmarks.model_speed"
            options = ("complete-memory",) if task == "train" else ()
            turns: dict[Path, list[Figures]] = {before: [], after: []}
            for package in (before, after, after, before):
                extra = options if package == after else ()
                turns[package].append(progress.measure(module, *arguments, *extra, package=package))
            result = {"task": task, "log": log, "variant": variant, "threads": threads}
            rates = {"before": faster(turns[before]), "after": faster(turns[after])}
            results.append({**result, **rates})
        dense = (
            faster([progress.measure("benchmarks.dense_tcl") for _ in range(2)])
            if has_dense
            else None
        )
    return {"commit_before": BEFORE, "cases": results, "padded_dense": dense}


def pyg(logs: list[str]) -> Figures:
    """Measure training and ranking of PyG's TGN."""
    cases = [(log, threads) for log in logs for threads in threads_on(log)]
    progress = Progress(2 * len(cases))
    results = []
    for log, threads in cases:
        turns = [progress.measure("benchmarks.pyg_tgn", log, str(threads)) for _ in range(2)]
        results.append({"log": log, "threads": threads, **faster(turns)})
    return {"cases": results}


def flat(_: list[str]) -> Figures:
    """Measure the cost per event early and late in long streams, on one thread."""
    cases = [(shape, variant) for shape in SHAPES for variant in TRAINED]
    contrast = (SHAPE_OF_CONTRAST, "ranker_without_encoder")
    module = "benchmarks.flat_cost"
    progress = Progress(len(cases) + 1)
    results = [
        {"shape": shape, "variant": variant, **progress.measure(module, shape, variant, "1")}
        for shape, variant in cases
    ]
    with package_before() as before:
        shape, variant = contrast
        figures = progress.measure(module, shape, variant, "1", package=before)
    return {"cases": results, "before": {"shape": shape, "variant": variant, **figures}}


PARTS: dict[str, Callable[[list[str]], Figures]] = {
    "before-after": before_after,
    "pyg": pyg,
    "flat": flat,
}


def available_logs() -> list[str]:
    """Return the logs that this machine has, and name the others on stderr."""
    # In another process, because reading logs needs memory; see `in_own_process`.
    paths = in_own_process("benchmarks.logs")
    for log in LOGS:
        if not paths[log]:
            print(f"{log} is not on this machine and is left out", file=sys.stderr)
    return [log for log in LOGS if paths[log]]


def main(chosen: list[str]) -> None:
    unknown = [part for part in chosen if part not in PARTS]
    if unknown:
        sys.exit(f"unknown part {unknown[0]!r}; the parts are {', '.join(PARTS)}")
    path = RESULTS / "speed.json"
    parts: Figures = json.loads(path.read_text())["parts"] if path.exists() else {}
    logs = available_logs()
    for part in chosen or PARTS:
        started = time.monotonic()
        load = os.getloadavg()[1]  # of the last five minutes
        figures = PARTS[part](logs)
        parts[part] = {
            "finished": datetime.now(UTC).isoformat(timespec="minutes"),
            "minutes": round((time.monotonic() - started) / 60, 1),
            "load_average_at_start": round(load, 2),
            "machine": environment(),
            **figures,
        }
        write_result("speed", {"parts": parts})
        (RESULTS / "speed.md").write_text(markdown(parts))
    print(markdown(parts))


if __name__ == "__main__":
    main(sys.argv[1:])
