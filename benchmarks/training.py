"""Training and ranking with TCL at the paper's settings, beside a padded dense implementation.

Rates are events per second over windows spread evenly over the training stream, forward, backward
and step, sampling included. Each figure comes from a process of its own, one after the other.
Run it on a machine that does nothing else; it takes about twenty minutes.
"""

import json
import sys
import time

import numpy as np
import torch

from benchmarks.dense_tcl import DenseTCL
from benchmarks.measuring import in_own_process, measured, write_result
from tclgraph.evaluation.protocol import evaluate
from tclgraph.events.catalog import load
from tclgraph.events.split import Split
from tclgraph.events.synthetic import SyntheticConfig, synthesize
from tclgraph.models.tcl.model import TCL

SHAPES = {
    "reddit": {"sources": 10_000, "targets": 984, "days": 31.0},
    "lastfm": {"sources": 980, "targets": 1_000, "days": 1_587.0},
}
SIZES = (50_000, 1_300_000)
NUM_WINDOWS = 30
NUM_DENSE_WINDOWS = 3


def collegemsg() -> Split:
    return load("collegemsg", kind="bipartite").split(0.6, 0.2, seen_only=True)


def synthetic(shape: str, events: int) -> Split:
    config = SyntheticConfig(events=events, **SHAPES[shape])  # type: ignore[arg-type]
    return synthesize(config).split(0.8, 0.1)


def training_rate(model: TCL, split: Split, *, warm: bool = False) -> dict[str, float]:
    """Of the product, over all of the stream or, warm, over its second half.

    Early windows are cheap, as there is little past to encode; how much there is, is told as rows
    (distinct instances at a depth) to an event.
    """
    num_windows = model.prepare(split)
    optimizer = torch.optim.Adam(model.network.parameters(), lr=model.config.learning_rate)
    random = np.random.default_rng(0)
    num_rows = 0

    def step(number: int) -> None:
        nonlocal num_rows
        window = model._windows.draw(number, random)
        num_rows += len(window.packed.row_node)
        optimizer.zero_grad(set_to_none=True)
        model.loss_of(window, random).backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    for number in range(3):  # compiles
        step(number)
    num_rows = 0
    # All but the last, which may be short.
    chosen = np.linspace(num_windows // 2 if warm else 0, num_windows - 2, NUM_WINDOWS).astype(int)

    def all_chosen() -> None:
        for number in chosen:
            step(number)

    found = measured(all_chosen)
    events = NUM_WINDOWS * model.config.batch_size
    return {
        "events_per_second": round(events / found["seconds"]),
        "rows_per_event": round(num_rows / events, 1),
        "microseconds_per_row": round(1e6 * found["seconds"] / num_rows, 3),
        **found,
    }


def dense_rate() -> dict[str, float]:
    """Of the padded implementation, after checking that it computes the same loss."""
    model = TCL("paper")
    num_windows = model.prepare(collegemsg())
    windows = model._windows
    dense = DenseTCL(model.network, windows.graph)
    optimizer = torch.optim.Adam(model.network.parameters(), lr=model.config.learning_rate)
    random = np.random.default_rng(0)

    def step(number: int, *, check: bool = False) -> None:
        window = windows.draw(number, random)
        packed = window.packed
        roots = packed.row_instance[packed.query_row[packed.root_query]]
        instance = torch.from_numpy(roots[window.position])
        if check:
            ours, theirs = model.loss_of(window), dense.loss(instance, dropout=0.0)
            torch.testing.assert_close(ours, theirs)
            return
        optimizer.zero_grad(set_to_none=True)
        dense.loss(instance, dropout=model.config.input_dropout).backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    step(num_windows // 2, check=True)
    chosen = np.linspace(0, num_windows - 2, NUM_DENSE_WINDOWS).astype(int)

    def all_chosen() -> None:
        for number in chosen:
            step(number)

    found = measured(all_chosen)
    events = NUM_DENSE_WINDOWS * model.config.batch_size
    return {"events_per_second": round(events / found["seconds"], 1), **found}


def ranking_time() -> dict[str, float]:
    """Encode and rank the test events of CollegeMsg, history included."""
    split = collegemsg()
    model = TCL("paper")
    model.prepare(split)
    evaluate(model, split, part="valid", with_heuristics=False)  # compiles
    found = measured(lambda: evaluate(model, split, with_heuristics=False))
    return {"test_events": split.sizes["test"], **found}


def one_epoch() -> dict[str, float]:
    """All of fit on the larger LastFM-shaped stream: an epoch and its validation."""
    split = synthetic("lastfm", SIZES[-1])
    found = measured(lambda: TCL("paper", epochs=1).fit(split))
    return {"train_events": split.sizes["train"], **found}


def cost_by_size(shape: str) -> dict[str, object]:
    """Seconds per event and per row in a long stream, as multiples of those in a short one."""
    small, large = (
        in_own_process("benchmarks.training", "rate", shape, str(size)) for size in SIZES
    )
    return {
        **{str(size): one for size, one in zip(SIZES, (small, large), strict=True)},
        "cost_per_event": round(small["events_per_second"] / large["events_per_second"], 3),
        "cost_per_row": round(large["microseconds_per_row"] / small["microseconds_per_row"], 3),
    }


def main() -> None:
    started = time.perf_counter()
    literal = in_own_process("benchmarks.training", "preset", "paper")
    fast = in_own_process("benchmarks.training", "preset", "fast")
    dense = in_own_process("benchmarks.training", "dense")
    write_result(
        "training",
        {
            "data": "collegemsg, two id spaces, seen only",
            "threads": torch.get_num_threads(),
            "paper": literal,
            "fast": fast,
            "padded_dense": dense,
            "times_faster_than_dense": {
                "paper": round(literal["events_per_second"] / dense["events_per_second"], 1),
                "fast": round(fast["events_per_second"] / dense["events_per_second"], 1),
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
        case ["preset", name]:
            print(json.dumps(training_rate(TCL(name), collegemsg())))
        case ["dense"]:
            print(json.dumps(dense_rate()))
        case ["ranking"]:
            print(json.dumps(ranking_time()))
        case ["rate", shape, size]:
            print(json.dumps(training_rate(TCL("paper"), synthetic(shape, int(size)), warm=True)))
        case ["epoch"]:
            print(json.dumps(one_epoch()))
