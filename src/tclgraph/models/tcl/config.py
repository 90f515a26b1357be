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

    contrast: Literal["sampled", "full"] = "sampled"
    """sampled: with `negatives` targets, as in the paper. full: with all of them, which the
    settings from here on need."""
    contrast_limit: PositiveInt = 512
    """Of more targets than this, so many are drawn for each batch to stand for all."""
    embeddings: bool = True
    """False: only the terms below make the score."""
    centered: bool = False
    """Of a source's vector only the difference from other sources' counts."""
    pair_history: bool = False
    """What source and target have had with each other: when last, how often, who began."""
    repeat_gate: bool = False
    """First whether it will be a target that was met before, then which. False: all at once."""
    repeat_bias: float = 0.0
    """Added to the gate in ranking, not in training: sources settle down, so that they repeat more
    in the time to come than the gate has learned."""
    candidate_state: bool = False
    """How long ago and how often every target acted and was acted upon."""
    source_state: bool = False
    """The same of the source, the time since its last event, and how often it tries new targets."""
    nearby: bool = False
    """Targets that are near the source: what its partners' partners met and turned to next, and
    where a walk of three steps among acquaintances ends."""
    term_rate: PositiveFloat = 3.0
    """How many times faster these terms learn than the encoder."""

    def __post_init__(self) -> None:
        terms = (
            "centered",
            "pair_history",
            "repeat_gate",
            "candidate_state",
            "source_state",
            "nearby",
        )
        wanted = [name for name in terms if getattr(self, name)]
        if self.contrast == "sampled" and (wanted or not self.embeddings):
            cause = f"{wanted[0]}=True" if wanted else "embeddings=False"
            raise ValueError(f"{cause} needs contrast=full")
        if self.contrast == "full" and self.objective != "contrastive":
            raise ValueError(
                "a full contrast needs objective=contrastive; take preset=paper, "
                "or contrast=sampled, for the point process"
            )
        if self.head_width == "split" and self.width % self.heads:
            raise ValueError(
                f"{self.heads} heads cannot split a width of {self.width} evenly; "
                "give a width that is a multiple of the number of heads"
            )


PRESETS: dict[str, dict[str, Any]] = {
    "default": {
        "contrast": "full",
        "centered": True,
        "pair_history": True,
        "repeat_gate": True,
        "repeat_bias": 1.5,
        "candidate_state": True,
        "source_state": True,
        "nearby": True,
        "intervals": "log",
        "batch_size": 256,
        "learning_rate": 1e-3,
        "warm_up": 50,
        "ema_decay": 0.99,
        "epochs": 10,
        "patience": 3,
    },
    "paper": {},
    "fast": {"negative_pool": 256},
}
"""default: what does best here. paper: to the letter. fast: that, trained on shared negatives."""
