"""The training loop: a gradient step per batch, validation per epoch, the best epoch kept.

A run can be stopped and resumed between any two batches without changing a bit of its result: the
order of an epoch's batches depends only on the seed and the epoch, and the random draws of a batch
depend only on the seed, the epoch and the position of the batch.

What is learned depends on the training events and their nodes, and which epoch is kept also on the
validation events and theirs. Nodes that occur later are added at the end.
"""

import math
import time
from collections.abc import Iterator
from contextlib import closing, nullcontext
from dataclasses import asdict
from typing import Any

import numpy as np
from torch.nn.utils import clip_grad_norm_

from tclgraph.allocation import reuse_memory
from tclgraph.arrays import IntArray
from tclgraph.errors import InputError
from tclgraph.evaluation.metrics import LOWER_IS_BETTER
from tclgraph.evaluation.protocol import validate
from tclgraph.events.split import Split
from tclgraph.heuristics.rules import heuristics_for
from tclgraph.models.stream_state import StreamState
from tclgraph.threads import use_torch_threads
from tclgraph.training.checkpoint import (
    Position,
    StoredWeights,
    Weights,
    load_checkpoint,
    save_checkpoint,
    weights_of,
)
from tclgraph.training.config import TrainingConfig
from tclgraph.training.drawing import DrawnBatch, drawn_batches
from tclgraph.training.ema import WeightEMA
from tclgraph.training.interruption import Interruption, interruptible
from tclgraph.training.progress import ProgressCallback, ProgressUpdate
from tclgraph.training.run_folder import RunFolder, fingerprint
from tclgraph.training.trainable import Trainable

# A loss this many times that of the first batch does not recover.
_DIVERGED = 20.0
_SECONDS_BETWEEN_CHECKPOINTS = 60.0


def train(
    model: Trainable,
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
            "there are no validation events to select an epoch by; give valid a share of the split"
        )
    if run:
        record = {"model": model.name, "settings": asdict(config), "data": fingerprint(split)}
        run.open(record, resume=resume)
    reuse_memory()
    with use_torch_threads(config.threads), interruptible() as interruption:
        training = _Training(model, split, run, progress)
        if run and resume and run.checkpoint.exists():
            training.restore(run)
        while not training.is_finished:
            training.run_epoch(interruption)
            training.validate()
            if interruption.is_requested:
                raise KeyboardInterrupt
    if training.best is not None:
        model.network.load_state_dict(training.best)
    model.extend(StreamState.for_stream(split.events))
    model.observe(split.train)


