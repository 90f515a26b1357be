"""Leave-one-out: what the ranker loses on validation without each of its parts.

All variants are trained for four epochs, which is enough to compare them. The complete model has
three seeds, whose deviation shows which differences matter; every variant has one. The jobs rank
the validation part, so that no decision about the model depends on test events.

The `ahead` variant trains on the first 80 % of the training events and ranks the validation part.
So validation is as far from training as test is from the training of the other studies. It has
only the parts whose value depends on that distance.
"""

from dataclasses import dataclass, replace
from typing import Any

from tclgraph.evaluation.rules import Part
from tclgraph.studies.ablation import WITHOUT_HISTORY
from tclgraph.studies.study import Entry, OpenLog, Role, Study

_TRAINING = {"epochs": 4}
_COMPLETE_SEEDS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    name: str
    without: dict[str, Any]
    """Settings of the ranker without the part."""
    is_ranked_ahead: bool = False


_PARTS = (
    _Part(name="encoder", without={"encoder": None}, is_ranked_ahead=True),
    _Part(name="centering", without={"encoder.centered": False}, is_ranked_ahead=True),
    _Part(name="repeat head", without={"repeat_head": False}),
    _Part(name="gate", without={"gate": False}),
    _Part(name="repeat bias", without={"repeat_bias": 0.0}, is_ranked_ahead=True),
    _Part(name="activity features", without={"activity_features": False}),
    _Part(name="source features", without={"source_features": False}),
    _Part(name="nearby features", without={"nearby_features": False}, is_ranked_ahead=True),
    _Part(name="log intervals", without={"encoder.interval_scale": "linear"}),
    _Part(name="EMA", without={"ema_decay": None}),
    _Part(name="history features", without=WITHOUT_HISTORY),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartsStudy(Study):
    """The ranker, complete and without each of its parts."""

    complete: Entry
    without: tuple[Entry, ...]
    is_ahead: bool

    @property
    def name(self) -> str:
        return "parts-ahead" if self.is_ahead else "parts"

    @property
    def remark(self) -> str:
        return "trained on the first 80 % of the training events" if self.is_ahead else ""

    @property
    def entries(self) -> tuple[Entry, ...]:
        return (self.complete, *self.without)


def parts_study(log: OpenLog) -> PartsStudy:
    """Return the study that ranks the validation part after the training part."""
    without = [_without(log, part) for part in _PARTS]
    if log.split.events.kind == "one-mode":
        # One identity for both roles of a node is a property of the log, not of the model.
        bipartite = OpenLog.open(replace(log.spec, kind="bipartite"))
        without.append(
            Entry(
                name="without one identity",
                role=Role.OURS,
                jobs=(bipartite.job("ranker", _TRAINING, part="valid"),),
                max_seeds=1,
            )
        )
    return PartsStudy(log=log, complete=_complete(log), without=tuple(without), is_ahead=False)


def parts_ahead_study(log: OpenLog) -> PartsStudy:
    """Return the study that ranks the validation part after four fifths of the training part."""
    ahead = OpenLog.open(replace(log.spec, ahead=True))
    without = tuple(_without(ahead, part) for part in _PARTS if part.is_ranked_ahead)
    return PartsStudy(log=ahead, complete=_complete(ahead), without=without, is_ahead=True)


def _complete(log: OpenLog) -> Entry:
    return Entry(
        name="complete",
        role=Role.OURS,
        jobs=(log.job("ranker", _TRAINING, part=_ranked_part(log)),),
        max_seeds=_COMPLETE_SEEDS,
    )


def _without(log: OpenLog, part: _Part) -> Entry:
    return Entry(
        name=f"without {part.name}",
        role=Role.OURS,
        jobs=(log.job("ranker", {**part.without, **_TRAINING}, part=_ranked_part(log)),),
        max_seeds=1,
    )


def _ranked_part(log: OpenLog) -> Part:
    # With `ahead` the log ends with its validation part, which its split calls test.
    return "test" if log.spec.ahead else "valid"
