"""Speed of training and ranking with TCL, beside a padded dense implementation.

Training rates are events per second over windows that are spread evenly over the training stream.
They cover sampling, the forward pass, the backward pass and the step. Each figure is measured in a
separate process, one after the other. Run this on an idle machine; it takes about twenty minutes.
"""

import json
import sys
import time
from typing import Any

import numpy as np
import torch

from benchmarks.dense_tcl import DenseTCL
from benchmarks.measuring import in_own_process, measured, write_result
from tclgraph.encoding.training_windows import SampledRoots
from tclgraph.encoding.two_stream import EncoderInputs
from tclgraph.evaluation.protocol import evaluate
from tclgraph.events.catalog import load
from tclgraph.events.split import Split
from tclgraph.events.synthetic import SyntheticConfig, synthesize
from tclgraph.models.tcl.model import TCL

VARIANTS: dict[str, dict[str, Any]] = {"tcl": {}, "tcl_negative_pool_256": {"negative_pool": 256}}
"""Settings of each variant of TCL that is measured."""
SHAPES = {
    "reddit": {"sources": 10_000, "targets": 984, "days": 31.0},
    "lastfm": {"sources": 980, "targets": 1_000, "days": 1_587.0},
}
"""Synthetic streams with the proportions of well-known logs."""
SIZES = (50_000, 1_300_000)
NUM_WINDOWS = 30
NUM_DENSE_WINDOWS = 3


def collegemsg() -> Split:
    return load("collegemsg", kind="bipartite").split(0.6, 0.2, seen_only=True)


def synthetic(shape: str, events: int) -> Split:
    config = SyntheticConfig(events=events, **SHAPES[shape])  # type: ignore[arg-type]
    return synthesize(config).split(0.8, 0.1)


def training_rate(model: TCL, split: Split, *, warm: bool = False) -> dict[str, float]:
    """Measure the training rate of TCL over the stream or, if `warm`, over its second half.

    Early windows are cheap because few events precede them. `rows_per_event` says how much is
    encoded: the number of distinct pairs of an instance and a depth, per event.
    """
    num_windows = model.prepare(split)
    optimizer = torch.optim.Adam(model.network.parameters(), lr=model.config.learning_rate)
    random = np.random.default_rng(0)
    num_rows = 0

    def count_rows(_: torch.nn.Module, inputs: tuple[EncoderInputs]) -> None:
        nonlocal num_rows
        num_rows += len(inputs[0].packed.row_node)

    def step(window: int) -> None:
        optimizer.zero_grad(set_to_none=True)
        model.loss(window, random).backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    for window in range(3):  # compiles
        step(window)
    model.network.encoder.register_forward_pre_hook(count_rows)
    # Without the last window, which may be shorter than the others.
    chosen = np.linspace(num_windows // 2 if warm else 0, num_windows - 2, NUM_WINDOWS).astype(int)

    def train() -> None:
        for window in chosen.tolist():
            step(window)

    cost = measured(train)
    num_events = NUM_WINDOWS * model.config.batch_size
    return {
        "events_per_second": round(num_events / cost["seconds"]),
        "rows_per_event": round(num_rows / num_events, 1),
        "microseconds_per_row": round(1e6 * cost["seconds"] / num_rows, 3),
        **cost,
    }


def dense_rate() -> dict[str, float]:
    """Measure the padded implementation, after checking that it computes the same loss."""
    model = TCL()
    num_windows = model.prepare(collegemsg())
    dense = DenseTCL(model.network, model.windows.graph)
    optimizer = torch.optim.Adam(model.network.parameters(), lr=model.config.learning_rate)
    random = np.random.default_rng(0)

    def draw_roots(window: int) -> SampledRoots:
        event = model.windows.events(window)
        negatives = model.draw_negatives(event, random)
        return model.windows.sampled_roots(event, negatives, model.network.encoder.absent_node)

    def step(window: int) -> None:
        instance = torch.from_numpy(draw_roots(window).instance)
        optimizer.zero_grad(set_to_none=True)
        dense.loss(instance, dropout=model.config.input_dropout).backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    roots = draw_roots(num_windows // 2)
    with torch.no_grad():  # so that the check does not add to the peak memory
        dense_loss = dense.loss(torch.from_numpy(roots.instance), dropout=0.0)
        torch.testing.assert_close(dense_loss, model.sampled_loss(roots))
    chosen = np.linspace(0, num_windows - 2, NUM_DENSE_WINDOWS).astype(int)

    def train() -> None:
        for window in chosen.tolist():
            step(window)

    cost = measured(train)
    num_events = NUM_DENSE_WINDOWS * model.config.batch_size
    return {"events_per_second": round(num_events / cost["seconds"], 1), **cost}


def ranking_time() -> dict[str, float]:
    """Measure the evaluation on the test events of CollegeMsg, including the events before them."""
    split = collegemsg()
    model = TCL()
    model.prepare(split)
    evaluate(model, split, part="valid", with_heuristics=False)  # compiles
    cost = measured(lambda: evaluate(model, split, with_heuristics=False))
    return {"test_events": split.sizes["test"], **cost}


def epoch_time() -> dict[str, float]:
    """Measure `fit` on the larger LastFM-shaped stream: one epoch and its validation."""
    split = synthetic("lastfm", SIZES[-1])
    cost = measured(lambda: TCL(epochs=1).fit(split))
    return {"train_events": split.sizes["train"], **cost}


def cost_by_size(shape: str) -> dict[str, object]:
    """Compare a long stream with a short one.

    `cost_per_event` and `cost_per_row` are the times in the long stream, divided by the times in
    the short one.
    """
    small, large = (
        in_own_process("benchmarks.training", "rate", shape, str(size)) for size in SIZES
    )
    return {
        **{str(size): result for size, result in zip(SIZES, (small, large), strict=True)},
        "cost_per_event": round(small["events_per_second"] / large["events_per_second"], 3),
        "cost_per_row": round(large["microseconds_per_row"] / small["microseconds_per_row"], 3),
    }


def main() -> None:
    started = time.perf_counter()
    results = {
        variant: in_own_process("benchmarks.training", "variant", variant) for variant in VARIANTS
    }
    dense = in_own_process("benchmarks.training", "dense")
    write_result(
        "training",
        {
            "data": "collegemsg, bipartite, seen only",
            "threads": torch.get_num_threads(),
            **results,
            "padded_dense": dense,
            "times_faster_than_dense": {
                variant: round(result["events_per_second"] / dense["events_per_second"], 1)
                for variant, result in results.items()
            },
            "ranking": in_own_process("benchmarks.training", "ranking"),
            "by_size": {shape: cost_by_size(shape) for shape in SHAPES},
            "one_epoch_of_1.3_million": in_own_process("benchmarks.training", "epoch"),
            "minutes": round((time.perf_counter() - started) / 60, 1),
        },
    )


if __name__ == "__main__":
    match sys.argv[1:]:
        case []:
            main()
        case ["variant", variant]:
            print(json.dumps(training_rate(TCL(**VARIANTS[variant]), collegemsg())))
        case ["dense"]:
            print(json.dumps(dense_rate()))
        case ["ranking"]:
            print(json.dumps(ranking_time()))
        case ["rate", shape, size]:
            print(json.dumps(training_rate(TCL(), synthetic(shape, int(size)), warm=True)))
        case ["epoch"]:
            print(json.dumps(epoch_time()))
