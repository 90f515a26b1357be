"""Validation figures of the ranker before and after bounds on its histories.

    scripts/bench quality                           # about 40 minutes on two cores
    scripts/bench quality ranker_without_encoder    # or ranker

The change in speed came with four bounds: pairs with a source's latest 512 neighbors only, a sample
of pairs in training (see `features/latest_kernels`), 128 events with the latest neighbor whose next
events count, and fewer choices in the last step of a walk. All other features are the same. With an
encoder, the mean source vector is now that of the events that the explore head scores. Here the
ranker is trained for four epochs with both packages (see `benchmarks.speed` for how the package
before is unpacked), without and with its encoder, and ranks the validation events. A metric is
unchanged if its mean over seeds moves by at most one deviation over the seeds before; else it is
better or worse. TCLGRAPH_DATA names the logs' folder. The first 100,000 events of MathOverflow are
used. A variant writes its figures into results/benchmarks/quality.json and leaves the other there.

    python -m benchmarks.quality VARIANT LOG SEED
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
from benchmarks.model_speed import VARIANTS
from benchmarks.speed import BEFORE, available_logs, package_before
from tclgraph import registry
from tclgraph.evaluation.metrics import LOWER_IS_BETTER
from tclgraph.evaluation.protocol import evaluate
from tclgraph.events.split import Split

CHOSEN = {
    "ranker_without_encoder": ("collegemsg", "wikipedia", "lastfm_head", "mathoverflow"),
    # Where most pairs are new, as in mathoverflow, the mean source vector is nearly the same.
    "ranker": ("collegemsg", "wikipedia", "lastfm_head"),
}
"""Variants of `benchmarks.model_speed`, and the logs that each is compared on."""
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


def validate(variant: str, log: str, seed: int) -> dict[str, float]:
    """Train on one thread, and return the metrics of the validation events."""
    torch.set_num_threads(1)
    split = shortened(log)
    name, settings = VARIANTS[variant]
    model = registry.build(name, epochs=EPOCHS, seed=seed, **settings).fit(split)
    report = evaluate(model, split, part="valid", with_heuristics=False)
    return {metric: report[metric] for metric in METRICS}


def compare(figures: dict[str, list[dict[str, float]]]) -> dict[str, Any]:
    """Return means and deviations over seeds, and a verdict on each metric."""
    result: dict[str, Any] = {}
    for metric in METRICS:
        before, after = ([run[metric] for run in figures[side]] for side in ("before", "after"))
        result[metric] = {
            "before": mean(before),
            "after": mean(after),
            "deviation_before": stdev(before),
            "deviation_after": stdev(after),
        }
        result[metric]["verdict"] = verdict(metric, result[metric])
    return result


def verdict(metric: str, figures: dict[str, float]) -> str:
    """Return whether a metric is unchanged, better or worse."""
    change = figures["after"] - figures["before"]
    if abs(change) <= figures["deviation_before"]:
        return "unchanged"
    return "better" if (change < 0) == (metric in LOWER_IS_BETTER) else "**worse**"


def markdown(variants: dict[str, dict[str, Any]]) -> str:
    """Return the table of all variants and logs."""
    lines = [
        f"| variant | log | metric | before, {len(SEEDS)} seeds | after | verdict |",
        "|---|---|---|---|---|---|",
    ]
    for variant, logs in variants.items():
        for log, metrics in logs.items():
            lines += [f"| {variant} | {log} | {row(*item)}" for item in metrics.items()]
    return "# Quality before and after\n\n" + "\n".join(lines) + "\n"


def row(metric: str, figures: dict[str, Any]) -> str:
    """Return the cells of a metric."""
    decimals = 4 if metric == "MRR" else 2
    before, after = (
        f"{figures[side]:.{decimals}f} ± {figures[f'deviation_{side}']:.{decimals}f}"
        for side in ("before", "after")
    )
    return f"{metric} | {before} | {after} | {figures['verdict']} |"


def measure(variant: str) -> dict[str, Any]:
    """Train a variant with both packages on its logs, and compare."""
    logs = [log for log in available_logs() if log in CHOSEN[variant]]
    with package_before() as before, ThreadPoolExecutor(NUM_AT_ONCE) as pool:
        packages: dict[str, Path] = {"before": before, "after": ROOT / "src"}
        jobs = {
            (log, side, seed): pool.submit(
                in_own_process, "benchmarks.quality", variant, log, str(seed), package=package
            )
            for log in logs
            for seed in SEEDS
            for side, package in packages.items()
        }
        runs = {}
        for number, (key, job) in enumerate(jobs.items(), start=1):
            runs[key] = job.result()
            print(f"[{number}/{len(jobs)}] {key}: {runs[key]}", file=sys.stderr, flush=True)
    return {
        log: compare({side: [runs[log, side, seed] for seed in SEEDS] for side in packages})
        for log in logs
    }


def main(chosen: list[str]) -> None:
    unknown = [variant for variant in chosen if variant not in CHOSEN]
    if unknown:
        sys.exit(f"unknown variant {unknown[0]!r}; the variants are {', '.join(CHOSEN)}")
    path = RESULTS / "quality.json"
    variants = json.loads(path.read_text())["variants"] if path.exists() else {}
    for variant in chosen or CHOSEN:
        variants[variant] = measure(variant)
        figures = {"commit_before": BEFORE, "epochs": EPOCHS, "seeds": list(SEEDS)}
        write_result("quality", {**figures, "variants": variants})
        (RESULTS / "quality.md").write_text(markdown(variants))
    print(markdown(variants))


if __name__ == "__main__":
    match sys.argv[1:]:
        case [variant_name, log_name, seed_text]:
            print(json.dumps(validate(variant_name, log_name, int(seed_text))))
        case chosen_variants:
            main(chosen_variants)
