"""Speed of a model's training and ranking on a log; runs in its own process, prints JSON.

`benchmarks.speed` starts this module with the package of either checkout, so it uses only what
both have: `fit`, `prepare`, `loss`, `evaluate`. It uses `draw_batch` only if the package has it;
`complete-memory`, which is measured for the later package only, needs it.

    python -m benchmarks.model_speed train LOG VARIANT THREADS [complete-memory]
    python -m benchmarks.model_speed rank LOG VARIANT THREADS
    python -m benchmarks.model_speed compile
"""

import json
import sys
import time
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.logs import read, with_short_test, with_tiny_validation
from tclgraph import registry
from tclgraph.environment import peak_megabytes
from tclgraph.evaluation.protocol import evaluate
from tclgraph.events.split import Split
from tclgraph.events.synthetic import SyntheticConfig, synthesize
from tclgraph.models.interface import Model
from tclgraph.models.learned import LearnedModel

EPOCHS = 5
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "ranker_without_encoder": ("ranker", {"encoder": None}),
    "ranker": ("ranker", {}),
    "tcl": ("tcl", {}),
    "tcl_negative_pool_256": ("tcl", {"negative_pool": 256}),
    "tgn": ("tgn", {}),
    "tgat": ("tgat", {}),
}
"""Model and settings of each variant; the defaults of TCL are the paper's."""
MAX_WINDOWS = {"ranker_without_encoder": 64, "ranker": 24, "tcl": 16, "tcl_negative_pool_256": 16}
"""Number of windows in an epoch; a log with more is sampled, see `sampled`."""
MAX_WINDOWS_ON = {
    ("ranker_without_encoder", "collegemsg"): 1_000,  # all of them
    ("ranker_without_encoder", "mathoverflow"): 32,
    ("ranker", "collegemsg"): 36,
}
MAX_RANKED_EVENTS = {"tgn": 2_048, "tgat": 2_048}
"""Number of ranked events of models that rank slowly."""
DEFAULT_RANKED_EVENTS = 16_384
NUM_RANKING_RUNS = 3
MANY_TARGETS = 5_000
RANKED_EVENTS_OF_MANY_TARGETS = 1_024


class TrainingTimes:
    """Stopwatch of a `fit`: preparation and the gradient steps of every epoch, no validation."""

    def __init__(self) -> None:
        self.prepare = 0.0
        self.epochs: list[float] = []
        self.windows = np.empty(0, dtype=np.int64)
        self.num_windows = 0
        self._started: float | None = None

    def start_epoch(self) -> None:
        """Start the clock of an epoch, unless it runs."""
        self._started = self._started or time.perf_counter()

    def stop_epoch(self) -> None:
        """Stop the clock of an epoch, if it runs."""
        if self._started is not None:
            self.epochs.append(time.perf_counter() - self._started)
            self._started = None


def sampled(name: str, max_windows: int) -> tuple[type[LearnedModel], TrainingTimes]:
    """Return a model's class, with times, that trains on at most so many windows per epoch.

    The windows are spread evenly over the training stream and are the same in every epoch. So the
    cost of the first visit to a window and of later visits have their true shares. `prepare` still
    covers the entire stream. All else is the class's own: `fit` runs its training loop.
    """
    base = registry.model_class(name)
    times = TrainingTimes()

    class Sampled(base):  # type: ignore[misc, valid-type]
        def prepare(self, split: Split) -> int:
            started = time.perf_counter()
            times.num_windows = super().prepare(split)
            times.prepare = time.perf_counter() - started
            times.windows = np.arange(times.num_windows)
            if times.num_windows > max_windows:
                # Without the last window, which may be shorter than the others.
                spread = np.linspace(0, times.num_windows - 2, max_windows)
                times.windows = spread.astype(np.int64)
            return len(times.windows)

        def draw_batch(self, batch: int, random: np.random.Generator) -> Any:
            times.start_epoch()
            return super().draw_batch(int(times.windows[batch]), random)

        def loss(self, batch: Any, random: np.random.Generator) -> Tensor:
            if not hasattr(base, "draw_batch"):  # the checkout before draws in `loss`
                times.start_epoch()
                batch = int(times.windows[batch])
            loss: Tensor = super().loss(batch, random)
            return loss

        def forget(self) -> None:
            times.stop_epoch()  # validation starts with this call
            super().forget()

    return Sampled, times


