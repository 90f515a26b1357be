"""The training loop: a step for every batch, validation after every epoch, the best one kept.

A run can be stopped and resumed between any two batches without changing a bit of its outcome:
the order of an epoch's batches depends on the seed and the epoch, and what a batch draws on the
seed, the epoch and the batch.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tclgraph.errors import InputError
from tclgraph.evaluation.metrics import LOWER_IS_BETTER
from tclgraph.evaluation.protocol import validate
from tclgraph.events.split import Split
from tclgraph.heuristics.rules import heuristics_for
from tclgraph.training.checkpoint import (
    Position,
    load_checkpoint,
    save_checkpoint,
    weights_of,
)
from tclgraph.training.config import TrainingConfig
from tclgraph.training.ema import WeightEMA
from tclgraph.training.progress import ProgressCallback, ProgressUpdate
from tclgraph.training.run_folder import RunFolder, fingerprint

if TYPE_CHECKING:
    from tclgraph.training.learned import LearnedModel

# A loss so many times that of the first batch, which knew nothing, will not come back.
_DIVERGED = 20.0
_SECONDS_BETWEEN_CHECKPOINTS = 60.0


@dataclass(frozen=True, slots=True)
class Step:
    """What a batch found, before any weight is moved."""

    loss: float
    gradient_norm: float
    apply: Callable[[], Any]


def train(
    model: LearnedModel,
    split: Split,
    *,
    run: RunFolder | None = None,
    resume: bool = False,
    progress: ProgressCallback | None = None,
) -> None:
    """Train a model; it ends with the weights of its best epoch and the state after train."""
    config = model.config
    if not len(split.valid):
        raise InputError(
            "no validation events to choose an epoch by; give valid a share of the split"
        )
    if run:
        told = {"model": model.name, "settings": asdict(config), "data": fingerprint(split)}
        run.open(told, resume=resume)
    with _threads(config.threads), _interruptible() as interruption:
        num_batches = model.prepare(split)
        optimizer = model.make_optimizer()
        for group in optimizer.param_groups:
            group["full_rate"] = group["lr"]
        best, position = None, Position()
        average = WeightEMA(model.network, config.ema_decay) if config.ema_decay else None
        if run and resume and run.checkpoint.exists():
            best, averaged, position = load_checkpoint(run.checkpoint, model.network, optimizer)
            if average and averaged:
                average.weights = averaged
        heuristic = _best_heuristic(split, config) if run or progress else None
        last_saved = time.monotonic()

        def save() -> None:
            nonlocal last_saved
            if run:
                averaged = average.weights if average else None
                save_checkpoint(run.checkpoint, model.network, optimizer, best, averaged, position)
            last_saved = time.monotonic()

        while position.epoch < config.epochs and not _is_out_of_patience(model, position):
            order = np.arange(num_batches)
            if not model.in_order:
                np.random.default_rng([config.seed, position.epoch]).shuffle(order)
            while position.batch < num_batches:
                started = time.perf_counter()
                random = np.random.default_rng([config.seed, position.epoch, position.batch])
                step = model.learn(int(order[position.batch]), random, optimizer)
                _check(step, position, model, run)
                number = position.epoch * num_batches + position.batch + 1
                for group in optimizer.param_groups:
                    group["lr"] = group["full_rate"] * min(1.0, number / (config.warm_up + 1))
                step.apply()
                if average:
                    average.follow(number)

                if position.first_loss is None:
                    position.first_loss = step.loss
                position.loss_sum += step.loss
                position.batch += 1
                position.seconds += time.perf_counter() - started
                if progress:
                    progress(_progress_update(model, position, num_batches, split, heuristic))
                if interruption.is_wanted:
                    save()
                    raise KeyboardInterrupt
                if time.monotonic() - last_saved > _SECONDS_BETWEEN_CHECKPOINTS:
                    save()

            started = time.perf_counter()
            with average.in_place() if average else nullcontext():
                report = validate(model, split, max_events=config.valid_events)
                position.history.append(
                    {
                        "epoch": position.epoch + 1,
                        "loss": position.loss_sum / num_batches,
                        "events_per_second": round(split.train_end / position.seconds, 1),
                        "seconds": round(position.seconds + time.perf_counter() - started, 1),
                        "valid": report.groups["all"].metrics,
                    }
                )
                position.epoch += 1
                position.batch, position.loss_sum, position.seconds = 0, 0.0, 0.0
                if best_epoch(position.history, config.choose_by) == position.epoch:
                    position.best_epoch = position.epoch
                    best = weights_of(model.network)
                    if run:
                        _rest_after_train(model, split)
                        model.save(run.path)
            if run:
                run.write_metrics([{"heuristic": heuristic}, *position.history])
            save()
            if progress:
                progress(_progress_update(model, position, num_batches, split, heuristic))

    if best is not None:
        model.network.load_state_dict(best)
    _rest_after_train(model, split)


def _rest_after_train(model: LearnedModel, split: Split) -> None:
    model.forget()
    model.observe(split.train)


def best_epoch(history: list[dict[str, Any]], metric: str) -> int:
    """Number of the first of the best epochs."""
    figures = [entry["valid"][metric] for entry in history]
    best = min(figures) if metric in LOWER_IS_BETTER else max(figures)
    return figures.index(best) + 1


def _is_out_of_patience(model: LearnedModel, position: Position) -> bool:
    patience = model.config.patience
    return patience is not None and position.epoch - (position.best_epoch or 0) >= patience


def _best_heuristic(split: Split, config: TrainingConfig) -> dict[str, Any]:
    """The validation figure to beat."""
    metric = config.choose_by
    reports = [
        validate(heuristic().fit(split), split, max_events=config.valid_events)
        for heuristic in heuristics_for(split.events.kind)
    ]
    key = min if metric in LOWER_IS_BETTER else max
    best = key(reports, key=lambda report: report[metric])
    return {"model": best.model, "valid": best.groups["all"].metrics}


def _check(step: Step, position: Position, model: LearnedModel, run: RunFolder | None) -> None:
    """Stop before a step that would spoil the weights."""
    limit = _DIVERGED * max(1.0, abs(position.first_loss or 0.0))
    if math.isfinite(step.loss) and math.isfinite(step.gradient_norm) and step.loss <= limit:
        return
    kept = f"; the last good checkpoint is in {run.path}" if run else ""
    raise InputError(
        f"training diverged: the loss is {step.loss:.4g} and the gradient's length "
        f"{step.gradient_norm:.4g} in batch {position.batch + 1} of epoch {position.epoch + 1}; "
        f"lower learning_rate (now {model.config.learning_rate:g}) or set max_gradient_norm{kept}"
    )


def _progress_update(
    model: LearnedModel,
    position: Position,
    num_batches: int,
    split: Split,
    heuristic: dict[str, Any] | None,
) -> ProgressUpdate:
    metric = model.config.choose_by
    last = position.history[-1] if position.history else None
    in_epoch = position.batch > 0
    batch_size = model.config.batch_size
    return ProgressUpdate(
        epoch=position.epoch,
        epochs=model.config.epochs,
        batch=position.batch,
        num_batches=num_batches,
        loss=position.loss_sum / position.batch if in_epoch else last["loss"] if last else None,
        events_per_second=(
            min(position.batch * batch_size, split.train_end) / position.seconds
            if in_epoch
            else last["events_per_second"]
            if last
            else None
        ),
        metric=metric,
        valid=last["valid"] if last else None,
        best_epoch=position.best_epoch,
        heuristic=(heuristic["model"], heuristic["valid"][metric]) if heuristic else None,
    )


@contextmanager
def _threads(wanted: int | None) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(wanted or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclass
class _Interruption:
    is_wanted: bool = False


@contextmanager
def _interruptible() -> Iterator[_Interruption]:
    """Ctrl-C asks to stop after the batch; a second one stops at once."""
    interruption = _Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield interruption  # signals reach the main thread only
        return

    def ask(*_: Any) -> None:
        if interruption.is_wanted:
            raise KeyboardInterrupt
        interruption.is_wanted = True

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield interruption
    finally:
        signal.signal(signal.SIGINT, before)
