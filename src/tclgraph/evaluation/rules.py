"""The rules of an evaluation, as `evaluate` takes them."""

from typing import Literal, TypeAlias, TypedDict

Part: TypeAlias = Literal["valid", "test"]


class Rules(TypedDict, total=False):
    """Arguments of `evaluate` that say which events are ranked and what a model knows of them."""

    protocol: str
    """Which targets an event is ranked among: "paper" (the default) for all targets, "tgb" for
    those of the Temporal Graph Benchmark; see `evaluation.tgb`."""
    candidates: str
    """Which targets are candidates: "all" (the default) for the targets of the data set, "known"
    for those that have occurred before the event; see `evaluation.candidates`."""
    part: Part
    """Part of the split whose events are ranked; "test" by default."""
    update: str
    """When the state of the model follows the events: "streaming" (the default), "every=N",
    "frozen" or "frozen=valid"; see `Update`."""
    simultaneous: str
    """Whether events of the same time are revealed "in-order" (the default) or "together", after
    the last of them is ranked. "both" evaluates twice; the second report is in `together`."""
    mask_seen: bool
    """Whether the other targets that the source has interacted with are removed from each
    ranking; False by default."""
    seed: int
    """Seed of the bootstrap intervals; 0 by default."""
