"""TCL with several seeds on one log, beside the floors and the paper's figures.

    python -m tclgraph.experiments.seeds collegemsg --graph bipartite --seen-only --seeds 5

writes results/tcl/<name>.json and the learning curve as .png and .svg. Runs are kept under
runs/results, and a run that was interrupted is resumed.
"""

import json
import os
import statistics
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any, Literal, Optional

import typer

from tclgraph import __version__
from tclgraph.environment import environment, peak_megabytes
from tclgraph.evaluation.floors import floors_for
from tclgraph.evaluation.protocol import evaluate
from tclgraph.events.split import Split
from tclgraph.events.writers import replacing
from tclgraph.experiments.data import Data
from tclgraph.experiments.paper import published
from tclgraph.experiments.plots import draw_learning_curves
from tclgraph.models import registry
from tclgraph.training.learned import LearnedModel
from tclgraph.training.loop import best_epoch
from tclgraph.training.run_folder import RunFolder

SHOWN = ("MR", "MRR", "Hit@10")
PARTS: tuple[Literal["valid"], Literal["test"]] = ("valid", "test")


def train_one(
    data: Data, name: str, settings: dict[str, Any], folder: str, part: Literal["valid", "test"]
) -> dict[str, Any]:
    """One run, from whichever point an earlier attempt reached, and what it does on a part."""
    split = data.open()
    model = registry.build(name, threads=1, **settings)
    assert isinstance(model, LearnedModel)
    model.fit(split, run=folder, resume=True, watch=lambda _: None)
    report = evaluate(model, split, part=part, beside_floors=False)
    curve = RunFolder(folder).read_metrics()
    best = best_epoch(curve, model.config.choose_by)
    return {
        "seed": model.config.seed,
        "seconds": round(sum(entry["seconds"] for entry in curve), 1),
        "peak_megabytes": peak_megabytes(),
        "best_epoch": best,
        "seconds_to_best": round(
            sum(split.train_end / entry["events_per_second"] for entry in curve[:best]), 1
        ),
        part: report.to_json(),
        "curve": curve,
    }


def several(jobs: Sequence[tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
    """`train_one` of each, in order, as many at a time as there are cores."""
    # A process for each, so that peaks of memory are each one's own.
    with ProcessPoolExecutor(
        os.cpu_count(), mp_context=get_context("spawn"), max_tasks_per_child=1
    ) as pool:
        for job in [pool.submit(train_one, *words) for words in jobs]:
            yield job.result()


def summary(reports: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Mean and sample deviation of each metric."""
    found = {}
    for metric in reports[0]:
        figures = [report[metric] for report in reports]
        found[metric] = {
            "mean": statistics.fmean(figures),
            "deviation": statistics.stdev(figures) if len(figures) > 1 else 0.0,
        }
    return found


def floors_of(split: Split) -> dict[str, list[dict[str, Any]]]:
    """What every floor does on valid and on test."""
    return {
        part: [
            evaluate(floor().fit(split), split, part=part).to_json()
            for floor in floors_for(split.events.graph)
        ]
        for part in PARTS
    }


def write_result(name: str, result: dict[str, Any], command: str = "scripts/results tcl") -> Path:
    """Into results, with what made it."""
    target = Path("results") / f"{name}.json"
    told = {
        "command": command,
        "version": __version__,
        "machine": environment(),
        **result,
    }
    with replacing(target) as temporary:
        temporary.write_text(json.dumps(told, indent=1) + "\n")
    return target


def main(
    log: Annotated[str, typer.Argument(help="A catalogue name or a file.")],
    graph: Annotated[Optional[str], typer.Option(help="bipartite or one-mode.")] = None,
    split: Annotated[Optional[str], typer.Option(help="Like 80/10/10; default: known.")] = None,
    seen_only: Annotated[bool, typer.Option("--seen-only", help="As the authors do.")] = False,
    preset: Annotated[str, typer.Option(help="Of TCL.")] = "paper",
    seeds: Annotated[int, typer.Option(help="How many, counted from 0.")] = 5,
    name: Annotated[Optional[str], typer.Option(help="Of the result; default: the log's.")] = None,
) -> None:
    """Train and test every seed, as many at a time as there are cores, and write the result."""
    data = Data(log=log, graph=graph, split=split, seen_only=seen_only)
    name = name or data.name
    folders = [f"runs/results/{name}-{preset}-{seed}" for seed in range(seeds)]
    runs = []
    for run in several(
        [
            (data, "tcl", {"preset": preset, "seed": seed}, folder, "test")
            for seed, folder in enumerate(folders)
        ]
    ):
        runs.append(run)
        told = run["test"]["metrics"]
        print(f"seed {run['seed']}:", {one: round(told[one], 4) for one in SHOWN}, flush=True)
    opened = data.open()
    result = {
        "data": data.name,
        "file": data.file,
        "graph": opened.events.graph,
        "split": str(opened),
        "parts": opened.sizes,
        "update": "streaming",
        "preset": preset,
        "config": RunFolder(folders[0]).read_config(),
        "seeds": list(range(seeds)),
        "summary": summary([run["test"]["metrics"] for run in runs]),
        "summary_by_group": {
            group: summary([run["test"][group] for run in runs]) for group in ("repeat", "new")
        },
        "paper": published("tcl", data.name),
        "floors": floors_of(opened),
        "runs": runs,
    }
    target = write_result(f"tcl/{name}", result)
    draw_learning_curves(result, target.with_suffix(""))
    print(target)


if __name__ == "__main__":
    typer.run(main)