def train_and_rank(log: str, variant: str, *, complete_memory: bool) -> dict[str, Any]:
    """Measure a whole `fit` of five epochs, its peak memory, and the ranking after it.

    Before that, a `fit` on three windows compiles. `complete_memory` visits the windows that a
    sample left out, without gradients, before the peak is read: what is kept per window then counts
    for all windows.
    """
    split = read(log)
    name, settings = VARIANTS[variant]
    batch_size = registry.build(name, **settings).config.batch_size  # type: ignore[attr-defined]
    few_events = with_tiny_validation(split, 3 * batch_size)
    registry.build(name, epochs=1, **settings).fit(few_events)
    max_windows = MAX_WINDOWS_ON.get((variant, log), MAX_WINDOWS[variant])
    model_class, times = sampled(name, max_windows)
    model = model_class(epochs=EPOCHS, patience=None, **settings)
    model.fit(with_tiny_validation(split))
    memory_of_fit = peak_megabytes()
    if complete_memory and len(times.windows) < times.num_windows:
        visit_all(registry.model_class(name), model, times.num_windows)
    return {
        "training": training_figures(times, split.train_end, batch_size),
        "peak_megabytes_of_timed_windows": memory_of_fit,
        "peak_megabytes": peak_megabytes(),
        "ranking": ranking_figures(model, split, variant),
    }


def training_figures(times: TrainingTimes, num_events: int, batch_size: int) -> dict[str, Any]:
    """Return the rate of five epochs over all windows, from those that were measured."""
    window_ends = np.minimum((times.windows + 1) * batch_size, num_events)
    num_measured = int((window_ends - times.windows * batch_size).sum())
    step_seconds = sum(times.epochs) * num_events / num_measured
    assert len(times.epochs) == EPOCHS
    return {
        "events_per_second": round(EPOCHS * num_events / (times.prepare + step_seconds), 1),
        "train_events": num_events,
        "windows": len(times.windows),
        "of_windows": times.num_windows,
        "prepare_seconds": round(times.prepare, 3),
        "epoch_seconds": [round(seconds, 3) for seconds in times.epochs],
    }


@torch.no_grad()
def visit_all(base: type[Model], model: LearnedModel, num_windows: int) -> None:
    """Compute the loss of every window with the class's own `loss`."""
    assert issubclass(base, LearnedModel)
    for window in range(num_windows):
        random = np.random.default_rng(window)
        base.loss(model, base.draw_batch(model, window, random), random)


def rank_untrained(log: str, variant: str) -> dict[str, Any]:
    """Measure the ranking of an untrained model, which costs the same as that of a trained one."""
    split = read(log)
    name, settings = VARIANTS[variant]
    model = registry.build(name, **settings)
    assert isinstance(model, LearnedModel)
    model.prepare(split)
    return {"ranking": ranking_figures(model, split, variant), "peak_megabytes": peak_megabytes()}


def ranking_figures(model: Model, split: Split, variant: str) -> dict[str, Any]:
    """Measure `evaluate` on the first test events; return the run with the median rate."""
    num_events = MAX_RANKED_EVENTS.get(variant, DEFAULT_RANKED_EVENTS)
    if split.events.num_targets > MANY_TARGETS:
        num_events = min(num_events, RANKED_EVENTS_OF_MANY_TARGETS)
    part = with_short_test(split, num_events)
    num_runs = 1 if variant in MAX_RANKED_EVENTS else NUM_RANKING_RUNS
    runs = [rank_once(model, part) for _ in range(num_runs)]
    runs.sort(key=lambda run: run["events_per_second"])
    median = runs[num_runs // 2]
    return {**median, "targets": len(np.unique(part.events.target))}


def rank_once(model: Model, split: Split) -> dict[str, Any]:
    """Measure `evaluate` from the end of the first block of events.

    Everything until then counts as replay: some models follow the history when they first rank.
    """
    marks: list[tuple[int, float]] = []  # number of ranked events, time

    def mark(num_done: int, _: int) -> None:
        if num_done > split.valid_end:
            marks.append((num_done - split.valid_end, time.perf_counter()))

    started = time.perf_counter()
    evaluate(model, split, with_heuristics=False, progress=mark)
    (first, first_time), (last, last_time) = marks[0], marks[-1]
    return {
        "events_per_second": round((last - first) / (last_time - first_time), 1),
        "measured_events": last - first,
        "replayed_events": split.valid_end,
        "replay_seconds": round(first_time - started, 3),
    }


def compile_kernels() -> dict[str, Any]:
    """Fit and rank once with every variant, so that compiled code is in the cache."""
    for stream in (
        SyntheticConfig(events=3_000, sources=200, targets=700),
        SyntheticConfig(events=3_000, sources=200, targets=200, kind="one-mode"),
    ):
        split = synthesize(stream).split(0.6, 0.2)
        for name, settings in VARIANTS.values():
            model = registry.build(name, epochs=1, **settings).fit(with_tiny_validation(split))
            evaluate(model, split, with_heuristics=False)
    return {}


def main(task: str, *arguments: str) -> dict[str, Any]:
    if task == "compile":
        return compile_kernels()
    log, variant, threads, *options = arguments
    torch.set_num_threads(int(threads))
    if task == "rank":
        return rank_untrained(log, variant)
    return train_and_rank(log, variant, complete_memory=options == ["complete-memory"])


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
