"""Settings of the ranker."""

from dataclasses import dataclass, field
from typing import Annotated

from pydantic import BeforeValidator, Field, PositiveFloat, PositiveInt

from tclgraph.dependency_graph.interval_scaling import Scaling
from tclgraph.encoding.two_stream import TwoStreamConfig
from tclgraph.models.ranker.experts import ExpertSettings, parse_experts, with_shared
from tclgraph.training.config import TrainingConfig


@dataclass(frozen=True, kw_only=True)
class EncoderConfig(TwoStreamConfig):
    """Settings of the optional encoder: those of TCL's, and how its match score is formed."""

    interval_scale: Scaling = "log"
    """Scaling of intervals. linear: Δ divided by its training mean; log: log(1 + Δ / unit) divided
    by its standard deviation, with a unit of a hundred-thousandth of this mean."""
    centered: bool = True
    """Whether the mean vector of sources is subtracted from a source's vector. What all sources
    have in common is the popularity of targets, which history features measure more recently."""


@dataclass(frozen=True, kw_only=True)
class RankerConfig(TrainingConfig):
    """The defaults were chosen on the validation part of several logs."""

    epochs: PositiveInt = 10
    batch_size: PositiveInt = 256
    learning_rate: PositiveFloat = 1e-3
    warmup_steps: Annotated[int, Field(ge=0)] = 50
    ema_decay: Annotated[float, Field(gt=0, lt=1)] | None = 0.99
    patience: PositiveInt | None = 3

    max_candidates: PositiveInt = 512
    """Number of candidates drawn per batch in training if there are more targets than this; they
    are weighted to stand for all, and the true targets of the batch are added."""
    repeat_head: bool = True
    """Whether targets the source has interacted with are scored by their own head, which also sees
    pair features. False: the explore head scores all targets."""
    gate: bool = True
    """Whether a gate first decides between repeat and new targets. False: one softmax over both."""
    repeat_bias: float = 1.5
    """Added to the gate's logit in ranking, not in training: sources repeat more in the time after
    training than the gate has learned."""
    activity_features: bool = True
    """Whether heads see the activity of candidates: how recently and often they took part."""
    source_features: bool = True
    """Whether heads and gate see the activity of the source and how often it tries new targets."""
    nearby_features: bool = True
    """Whether heads see how near candidates are to the source: through neighbors of neighbors, what
    others did next, and a short random walk."""
    head_learning_rate_factor: PositiveFloat = 3.0
    """Learning rate of gate and heads, as a multiple of that of the encoder."""
    encoder: EncoderConfig | None = field(default_factory=EncoderConfig)
    """Encoder whose match score joins the explore head. None: no encoder runs."""
    experts: Annotated[tuple[ExpertSettings, ...], BeforeValidator(parse_experts)] = ()
    """Models that are trained on their own and whose scores join the explore head: unfitted models,
    or names such as "tcl" or "tcl:negatives=all,sasrec". Learned ones have the seed, the device and
    the number of threads of the ranker."""

    def __post_init__(self) -> None:
        shared = {"seed": self.seed, "device": self.device, "threads": self.threads}
        experts = tuple(with_shared(expert, shared) for expert in self.experts)
        object.__setattr__(self, "experts", experts)

    def unused_settings(self) -> dict[str, str]:
        unused: dict[str, str] = {}
        if not self.repeat_head:
            unused |= dict.fromkeys(("gate", "repeat_bias"), "without repeat_head")
        elif not self.gate:
            unused["repeat_bias"] = "without gate"
        if self.encoder is not None:
            inner = self.encoder.unused_settings()
            unused |= {f"encoder.{name}": reason for name, reason in inner.items()}
        return unused
