"""Chooses how far a ranker trusts its experts, on the validation events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tclgraph.evaluation.candidates import Candidates
from tclgraph.evaluation.metrics import LOWER_IS_BETTER, METRICS
from tclgraph.evaluation.protocol import pieces, sampled_runs
from tclgraph.evaluation.ranking import rank
from tclgraph.events.split import Split

if TYPE_CHECKING:
    from tclgraph.models.ranker.model import Ranker

VALUES = (0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)
"""Values of the trust in an expert that are tried."""
_MAX_EVENTS = 10_000
_EVENTS_PER_BLOCK = 256


def choose_trust(ranker: Ranker, split: Split) -> list[float]:
    """Return the trust in each expert that gives the best selection metric on validation events.

    The experts are considered one after another. An expert that gains nothing has a trust of 0. At
    most about 10,000 events are ranked. Afterwards the state of the ranker ends with train again.
    """
    num_experts = len(ranker.experts.models)
    trust = [0.0] * num_experts
    for expert in range(num_experts):
        tried = [[*trust[:expert], value, *trust[expert + 1 :]] for value in VALUES]
        values = _metrics(ranker, split, tried)
        trust = tried[int(np.argmax(values))]
    _start_after_train(ranker, split)
    return trust


def _metrics(ranker: Ranker, split: Split, tried: Sequence[Sequence[float]]) -> list[float]:
    """Return the selection metric for each trust that is tried; larger is better."""
    metric = ranker.config.selection_metric
    contribution = METRICS[metric].contribution
    # As in validation, targets that occur only in test are not ranked.
    known = np.unique(split.events.target[: split.valid_end])
    sums = np.zeros(len(tried))
    _start_after_train(ranker, split)
    for run, is_sampled in sampled_runs(split.valid, _MAX_EVENTS):
        if not is_sampled:
            ranker.observe(run)
            continue
        for block in pieces(run, _EVENTS_PER_BLOCK):
            revealed = np.zeros(len(block), np.int64)
            candidates = Candidates.all(known, split.events.num_targets, revealed)
            for number, scores in enumerate(ranker.score_with(block, tried)):
                ranks = rank(scores, block.target, candidates)
                sums[number] += contribution(ranks.middle).sum()
    sign = -1.0 if metric in LOWER_IS_BETTER else 1.0
    return [sign * float(total) for total in sums]


def _start_after_train(ranker: Ranker, split: Split) -> None:
    ranker.forget()
    ranker.observe(split.train)
