"""What each ingredient of the default preset is worth: the whole, and the whole without it.

    python -m tclgraph.studies.leave_one_out collegemsg --seen-only

writes results/ingredients/collegemsg.json, by validation alone: one seed for each that is left
out, and three for the whole, whose deviation tells which differences mean anything. All are trained
for four epochs, which is not quite to the end.

With `--ahead` the validation part is ranked by models that were trained on the first 80 % of train
alone, as test is by models that have not seen the time before it, of those ingredients that this
can tell more about: results/ingredients/collegemsg-ahead.json.
"""

import json
import os
import statistics
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from tclgraph import __version__
from tclgraph.environment import environment
from tclgraph.evaluation.protocol import evaluate
from tclgraph.events.log_spec import LogSpec
from tclgraph.events.writers import replacing
from tclgraph.models.tcl.model import TCL
from tclgraph.training.run_folder import RunFolder

SHOWN = ("MR", "MRR", "Hit@10")

WITHOUT: dict[str, dict[str, Any]] = {
    "embeddings": {"embeddings": False},
    "centering": {"centered": False},
    "pair history": {"pair_history": False},
    "repeat gate": {"repeat_gate": False},
    "repeat bias": {"repeat_bias": 0.0},
    "candidate state": {"candidate_state": False},
    "source state": {"source_state": False},
    "nearby": {"nearby": False},
    "log intervals": {"intervals": "linear"},
    "ema_decay": {"ema_decay": None},
    "all terms (full contrast alone)": {
        "pair_history": False,
        "repeat_gate": False,
        "candidate_state": False,
        "source_state": False,
        "nearby": False,
    },
}
"""What is left out, and how."""
BRIEF = {"epochs": 4}
TOLD_AHEAD = ("embeddings", "centering", "repeat bias", "nearby")
GROUPS = {"all": "metrics", "repeat": "repeat", "new": "new"}
"""Names of groups in a report."""


def train_one(
    data: LogSpec, settings: dict[str, Any], folder: str, part: Literal["valid", "test"]
) -> dict[str, dict[str, float]]:
    """One run, from whichever point an earlier attempt reached: its figures on a part, by group."""
    split = data.open()
    model = TCL(threads=1, **settings).fit(split, run=folder, resume=True, progress=lambda _: None)
    report = evaluate(model, split, part=part, with_heuristics=False).to_json()
    return {group: {one: report[key][one] for one in SHOWN} for group, key in GROUPS.items()}


def several(jobs: Sequence[tuple[Any, ...]]) -> Iterator[dict[str, dict[str, float]]]:
    """`train_one` of each, in order, as many at a time as there are cores."""
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        for job in [pool.submit(train_one, *words) for words in jobs]:
            yield job.result()


def summary(figures: Sequence[dict[str, float]]) -> dict[str, dict[str, float]]:
    """Mean and sample deviation of each metric."""
    return {
        metric: {
            "mean": statistics.fmean(one[metric] for one in figures),
            "deviation": statistics.stdev(one[metric] for one in figures),
        }
        for metric in SHOWN
    }


def main(
    log: Annotated[str, typer.Argument(help="A catalogue name.")],
    seen_only: Annotated[bool, typer.Option("--seen-only", help="As the authors do.")] = False,
    seeds: Annotated[int, typer.Option(min=2, help="Of the whole.")] = 3,
    ahead: Annotated[bool, typer.Option("--ahead", help="Rank further ahead.")] = False,
) -> None:
    """Train all, as many at a time as there are cores, and write the result."""
    data = LogSpec(log=log, kind=None, split=None, seen_only=seen_only, ahead=ahead)
    name = f"{data.name}-ahead" if ahead else data.name
    runs = f"runs/results/{name}"
    # Further ahead, what the split calls test is the valid part too.
    part = "test" if ahead else "valid"
    without = {one: how for one, how in WITHOUT.items() if not ahead or one in TOLD_AHEAD}
    jobs: list[tuple[Any, ...]] = [
        (data, {"seed": seed, **BRIEF}, f"{runs}-whole-{seed}", part) for seed in range(seeds)
    ]
    for number, settings in enumerate(without.values()):
        jobs.append((data, {**settings, **BRIEF}, f"{runs}-without-{number}", part))
    names = [*("" for _ in range(seeds)), *without]
    if not ahead:
        # One identity is a property of the log that is read, not of the model.
        jobs.append((replace(data, kind="bipartite"), BRIEF, f"{runs}-two-sided", part))
        names.append("one identity")
    found = []
    for what, run in zip(names, several(jobs), strict=True):
        found.append(run)
        print(what or "the whole", {one: round(run["all"][one], 4) for one in SHOWN}, flush=True)
    whole = found[:seeds]
    result = {
        "command": "scripts/results ingredients",
        "version": __version__,
        "machine": environment(),
        "data": data.name,
        "file": data.file,
        "kind": "one-mode",
        "split": str(data.open()),
        "part": "valid",
        "update": "streaming",
        "seeds": list(range(seeds)),
        "config": RunFolder(f"{runs}-whole-0").read_config(),
        "whole": {group: summary([run[group] for run in whole]) for group in GROUPS},
        "without": {
            what: {"settings": WITHOUT.get(what, {"kind": "bipartite"}), **run}
            for what, run in zip(names[seeds:], found[seeds:], strict=True)
        },
    }
    target = Path("results/ingredients") / f"{name}.json"
    with replacing(target) as temporary:
        temporary.write_text(json.dumps(result, indent=1) + "\n")
    print(target)


if __name__ == "__main__":
    typer.run(main)
