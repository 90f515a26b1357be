"""The default preset on CollegeMsg: training and ranking, each beside the paper's preset.

Rates are of one whole epoch and of all test events, history replayed before them. Each figure comes
from a process of its own. Run it on a machine that does nothing else; it takes three minutes.
"""

import json
import sys

import numpy as np
import torch

from benchmarks.measuring import in_own_process, measured, write_result
from tclgraph.evaluation.protocol import evaluate
from tclgraph.events.catalog import load
from tclgraph.events.split import Split
from tclgraph.models.tcl.model import TCL

COMPILING_BATCHES = 3


def collegemsg() -> Split:
    return load("collegemsg").split(0.6, 0.2, seen_only=True)


def training_rate(preset: str) -> dict[str, float]:
    """Forward, backward and step over all batches, sampling included."""
    split = collegemsg()
    model = TCL(preset)
    num_batches = model.prepare(split)
    optimizer = torch.optim.Adam(model.parameter_groups(), lr=model.config.learning_rate)
    random = np.random.default_rng(0)

    def step(batch: int) -> None:
        optimizer.zero_grad(set_to_none=True)
        model.loss(batch, random).backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    def epoch() -> None:
        for batch in range(num_batches):
            step(batch)

    for batch in range(COMPILING_BATCHES):
        step(batch)
    found = measured(epoch)
    return {"events_per_second": round(split.train_end / found["seconds"]), **found}


def ranking_rate(preset: str) -> dict[str, float]:
    split = collegemsg()
    model = TCL(preset)
    model.prepare(split)
    evaluate(model, split, part="valid", with_heuristics=False)  # compiles
    found = measured(lambda: evaluate(model, split, with_heuristics=False))
    return {"events_per_second": round(split.sizes["test"] / found["seconds"]), **found}


def main() -> None:
    presets = ("default", "paper")
    told: dict[str, object] = {
        "data": "collegemsg, one id space, seen only",
        "threads": torch.get_num_threads(),
        "targets": len(np.unique(collegemsg().events.target)),
    }
    for what in ("training", "ranking"):
        found = {one: in_own_process("benchmarks.default", what, one) for one in presets}
        rates = [found[one]["events_per_second"] for one in presets]
        told[what] = {**found, "default_to_paper": round(rates[0] / rates[1], 2)}
    write_result("default", told)


if __name__ == "__main__":
    match sys.argv[1:]:
        case []:
            main()
        case ["training", preset]:
            print(json.dumps(training_rate(preset)))
        case ["ranking", preset]:
            print(json.dumps(ranking_rate(preset)))
