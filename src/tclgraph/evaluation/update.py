"""When a model's state follows the events that it is tested on.

The rule moves every figure more than the choice of model does, so it is always named.
"""

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tclgraph.errors import InputError

Kind: TypeAlias = Literal["streaming", "every", "frozen"]


@dataclass(frozen=True, slots=True)
class Update:
    """One of `streaming`, `every=N`, `frozen` (at the end of train) and `frozen=valid`."""

    kind: Kind
    every: int = 1
    """Events per block, for `every`."""
    frozen_after: Literal["train", "valid"] = "train"

    @classmethod
    def parse(cls, text: str) -> "Update":
        """The rule that a text names.

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
        """For people."""
        match self.kind:
            case "streaming":
                return "state follows every event"
            case "every":
                return f"state refreshed after each block of {self.every:,} events"
            case "frozen":
                return f"state ends with {self.frozen_after}"
