"""Train several variants of a model and select the one with the best validation metric.

GraphSAGE selects its aggregator this way. In a run folder, every variant trains in a sub-folder of
its own, so an interrupted run resumes with the variant that was being trained.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

import numpy as np

from tclgraph.evaluation.metrics import LOWER_IS_BETTER
from tclgraph.evaluation.protocol import evaluate
from tclgraph.events.split import Split
from tclgraph.models.learned import LearnedModel
from tclgraph.training.progress import ProgressCallback, ProgressUpdate
from tclgraph.training.run_folder import RunFolder

Variant = TypeVar("Variant", bound=LearnedModel)


def fit_variants(
    variants: Mapping[str, Callable[[], Variant]],
    split: Split,
    *,
    run: RunFolder | None,
    resume: bool,
    progress: ProgressCallback | None,
) -> Iterator[tuple[str, Variant]]:
    """Build and fit every variant; yield each one that beats all variants before it.

    The last variant that is yielded is the best on the validation events. On a tie, the earlier
    variant wins.
    """
    combined = CombinedProgress(progress, len(variants)) if progress else None
    best = -np.inf
    for name, build in variants.items():
        variant = build()
        folder = run.path / name if run else None
        variant.fit(split, run=folder, resume=resume, progress=combined)
        metric = variant.config.selection_metric
        report = evaluate(variant, split, part="valid", with_heuristics=False)
        value = _higher_is_better(metric, report[metric])
        if value > best:
            best = value
            yield name, variant
        if combined:
            combined.next_variant()


class CombinedProgress:
    """Reports the training of several variants as one training with all their epochs."""

    def __init__(self, progress: ProgressCallback, num_variants: int) -> None:
        self._progress, self._num_variants = progress, num_variants
        self._num_finished = 0
        self._best: float = -np.inf
        self._best_epoch: int | None = None

    def __call__(self, update: ProgressUpdate) -> None:
        """Pass an update of the current variant on, with its epochs counted over all variants."""
        epoch = self._num_finished * update.epochs + update.epoch
        if update.is_epoch_end and update.valid is not None:
            value = _higher_is_better(update.metric, update.valid[update.metric])
            if value > self._best:
                self._best, self._best_epoch = value, epoch
        epochs = self._num_variants * update.epochs
        self._progress(replace(update, epoch=epoch, epochs=epochs, best_epoch=self._best_epoch))

    def next_variant(self) -> None:
        """Note that the current variant has finished."""
        self._num_finished += 1


def _higher_is_better(metric: str, value: float) -> float:
    """Return the metric's value with a sign by which a higher value is better."""
    return -value if metric in LOWER_IS_BETTER else value
