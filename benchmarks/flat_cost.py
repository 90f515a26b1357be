"""Cost per event at three places of a long stream; runs in its own process, prints JSON.

Streams are synthetic, with two million events and the numbers of sources and targets of well-known
logs. *Early* begins at event 50,000, or where sources have 20 events on average if that is later.
*Late* is the end of the stream, and *middle* is half-way. Measurements of the places alternate, and
each window or block is visited once, so nothing comes from a cache that another measurement filled.

    python -m benchmarks.flat_cost SHAPE VARIANT THREADS
"""

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from benchmarks.model_speed import VARIANTS
from benchmarks.speed_tables import PLACES
from tclgraph import registry
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream
from tclgraph.events.synthetic import SyntheticConfig, synthesize
from tclgraph.models.learned import LearnedModel
from tclgraph.models.ranker.model import Ranker
from tclgraph.models.tcl.model import TCL

NUM_EVENTS = 2_000_000
SHAPES = {
    "lastfm": SyntheticConfig(events=NUM_EVENTS, sources=980, targets=1_000, days=1_587.0),
    "reddit": SyntheticConfig(events=NUM_EVENTS, sources=10_000, targets=984, days=31.0),
    "mathoverflow": SyntheticConfig(
        events=NUM_EVENTS, sources=24_759, targets=24_759, days=2_350.0, kind="one-mode"
    ),
}
EARLY_EVENT = 50_000
EVENTS_PER_SOURCE = 20
SPREAD = 0.25
"""Early windows lie between the early event and 1.25 times its number; others as far apart."""
NUM_WINDOWS = 48
"""Maximum number of windows; every other one is drawn, the rest are trained on."""
NUM_BLOCKS = 12
EVENTS_PER_BLOCK = 1024
CELLS_PER_BLOCK = 1 << 21
"""The protocol's limit of scores per block."""


def split_at(stream: EventStream, train_end: int) -> Split:
    """Return a split by hand, with one validation event."""
    return Split(
        events=stream,
        train_end=train_end,
        valid_end=train_end + 1,
        shares="by hand",
        by="rows",
        seen_only=False,
    )


def build(variant: str, split: Split) -> tuple[LearnedModel, int]:
    """Return a prepared model and its number of windows."""
    name, settings = VARIANTS[variant]
    model = registry.build(name, **settings)
    assert isinstance(model, LearnedModel)
    return model, model.prepare(split)


def draw(model: LearnedModel, window: int, random: np.random.Generator) -> None:
    """Draw what a training step on a window needs, without encoding anything."""
    if isinstance(model, TCL):
        event = model.windows.events(window)
        negatives = model.draw_negatives(event, random)
        model.windows.sampled_roots(event, negatives, model.network.encoder.absent_node)
    elif isinstance(model, Ranker):
        match = model.network.match
        model.windows.draw(window, random, match.encoder.absent_node if match else None)


def step(
    model: LearnedModel,
    optimizer: torch.optim.Optimizer,
    window: int,
    random: np.random.Generator,
) -> None:
    """Make a gradient step on a window."""
    optimizer.zero_grad(set_to_none=True)
    model.loss(window, random).backward()  # type: ignore[no-untyped-call]
    optimizer.step()


class Samples:
    """Microseconds per event of an activity at every place."""

    def __init__(self) -> None:
        self.costs: dict[str, list[float]] = {place: [] for place in PLACES}

    def add(self, place: str, job: Callable[[], object], num_events: int) -> None:
        """Run a job and record its time per event."""
        started = time.perf_counter()
        job()
        self.costs[place].append(1e6 * (time.perf_counter() - started) / num_events)

    def subtract(self, place: str, job: Callable[[], object], num_events: int) -> None:
        """Run a job that the last sample contains, and subtract its time."""
        started = time.perf_counter()
        job()
        self.costs[place][-1] -= 1e6 * (time.perf_counter() - started) / num_events

    def figures(self, skip: int = 0) -> dict[str, float]:
        """Return medians, ratios of medians and, to show outliers, means."""
        costs = {place: np.array(costs[skip:]) for place, costs in self.costs.items()}
        medians = {place: float(np.median(costs[place])) for place in PLACES}
        return {
            **{f"{place}_microseconds": round(medians[place], 2) for place in PLACES},
            "ratio": round(medians["late"] / medians["early"], 3),
            "late_to_middle": round(medians["late"] / medians["middle"], 3),
            **{f"{place}_mean": round(float(costs[place].mean()), 2) for place in PLACES},
            "samples": len(costs["early"]),
        }


