"""Speed of the ranker on CollegeMsg, beside the ranker without an encoder and beside TCL.

Training rates cover one epoch; ranking rates cover all test events and include replaying the events
before them. Each figure is measured in a separate process. Run this on an idle machine; it takes
about five minutes.
"""

import json
import sys
from typing import Any

import numpy as np
import torch

from benchmarks.measuring import in_own_process, measured, write_result
from tclgraph import registry
from tclgraph.evaluation.protocol import evaluate
from tclgraph.events.catalog import load
from tclgraph.events.split import Split
from tclgraph.models.learned import LearnedModel

VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "ranker": ("ranker", {}),
    "ranker_without_encoder": ("ranker", {"encoder": None}),
    "tcl": ("tcl", {}),
}
"""Model name and settings of each variant."""
NUM_COMPILING_BATCHES = 3


def collegemsg() -> Split:
    return load("collegemsg").split(0.6, 0.2, seen_only=True)


def build(variant: str) -> LearnedModel:
    name, settings = VARIANTS[variant]
    model = registry.build(name, **settings)
    assert isinstance(model, LearnedModel)
    return model


def training_rate(variant: str) -> dict[str, float]:
    """Measure the forward pass, backward pass and step of all batches, including sampling."""
    split = collegemsg()
    model = build(variant)
    num_batches = model.prepare(split)
    optimizer = torch.optim.Adam(model.parameter_groups(), lr=model.config.learning_rate)
    random = np.random.default_rng(0)

    def train(batches: range) -> None:
        for batch in batches:
            optimizer.zero_grad(set_to_none=True)
            model.loss(batch, random).backward()  # type: ignore[no-untyped-call]
            optimizer.step()

    train(range(NUM_COMPILING_BATCHES))
    cost = measured(lambda: train(range(num_batches)))
    return {"events_per_second": round(split.train_end / cost["seconds"]), **cost}


def ranking_rate(variant: str) -> dict[str, float]:
    """Measure the evaluation of an untrained model, which costs the same as a trained one."""
    split = collegemsg()
    model = build(variant)
    model.prepare(split)
    evaluate(model, split, part="valid", with_heuristics=False)  # compiles
    cost = measured(lambda: evaluate(model, split, with_heuristics=False))
    return {"events_per_second": round(split.sizes["test"] / cost["seconds"]), **cost}


def compare(activity: str) -> dict[str, Any]:
    """Measure an activity ("training" or "ranking") for every variant.

    `ranker_relative_to` holds the rate of the ranker divided by the rate of each other variant.
    """
    results = {
        variant: in_own_process("benchmarks.ranker", activity, variant) for variant in VARIANTS
    }
    rates = {variant: result["events_per_second"] for variant, result in results.items()}
    ratios = {
        variant: round(rates["ranker"] / rate, 2)
        for variant, rate in rates.items()
        if variant != "ranker"
    }
    return {**results, "ranker_relative_to": ratios}


def main() -> None:
    write_result(
        "ranker",
        {
            "data": "collegemsg, one-mode, seen only",
            "threads": torch.get_num_threads(),
            "targets": len(np.unique(collegemsg().events.target)),
            "training": compare("training"),
            "ranking": compare("ranking"),
        },
    )


if __name__ == "__main__":
    match sys.argv[1:]:
        case []:
            main()
        case ["training", variant]:
            print(json.dumps(training_rate(variant)))
        case ["ranking", variant]:
            print(json.dumps(ranking_rate(variant)))
