"""Readings of the paper: what TCL gains or loses on validation if an open point is read otherwise.

The paper leaves points open and contradicts itself in others. Every variant changes one of them,
with three seeds, and everything else is as in `TCL()`. The jobs rank the validation part, so that
the choice among readings does not depend on test events.
"""

from dataclasses import dataclass, replace
from typing import Any

from tclgraph.studies.study import Entry, OpenLog, Role, Study

_SEEDS = 3
_VARIANTS: dict[str, dict[str, Any]] = {
    "all other targets as negatives, as the loss sums": {"negatives": "all"},
    "heads of width d, as printed": {"head_width": "full"},
    "attention divided by √d, as printed": {"attention_scale": "width"},
    "residual from the layer's input": {"residual": "input"},
    "logarithms of intervals": {"interval_scale": "log"},
    "40 epochs": {"epochs": 40},
    "warm-up over 140 steps": {"warmup_steps": 140},
    "learning rate 0.001": {"learning_rate": 0.001},
    "initial deviation 0.1": {"input_deviation": 0.1},
    "initial deviation 1": {"input_deviation": 1.0},
}
"""Settings of every variant, the printed ones first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingStudy(Study):
    """TCL with its defaults, and variants that read one point of the paper otherwise."""

    defaults: Entry
    variants: tuple[Entry, ...]

    @property
    def name(self) -> str:
        return "reading"

    @property
    def entries(self) -> tuple[Entry, ...]:
        return (self.defaults, *self.variants)


def reading_study(log: OpenLog) -> ReadingStudy:
    """Return the study of a log; if senders and receivers are the same, also with two id spaces."""
    variants = [_entry(name, log, settings) for name, settings in _VARIANTS.items()]
    if log.split.events.kind == "one-mode":
        bipartite = OpenLog.open(replace(log.spec, kind="bipartite"))
        variants.insert(0, _entry("two ids per person, as sender and receiver", bipartite, {}))
    return ReadingStudy(log=log, defaults=_entry("TCL()", log, {}), variants=tuple(variants))


def _entry(name: str, log: OpenLog, settings: dict[str, Any]) -> Entry:
    job = log.job("tcl", settings, part="valid")
    return Entry(name=name, role=Role.OURS, jobs=(job,), max_seeds=_SEEDS)
