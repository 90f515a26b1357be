"""Speed of ranking blocks of events, compared with single events, for every heuristic.

Both follow the ranking protocol over 1,000 targets: score all targets, rank the true one, reveal
the event. The benchmark also compares `tclgraph --help` with a Python process that does nothing.
"""

import subprocess
import sys
import time

import numpy as np

from benchmarks.measuring import write_result
from tclgraph.evaluation.protocol import evaluate
from tclgraph.evaluation.ranking import rank
from tclgraph.events.split import Split
from tclgraph.events.synthetic import SyntheticConfig, synthesize
from tclgraph.heuristics.rules import heuristics_for
from tclgraph.models.interface import Model

STREAM = SyntheticConfig(events=100_000, sources=2_000, targets=1_000, kind="one-mode")
NUM_SINGLE = 1_000


def block_rate(model: Model, split: Split) -> float:
    report = evaluate(model, split)
    return report.num_events / report.seconds


def single_rate(model: Model, split: Split) -> float:
    model.forget()
    model.observe(split.events[: split.valid_end])
    started = time.perf_counter()
    for event in range(split.valid_end, split.valid_end + NUM_SINGLE):
        block = split.events[event : event + 1]
        rank(model.score(block.source, block.time), block.target)
        model.observe(block)
    return NUM_SINGLE / (time.perf_counter() - started)


def seconds_to_run(*command: str) -> float:
    def once() -> float:
        started = time.perf_counter()
        subprocess.run([sys.executable, *command], check=True, capture_output=True)
        return time.perf_counter() - started

    once()  # compiles bytecode and fills the disk cache
    return round(float(np.median([once() for _ in range(9)])), 3)


def main() -> None:
    split = synthesize(STREAM).split(0.7, 0.15)
    results = {}
    for heuristic in heuristics_for("one-mode"):
        model = heuristic().fit(split)
        block, single = block_rate(model, split), single_rate(model, split)
        results[heuristic.name] = {
            "events_per_second": round(block),
            "one_at_a_time": round(single),
            "times_faster": round(block / single, 1),
        }
    write_result(
        "ranking",
        {
            "test_events": split.sizes["test"],
            "targets": len(np.unique(split.events.target)),
            "heuristics": results,
            "help_seconds": seconds_to_run("-m", "tclgraph.cli.main", "--help"),
            "bare_python_seconds": seconds_to_run("-c", "pass"),
        },
    )


if __name__ == "__main__":
    main()
