"""TCL with several seeds on one log, beside the floors and the paper's figures.

    python -m tclgraph.experiments.seeds collegemsg --graph bipartite --seen-only --seeds 5

writes results/tcl/<name>.json and the learning curve as .png and .svg. Runs are kept under
runs/results, and a run that was interrupted is resumed.
"""

import json
import os
import statistics
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from tclgraph import __version__
from tclgraph.environment import environment
from tclgraph.evaluation.floors import floors_for
from tclgraph.evaluation.protocol import evaluate
from tclgraph.events.catalog import CATALOG, find, load
from tclgraph.events.split import Split, parse_shares
from tclgraph.events.stream import check_graph
from tclgraph.events.writers import replacing
from tclgraph.experiments.plots import draw_learning_curves
from tclgraph.models.tcl.model import TCL
from tclgraph.training.run_folder import RunFolder

PAPER: dict[str, dict[str, tuple[float, float]]] = {
    "collegemsg": {"MR": (137.57, 1.70), "Hit@10": (45.53, 0.37)},
    "wikipedia": {"MR": (54.33, 1.05), "Hit@10": (81.17, 0.16)},
}
"""Table 2 of the paper, mean and deviation."""
SHOWN = ("MR", "MRR", "Hit@10")


def open_split(log: str, graph: str | None, *, seen_only: bool) -> Split:
    stream = load(log, graph=None if graph is None else check_graph(graph), features=())
    return stream.split(*parse_shares(CATALOG[log].split), seen_only=seen_only)


def train_one(
    seed: int, log: str, graph: str | None, seen_only: bool, preset: str, folder: str
) -> dict[str, Any]:
    """One seed, from whichever point an earlier attempt reached."""
    split = open_split(log, graph, seen_only=seen_only)
    model = TCL(preset, seed=seed, threads=1)
    model.fit(split, run=folder, resume=True, watch=lambda _: None)
    report = evaluate(model, split, beside_floors=False)
    curve = RunFolder(folder).read_metrics()
    best = max(curve, key=lambda entry: entry["valid"][model.config.choose_by])
    return {"seed": seed, "best_epoch": best["epoch"], "test": report.to_json(), "curve": curve}


def summary(runs: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Mean and sample deviation over seeds, of test metrics."""
    found = {}
    for metric in runs[0]["test"]["metrics"]:
        figures = [run["test"]["metrics"][metric] for run in runs]
        found[metric] = {
            "mean": statistics.fmean(figures),
            "deviation": statistics.stdev(figures) if len(figures) > 1 else 0.0,
        }
    return found


def main(
    log: Annotated[str, typer.Argument(help="A catalogue name.")],
    graph: Annotated[Optional[str], typer.Option(help="bipartite or one-mode.")] = None,
    seen_only: Annotated[bool, typer.Option("--seen-only", help="As the authors do.")] = False,
    preset: Annotated[str, typer.Option(help="Of TCL.")] = "paper",
    seeds: Annotated[int, typer.Option(help="How many, counted from 0.")] = 5,
    name: Annotated[Optional[str], typer.Option(help="Of the result; default: the log's.")] = None,
) -> None:
    """Train and test every seed, as many at a time as there are cores, and write the result."""
    name = name or log
    folders = [f"runs/results/{name}-{preset}-{seed}" for seed in range(seeds)]
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        jobs = [
            pool.submit(train_one, seed, log, graph, seen_only, preset, folder)
            for seed, folder in enumerate(folders)
        ]
        runs = []
        for job in jobs:
            runs.append(job.result())
            told = runs[-1]["test"]["metrics"]
            print(f"seed {runs[-1]['seed']}:", {one: round(told[one], 4) for one in SHOWN})
    split = open_split(log, graph, seen_only=seen_only)
    floors = {
        part: [
            evaluate(floor().fit(split), split, part=part).to_json()
            for floor in floors_for(split.events.graph)
        ]
        for part in ("valid", "test")
    }
    path = find(CATALOG[log])
    result = {
        "command": "scripts/results tcl",
        "version": __version__,
        "machine": environment(),
        "data": log,
        "file": path.name if path else "",
        "graph": split.events.graph,
        "split": str(split),
        "parts": split.sizes,
        "update": "streaming",
        "preset": preset,
        "config": RunFolder(folders[0]).read_config(),
        "seeds": list(range(seeds)),
        "summary": summary(runs),
        "paper": PAPER.get(log),
        "floors": floors,
        "runs": runs,
    }
    target = Path("results/tcl") / f"{name}.json"
    with replacing(target) as temporary:
        temporary.write_text(json.dumps(result, indent=1) + "\n")
    draw_learning_curves(result, target.with_suffix(""))
    print(target)


if __name__ == "__main__":
    typer.run(main)
