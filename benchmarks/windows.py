"""Validation figures of the ranker for several ways to choose its time windows and unit of time.

    scripts/bench windows      # about half an hour on two cores

The ranker without an encoder is trained for four epochs and ranks the validation events. All rules
are compared on CollegeMsg, and the chosen one with fixed seconds on all logs. TCLGRAPH_DATA names
the logs' folder. The first 100,000 events of MathOverflow are used. Finished runs are in
results/benchmarks/windows.json and are not repeated.

    python -m benchmarks.windows LOG RULE SEED
"""

import json
import sys
from collections.abc import Callable, Iterator
from statistics import mean
from typing import Any, TypeAlias
from unittest.mock import patch

import numpy as np
import torch

from benchmarks.logs import LOGS, locate
from benchmarks.measuring import RESULTS, in_own_process, write_result
from tclgraph.dependency_graph.graph import DependencyGraph
from tclgraph.evaluation.protocol import evaluate
from tclgraph.events.catalog import load
from tclgraph.events.split import Split
from tclgraph.features.time_scale import TimeScale, Windows
from tclgraph.models.ranker.model import Ranker

Rule: TypeAlias = Callable[[DependencyGraph], TimeScale]

SEEDS = (0, 1)
EPOCHS = 4
METRICS = ("MRR", "MR", "Hit@10")
MAX_EVENTS = 100_000
SPLITS = {
    "collegemsg": (0.6, 0.2),
    "wikipedia": (0.7, 0.15),
    "lastfm_head": (0.8, 0.1),
    "movielens_small": (0.7, 0.15),
    "mathoverflow": (0.7, 0.15),
}
"""Shares of training and validation; only CollegeMsg is filtered by `seen_only`."""
_UNIT_SHARE = 1e-5


def _positive_gaps(graph: DependencyGraph) -> Any:
    return graph.interval[graph.interval > 0]


def multiples(unit_share: float, *factors: float) -> Rule:
    """Return a rule that measures in mean gaps between consecutive events of a node."""

    def measure(graph: DependencyGraph) -> TimeScale:
        gap = float(_positive_gaps(graph).mean())
        return TimeScale(unit_share * gap, _windows(factor * gap for factor in factors))

    return measure


def quantiles(*shares: float) -> Rule:
    """Return a rule whose windows are quantiles of these gaps."""

    def measure(graph: DependencyGraph) -> TimeScale:
        gaps = _positive_gaps(graph)
        unit = _UNIT_SHARE * float(gaps.mean())
        return TimeScale(unit, _windows(float(np.quantile(gaps, share)) for share in shares))

    return measure


def shares_of_span(*shares: float) -> Rule:
    """Return a rule whose windows are shares of the time span of the training events."""

    def measure(graph: DependencyGraph) -> TimeScale:
        span = float(graph.time[-1] - graph.time[0])
        return TimeScale(5e-8 * span, _windows(share * span for share in shares))

    return measure


def _windows(lengths: Iterator[float]) -> Windows:
    short, medium, long = lengths
    return short, medium, long


SECONDS, CHOSEN = "hour, day, week", "1/10, 3, 30 mean gaps"
RULES: dict[str, Rule] = {
    SECONDS: lambda _: TimeScale(1.0, (3_600.0, 86_400.0, 604_800.0)),
    "1/5, 5, 30 mean gaps": multiples(_UNIT_SHARE, 1 / 5, 5, 30),
    "1/6, 4, 28 mean gaps": multiples(_UNIT_SHARE, 1 / 6, 4, 28),
    "1/10, 1, 10 mean gaps": multiples(_UNIT_SHARE, 1 / 10, 1, 10),
    "1/10, 1, 30 mean gaps": multiples(_UNIT_SHARE, 1 / 10, 1, 30),
    "1/10, 3, 30 mean gaps": multiples(_UNIT_SHARE, 1 / 10, 3, 30),
    "1/30, 1, 30 mean gaps": multiples(_UNIT_SHARE, 1 / 30, 1, 30),
    "1/30, 5, 30 mean gaps": multiples(_UNIT_SHARE, 1 / 30, 5, 30),
    "1/100, 1, 100 mean gaps": multiples(_UNIT_SHARE, 1 / 100, 1, 100),
    "1/30, 1, 30 mean gaps, unit 1e-4": multiples(1e-4, 1 / 30, 1, 30),
    "1/30, 1, 30 mean gaps, unit 1e-3": multiples(1e-3, 1 / 30, 1, 30),
    "quantiles 0.5, 0.75, 0.95": quantiles(0.5, 0.75, 0.95),
    "quantiles 0.75, 0.95, 0.99": quantiles(0.75, 0.95, 0.99),
    "1/1000, 1/50, 1/6 of the span": shares_of_span(1 / 1000, 1 / 50, 1 / 6),
}
"""Rules by name; the unit is a hundred-thousandth of the mean gap unless the name says another."""


def rules_of(log: str) -> list[str]:
    """Return the rules that are compared on a log."""
    return list(RULES) if log == "collegemsg" else [SECONDS, CHOSEN]


def read(log: str) -> Split:
    """Return the split of a log or, if it is long, of its beginning."""
    stream = load(locate(log), kind=LOGS[log].kind, notify=lambda _: None)
    if log == "mathoverflow":
        stream = stream[:MAX_EVENTS]
    return stream.split(*SPLITS[log], seen_only=log == "collegemsg")


def validate(log: str, rule: str, seed: int) -> dict[str, float]:
    """Train on one thread, and return the metrics of the validation events."""
    torch.set_num_threads(1)
    with patch.object(TimeScale, "measure", RULES[rule]):
        split = read(log)
        model = Ranker(encoder=None, epochs=EPOCHS, threads=1, seed=seed).fit(split)
    report = evaluate(model, split, part="valid", with_heuristics=False)
    return {metric: report[metric] for metric in METRICS}


def markdown(runs: list[dict[str, Any]]) -> str:
    """Return the table of means over seeds."""
    lines = ["| log | windows | seeds | MRR | MR | Hit@10 |", "|---|---|---|---|---|---|"]
    for log in SPLITS:
        for rule in RULES:
            chosen = [run for run in runs if (run["log"], run["rule"]) == (log, rule)]
            if chosen:
                mrr, mr, hit = (mean(run[metric] for run in chosen) for metric in METRICS)
                lines.append(
                    f"| {log} | {rule} | {len(chosen)} | {mrr:.4f} | {mr:.2f} | {hit:.2f} |"
                )
    return "# Time windows of the ranker, validation events\n\n" + "\n".join(lines) + "\n"


def main() -> None:
    path = RESULTS / "windows.json"
    runs = json.loads(path.read_text())["runs"] if path.exists() else []
    finished = {(run["log"], run["rule"], run["seed"]) for run in runs}
    for log in SPLITS:
        for rule in rules_of(log) if locate(log) else []:
            for seed in SEEDS:
                if (log, rule, seed) not in finished:
                    figures = in_own_process("benchmarks.windows", log, rule, str(seed))
                    runs.append({"log": log, "rule": rule, "seed": seed, **figures})
                    write(runs)
    write(runs)


def write(runs: list[dict[str, Any]]) -> None:
    """Write the figures of all runs, and their table."""
    write_result("windows", {"command": "scripts/bench windows", "epochs": EPOCHS, "runs": runs})
    (RESULTS / "windows.md").write_text(markdown(runs))


if __name__ == "__main__":
    match sys.argv[1:]:
        case [log_name, rule_name, seed_text]:
            print(json.dumps(validate(log_name, rule_name, int(seed_text))))
        case _:
            main()
