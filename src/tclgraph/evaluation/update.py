"""Update rules: when the state of a model follows the events that it is evaluated on.

The update rule often changes the figures more than the choice of model does, so every report names
it.
"""

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tclgraph.errors import InputError

Kind: TypeAlias = Literal["streaming", "every", "frozen"]


@dataclass(frozen=True, slots=True)
class Update:
    """One of `streaming`, `every=N`, `frozen` (after train) and `frozen=valid`."""

    kind: Kind
    every: int = 1
    """Number of events per block, if the kind is `every`."""
    frozen_after: Literal["train", "valid"] = "train"
    """Last part that the model observes, if the kind is `frozen`."""

    @classmethod
    def parse(cls, text: str) -> "Update":
        """Return the update rule that a text names.

        >>> Update.parse("every=200")
        Update(kind='every', every=200, frozen_after='train')
        """
        if text == "streaming":
            return cls("streaming")
        if text in ("frozen", "frozen=train"):
            return cls("frozen")
        if text == "frozen=valid":
            return cls("frozen", frozen_after="valid")
        if match := re.fullmatch(r"every=([1-9]\d*)", text):
            return cls("every", every=int(match[1]))
        raise InputError(
            f"unknown update rule {text!r}; "
            "give streaming, every=N (like every=200), frozen or frozen=valid"
        )

    def __str__(self) -> str:
        if self.kind == "every":
            return f"every={self.every}"
        return (
            "frozen=valid" if self.kind == "frozen" and self.frozen_after == "valid" else self.kind
        )

    @property
    def meaning(self) -> str:
        """A short explanation for readers of a report."""
        match self.kind:
            case "streaming":
                return "state follows every event"
            case "every":
                return f"state refreshed after each block of {self.every:,} events"
            case "frozen":
                return f"state ends with {self.frozen_after}"
