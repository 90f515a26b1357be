"""Settings of TCL: the paper's hyper-parameters, its ablations, and the points it leaves open."""

from dataclasses import dataclass
from typing import Literal

from pydantic import PositiveFloat, PositiveInt

from tclgraph.encoding.two_stream import TwoStreamConfig
from tclgraph.training.config import TrainingConfig


@dataclass(frozen=True, kw_only=True)
class TCLConfig(TwoStreamConfig, TrainingConfig):
    """The defaults are those of the paper's table."""

    negatives: PositiveInt | Literal["all"] = 5
    """Targets each true target is contrasted with: a number drawn per event (the paper's table has
    5), or all other targets of the training stream (as the loss equation sums)."""
    negative_pool: PositiveInt | None = None
    """Size of a pool of targets, drawn anew for each batch, from which the events of the batch draw
    their negatives; fewer sub-graphs have to be encoded, and every target is still equally likely.
    None: each event draws from all targets, as in the paper."""
    objective: Literal["contrastive", "point-process"] = "contrastive"
    """Training objective. point-process: "Two-Stream-Encoder+TPP" of the ablation."""
    rank_by: Literal["density", "intensity"] = "density"
    """What the point process ranks by: the likelihood that the pair interacts now, or its rate."""
    survival_weight: PositiveFloat = 1.0
    """Weight of the survival term of the point process."""

    def __post_init__(self) -> None:
        TwoStreamConfig.__post_init__(self)
        if self.negatives == "all" and self.objective == "point-process":
            raise ValueError(
                "negatives=all does not work with objective=point-process; "
                "give a number, such as negatives=5"
            )

    def unused_settings(self) -> dict[str, str]:
        unused = TwoStreamConfig.unused_settings(self)
        if self.negatives == "all":
            unused["negative_pool"] = "with negatives=all"
        if self.objective == "contrastive":
            unused["rank_by"] = "with objective=contrastive"
            unused["survival_weight"] = "with objective=contrastive"
        return unused
