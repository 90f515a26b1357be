"""Validation figures of the ranker before and after bounds on its histories.

    scripts/bench quality       # about 20 minutes on two cores

The change in speed came with two bounds: pairs with a source's latest 512 neighbors only, and a
sample of pairs in training (see `features/latest_kernels`). All other features are the same. Here
the ranker without an encoder is trained for four epochs with both packages (see `benchmarks.speed`
for how the package before is unpacked) and ranks the validation events. A metric is unchanged if
its mean over seeds moves by at most one deviation over the seeds before. TCLGRAPH_DATA names the
folder of the logs; of MathOverflow the first 100,000 events are used.

    python -m benchmarks.quality LOG SEED
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import torch

from benchmarks.logs import LOGS, TRAIN, VALID, read
from benchmarks.measuring import RESULTS, ROOT, in_own_process, write_result
from benchmarks.speed import BEFORE, available_logs, package_before
from tclgraph import registry
from tclgraph.evaluation.protocol import evaluate
from tclgraph.events.split import Split

CHOSEN = ("collegemsg", "wikipedia", "lastfm_head", "mathoverflow")
SEEDS = (0, 1, 2)
EPOCHS = 4
METRICS = ("MRR", "MR")
MAX_EVENTS = 100_000
NUM_AT_ONCE = 2


def shortened(log: str) -> Split:
    """Return the split of a log or, if it is long, of its beginning."""
    split = read(log)
    if LOGS[log].seen_only or len(split.events) <= MAX_EVENTS:
        return split
    return split.events[:MAX_EVENTS].split(TRAIN, VALID)


def validate(log: str, seed: int) -> dict[str, float]:
    """Train on one thread, and return the metrics of the validation events."""
    torch.set_num_threads(1)
    split = shortened(log)
    model = registry.build("ranker", encoder=None, epochs=EPOCHS, seed=seed).fit(split)
    report = evaluate(model, split, part="valid", with_heuristics=False)
    return {metric: report[metric] for metric in METRICS}


def compare(figures: dict[str, list[dict[str, float]]]) -> dict[str, Any]:
    """Return means and deviations over seeds, and whether each metric is unchanged."""
    result: dict[str, Any] = {}
    for metric in METRICS:
        before, after = ([run[metric] for run in figures[side]] for side in ("before", "after"))
        deviation = stdev(before)
        result[metric] = {
            "before": mean(before),
            "after": mean(after),
            "deviation_before": deviation,
            "deviation_after": stdev(after),
            "is_unchanged": abs(mean(after) - mean(before)) <= deviation,
        }
    return result


def markdown(results: dict[str, Any]) -> str:
    """Return the table of all logs."""
    lines = [
        f"| log | metric | before, {len(SEEDS)} seeds | after | unchanged |",
        "|---|---|---|---|---|",
    ]
    for log, metrics in results.items():
        for metric, figures in metrics.items():
            decimals = 4 if metric == "MRR" else 2
            before, after = (
                f"{figures[side]:.{decimals}f} ± {figures[f'deviation_{side}']:.{decimals}f}"
                for side in ("before", "after")
            )
            verdict = "yes" if figures["is_unchanged"] else "**no**"
            lines.append(f"| {log} | {metric} | {before} | {after} | {verdict} |")
    return "# Quality before and after\n\n" + "\n".join(lines) + "\n"


def main() -> None:
    logs = [log for log in available_logs() if log in CHOSEN]
    with package_before() as before, ThreadPoolExecutor(NUM_AT_ONCE) as pool:
        packages: dict[str, Path] = {"before": before, "after": ROOT / "src"}
        jobs = {
            (log, side, seed): pool.submit(
                in_own_process, "benchmarks.quality", log, str(seed), package=package
            )
            for log in logs
            for seed in SEEDS
            for side, package in packages.items()
        }
        runs = {}
        for number, (key, job) in enumerate(jobs.items(), start=1):
            runs[key] = job.result()
            print(f"[{number}/{len(jobs)}] {key}: {runs[key]}", file=sys.stderr, flush=True)
    results = {
        log: compare({side: [runs[log, side, seed] for seed in SEEDS] for side in packages})
        for log in logs
    }
    write_result(
        "quality",
        {"commit_before": BEFORE, "epochs": EPOCHS, "seeds": list(SEEDS), "logs": results},
    )
    (RESULTS / "quality.md").write_text(markdown(results))
    print(markdown(results))


if __name__ == "__main__":
    match sys.argv[1:]:
        case []:
            main()
        case [log_name, seed_text]:
            print(json.dumps(validate(log_name, int(seed_text))))