class _Training:
    """A training run, between two batches."""

    def __init__(
        self,
        model: Trainable,
        split: Split,
        run: RunFolder | None,
        progress: ProgressCallback | None,
    ) -> None:
        self.model, self.split, self.run, self.progress = model, split, run, progress
        self.known = split.without_test()
        self.num_batches = model.prepare(split.train_only())
        self.optimizer = model.make_optimizer()
        for group in self.optimizer.param_groups:
            group["full_rate"] = group["lr"]
        decay = model.config.ema_decay
        self.ema = WeightEMA(model.network, decay) if decay else None
        self.best: Weights | None = None
        self.position = Position()
        self.heuristic = _best_heuristic(self.known, model.config) if run or progress else None
        self.last_saved = time.monotonic()

    def restore(self, run: RunFolder) -> None:
        """Continue from the checkpoint of a run."""
        stored, self.position = load_checkpoint(run.checkpoint, self.model.network, self.optimizer)
        self.best = stored.best
        if self.ema and stored.ema:
            self.ema.weights = stored.ema

    @property
    def is_finished(self) -> bool:
        config, position = self.model.config, self.position
        if position.epoch >= config.epochs:
            return True
        epochs_without_gain = position.epoch - (position.best_epoch or 0)
        return config.patience is not None and epochs_without_gain >= config.patience

    def run_epoch(self, interruption: Interruption) -> None:
        """Train on the batches of the current epoch that are left."""
        position = self.position
        order = np.arange(self.num_batches)
        if not self.model.in_order:
            np.random.default_rng([self.model.config.seed, position.epoch]).shuffle(order)
        started = time.perf_counter()
        with closing(drawn_batches(self.model, self._remaining_batches(order))) as drawn:
            for batch in drawn:
                loss = self.step(batch)
                if position.first_loss is None:
                    position.first_loss = loss
                position.loss_sum += loss
                position.batch += 1
                position.seconds += time.perf_counter() - started
                started = time.perf_counter()
                self._report()
                if interruption.is_requested:
                    self.save()
                    raise KeyboardInterrupt
                if time.monotonic() - self.last_saved > _SECONDS_BETWEEN_CHECKPOINTS:
                    self.save()

    def _remaining_batches(self, order: IntArray) -> Iterator[tuple[int, np.random.Generator]]:
        """Yield the remaining batches of an epoch, each with its random generator."""
        seed, epoch = self.model.config.seed, self.position.epoch
        for number in range(self.position.batch, self.num_batches):
            yield int(order[number]), np.random.default_rng([seed, epoch, number])

    def step(self, drawn: DrawnBatch) -> float:
        """Make one gradient step, and return the loss before it."""
        model, config, position = self.model, self.model.config, self.position
        loss = model.loss(drawn.batch, drawn.random)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        max_norm = config.max_gradient_norm or math.inf
        gradient_norm = clip_grad_norm_(model.network.parameters(), max_norm)
        self._refuse_divergence(loss.item(), gradient_norm.item())
        step = position.epoch * self.num_batches + position.batch + 1
        for group in self.optimizer.param_groups:
            group["lr"] = group["full_rate"] * min(1.0, step / (config.warmup_steps + 1))
        self.optimizer.step()
        if self.ema:
            self.ema.update(step)
        return loss.item()

    def validate(self) -> None:
        """Finish the epoch: rank the validation events, keep the weights if they are the best."""
        model, position = self.model, self.position
        started = time.perf_counter()
        with self.ema.applied() if self.ema else nullcontext():
            ranking = model.extended(self.known.events)
            report = validate(ranking, self.known, max_events=model.config.max_valid_events)
            position.history.append(
                {
                    "epoch": position.epoch + 1,
                    "loss": position.loss_sum / self.num_batches,
                    "events_per_second": round(self.split.train_end / position.seconds, 1),
                    "seconds": round(position.seconds + time.perf_counter() - started, 1),
                    "valid": report.groups["all"].metrics,
                }
            )
            position.epoch += 1
            position.batch, position.loss_sum, position.seconds = 0, 0.0, 0.0
            if best_epoch(position.history, model.config.selection_metric) == position.epoch:
                position.best_epoch = position.epoch
                self.best = weights_of(model.network)
                if self.run:
                    ranking = model.extended(self.split.events)
                    ranking.observe(self.split.train)
                    ranking.save(self.run.path)
        if self.run:
            self.run.write_metrics([{"heuristic": self.heuristic}, *position.history])
        self.save()
        self._report()

    def save(self) -> None:
        """Write the checkpoint of a run."""
        if self.run:
            stored = StoredWeights(best=self.best, ema=self.ema.weights if self.ema else None)
            network = self.model.network
            save_checkpoint(self.run.checkpoint, network, self.optimizer, stored, self.position)
        self.last_saved = time.monotonic()

    def _refuse_divergence(self, loss: float, gradient_norm: float) -> None:
        """Stop before a step that would spoil the weights."""
        position, run = self.position, self.run
        limit = _DIVERGED * max(1.0, abs(position.first_loss or 0.0))
        if math.isfinite(loss) and math.isfinite(gradient_norm) and loss <= limit:
            return
        checkpoint = f"; the last good checkpoint is in {run.path}" if run else ""
        raise InputError(
            f"training diverged: the loss is {loss:.4g} and the gradient norm {gradient_norm:.4g} "
            f"in batch {position.batch + 1} of epoch {position.epoch + 1}; lower learning_rate "
            f"(now {self.model.config.learning_rate:g}) or set max_gradient_norm{checkpoint}"
        )

    def _report(self) -> None:
        if self.progress is None:
            return
        config, position, heuristic = self.model.config, self.position, self.heuristic
        last = position.history[-1] if position.history else None
        loss = events_per_second = None
        if position.batch > 0:
            loss = position.loss_sum / position.batch
            num_events = min(position.batch * config.batch_size, self.split.train_end)
            events_per_second = num_events / position.seconds
        elif last:
            loss, events_per_second = last["loss"], last["events_per_second"]
        metric = config.selection_metric
        self.progress(
            ProgressUpdate(
                epoch=position.epoch,
                epochs=config.epochs,
                batch=position.batch,
                num_batches=self.num_batches,
                loss=loss,
                events_per_second=events_per_second,
                metric=metric,
                valid=last["valid"] if last else None,
                best_epoch=position.best_epoch,
                heuristic=(heuristic["model"], heuristic["valid"][metric]) if heuristic else None,
            )
        )


def best_epoch(history: list[dict[str, Any]], metric: str) -> int:
    """Return the number of the epoch with the best validation metric, the first of equals."""
    values = [record["valid"][metric] for record in history]
    best = min(values) if metric in LOWER_IS_BETTER else max(values)
    return values.index(best) + 1


def _best_heuristic(split: Split, config: TrainingConfig) -> dict[str, Any]:
    """Return the validation metrics that the model has to beat."""
    metric = config.selection_metric
    reports = [
        validate(heuristic().fit(split), split, max_events=config.max_valid_events)
        for heuristic in heuristics_for(split.events.kind)
    ]
    choose = min if metric in LOWER_IS_BETTER else max
    best = choose(reports, key=lambda report: report[metric])
    return {"model": best.model, "valid": best.groups["all"].metrics}