def in_turn(number: int) -> tuple[str, ...]:
    """Return the order of the places; the first in turn finds a colder processor cache."""
    return PLACES if number % 2 == 0 else PLACES[::-1]


def training_costs(model: LearnedModel, num_windows: int, early: int) -> dict[str, Any]:
    """Measure drawing and training on windows of all places."""
    size = model.config.batch_size
    span = int(SPREAD * early) // size
    count = min(NUM_WINDOWS, span)
    offsets = np.linspace(0, span - 1, count).astype(np.int64)
    first_window = {
        "early": early // size,
        "middle": num_windows // 2,
        "late": num_windows - 1 - span,
    }
    optimizer = model.make_optimizer()
    for window in (num_windows // 3, num_windows // 3 + 1):  # compiles
        draw(model, window, np.random.default_rng(0))
        step(model, optimizer, window, np.random.default_rng(0))
    drawing, training = Samples(), Samples()
    for number in range(count):
        for place in in_turn(number // 2):
            window = first_window[place] + int(offsets[number])
            random = np.random.default_rng(number)
            if number % 2 == 0:
                drawing.add(place, partial(draw, model, window, random), size)
            else:
                training.add(place, partial(step, model, optimizer, window, random), size)
    return {"drawing": drawing.figures(), "training": training.figures()}


def update(model: LearnedModel, events: EventStream) -> None:
    """Observe events and answer one query, because some models update their state only then."""
    model.observe(events)
    answer(model, events)


def answer(model: LearnedModel, events: EventStream) -> None:
    """Answer one query, about the source of the last event."""
    model.score(events.source[-1:], events.time[-1:])


def state_costs(
    stream: EventStream, models: dict[str, LearnedModel], starts: dict[str, int]
) -> dict[str, Any]:
    """Measure observing and ranking blocks of events, with a model for every place."""
    size = block_size(stream)
    for place, model in models.items():
        model.forget()
        update(model, stream[: starts[place]])
    observing, ranking = Samples(), Samples()
    for number in range(NUM_BLOCKS + 1):
        for place in in_turn(number):
            model = models[place]
            first = starts[place] + 2 * number * size
            observed, ranked = stream[first : first + size], stream[first + size : first + 2 * size]
            observing.add(place, partial(update, model, observed), size)
            observing.subtract(place, partial(answer, model, observed), size)
            ranking.add(place, partial(model.score_each, ranked), size)
    # The first block compiles.
    return {"observing": observing.figures(skip=1), "ranking": ranking.figures(skip=1)}


def block_size(stream: EventStream) -> int:
    """Return the number of events that the protocol ranks together."""
    return min(EVENTS_PER_BLOCK, CELLS_PER_BLOCK // stream.num_targets)


def mean_partners(stream: EventStream, start: int, num_events: int) -> float:
    """Return how many different targets the sources of some events had before, on average."""
    first_of_pair = np.unique(stream[:start].pairs(), return_index=True)[1]
    partners = np.bincount(stream.source[first_of_pair], minlength=stream.num_sources)
    return round(float(partners[stream.source[start : start + num_events]].mean()), 1)


def measure(shape: str, variant: str) -> dict[str, Any]:
    config = SHAPES[shape]
    stream = synthesize(config)
    early = max(EARLY_EVENT, EVENTS_PER_SOURCE * config.sources)
    late = len(stream) - 2 * (NUM_BLOCKS + 1) * block_size(stream) - 1
    starts = {"early": early, "middle": len(stream) // 2, "late": late}
    models = {}
    for place, start in starts.items():
        started = time.perf_counter()
        models[place], num_windows = build(variant, split_at(stream, start))
        prepare_seconds = time.perf_counter() - started
    return {
        "early_event": early,
        "late_event": late,
        **{
            f"{place}_partners": mean_partners(stream, start, EVENTS_PER_BLOCK)
            for place, start in starts.items()
        },
        "prepare_seconds": round(prepare_seconds, 2),
        "costs": {
            **training_costs(models["late"], num_windows, early),
            **state_costs(stream, models, starts),
        },
    }


if __name__ == "__main__":
    shape_name, variant_name, num_threads = sys.argv[1:]
    torch.set_num_threads(int(num_threads))
    print(json.dumps(measure(shape_name, variant_name)))
