"""The ablation (Table 3) of TCL and of the ranker: what a model loses without each of its parts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tclgraph.studies.published import AblationRow, published_ablation
from tclgraph.studies.study import Entry, OpenLog, Role, Study

# The training settings of the ranker, for a point process that is compared with it.
_RANKER_TRAINING = {
    "interval_scale": "log",
    "batch_size": 256,
    "learning_rate": 1e-3,
    "warmup_steps": 50,
    "ema_decay": 0.99,
    "epochs": 10,
    "patience": 3,
}
WITHOUT_HISTORY = {
    "repeat_head": False,
    "activity_features": False,
    "source_features": False,
    "nearby_features": False,
}
"""Settings of a ranker without history features: its encoder alone makes the scores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AblationStudy(Study):
    """The variants of one model on one log."""

    model: Literal["tcl", "ranker"]
    without: tuple[Entry, ...]
    """Variants without a part of the encoder."""
    point_process: Entry
    """The two-stream encoder, trained as a temporal point process."""
    without_history: Entry | None
    """The ranker without history features. The point process has no history features either, so it
    is compared with this entry; None for TCL, which has none."""
    full: Entry

    @property
    def name(self) -> str:
        return f"ablation-{self.model}"

    @property
    def entries(self) -> tuple[Entry, ...]:
        reference = () if self.without_history is None else (self.without_history,)
        return (*self.without, self.point_process, *reference, self.full)

    @property
    def contrastive(self) -> Entry:
        """Return the entry that differs from the point process in its objective alone."""
        return self.without_history or self.full


def tcl_ablation(log: OpenLog) -> AblationStudy:
    """Return the ablation of TCL."""
    return AblationStudy(
        log=log,
        model="tcl",
        without=(
            _row(log, AblationRow.NO_TIME_EMBEDDING, "tcl", {"time_embedding": False}),
            _row(log, AblationRow.NO_DEPTH_EMBEDDING, "tcl", {"depth_embedding": False}),
            _row(log, AblationRow.NO_CROSS_ATTENTION, "tcl", {"cross_attention": False}),
        ),
        point_process=_row(log, AblationRow.POINT_PROCESS, "tcl", {"objective": "point-process"}),
        without_history=None,
        full=_row(log, AblationRow.FULL, "tcl", {}),
    )


def ranker_ablation(log: OpenLog) -> AblationStudy:
    """Return the ablation of the ranker, with the paper's figures for TCL beside it."""
    without_encoder_parts = (
        (AblationRow.NO_TIME_EMBEDDING, {"encoder.time_embedding": False}),
        (AblationRow.NO_DEPTH_EMBEDDING, {"encoder.depth_embedding": False}),
        (AblationRow.NO_CROSS_ATTENTION, {"encoder.cross_attention": False}),
    )
    # The ranker has no point process, so TCL is trained as one, with the ranker's settings.
    point_process = {"objective": "point-process", **_RANKER_TRAINING}
    without_history = {**WITHOUT_HISTORY, "encoder.centered": False}
    return AblationStudy(
        log=log,
        model="ranker",
        without=tuple(
            _row(log, row, "ranker", settings) for row, settings in without_encoder_parts
        ),
        point_process=_row(log, AblationRow.POINT_PROCESS, "tcl", point_process),
        without_history=Entry(
            name="without history features",
            role=Role.OURS,
            jobs=(log.job("ranker", without_history),),
        ),
        full=_row(log, AblationRow.FULL, "ranker", {}),
    )


def _row(log: OpenLog, row: AblationRow, model: str, settings: Mapping[str, Any]) -> Entry:
    return Entry(
        name=row.value,
        role=Role.OURS,
        jobs=(log.job(model, settings),),
        published=published_ablation(row, log.spec.name),
    )
