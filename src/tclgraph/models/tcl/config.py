"""What TCL can be told: the paper's hyper-parameters, its ablations, and its ambiguous readings."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, PositiveFloat, PositiveInt

from tclgraph.layers.transformer import HeadWidth, Residual
from tclgraph.training.config import TrainingConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class TCLConfig(TrainingConfig):
    """The defaults are the paper's table; what it leaves open is marked so."""

    width: PositiveInt = 64
    """Size of every embedding, d in the paper."""
    heads: PositiveInt = 16
    levels: PositiveInt = 5
    """Levels of a sub-graph with its root, k in the paper."""
    blocks: PositiveInt = 1
    """Pairs of a graph Transformer layer and a cross-attentional layer, B in the paper."""
    input_dropout: Annotated[float, Field(ge=0, lt=1)] = 0.6
    negatives: PositiveInt = 5

    time_embedding: bool = True
    """False: "w/o TE" of the ablation."""
    depth_embedding: bool = True
    """False: "w/o DE"."""
    cross_attention: bool = True
    """False: "w/o CA-Transformer"."""
    objective: Literal["contrastive", "point-process"] = "contrastive"
    """point-process: "Two-Stream-Encoder+TPP"."""

    residual: Residual = "query"
    """What is added to attention: the projected query (as printed) or the layer's input (usual)."""
    head_width: HeadWidth = "split"
    """Heads that share the width between them (usual) or have all of it each (as printed)."""
    intervals: Literal["linear", "log"] = "linear"
    """Open in the paper. linear: divided by the training mean; log: log(1 + Δ) by its deviation."""
    feed_forward_width: PositiveInt | None = None
    """Open in the paper. None: as wide as the embeddings."""
    rank_by: Literal["density", "intensity"] = "density"
    """How the point process ranks: by the likelihood of now being the time, or by the rate."""
    survival_weight: PositiveFloat = 1.0
    """Of the point process's survival term."""

    negative_pool: PositiveInt | None = None
    """None: each event draws its negatives from all targets, as in the paper. A number: from so
    many targets, drawn anew for each batch, so that fewer sub-graphs have to be encoded. A negative
    is then still equally likely to be any target."""

    def __post_init__(self) -> None:
        if self.head_width == "split" and self.width % self.heads:
            raise ValueError(
                f"{self.heads} heads cannot split a width of {self.width} evenly; "
                "give a width that is a multiple of the number of heads"
            )


PRESETS: dict[str, dict[str, Any]] = {
    "paper": {},
    "fast": {"negative_pool": 256},
}
"""paper: to the letter. fast: the same model, trained on shared negatives."""
