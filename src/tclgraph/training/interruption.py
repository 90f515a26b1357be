"""Ctrl-C during training: finish the batch or the validation, save, then stop."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass
class Interruption:
    """Whether the user has asked to stop."""

    is_requested: bool = False


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Turn the first Ctrl-C into a request to stop soon; a second one stops at once."""
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield interruption  # signals reach the main thread only
        return

    def request(*_: Any) -> None:
        if interruption.is_requested:
            raise KeyboardInterrupt
        interruption.is_requested = True

    original = signal.signal(signal.SIGINT, request)
    try:
        yield interruption
    finally:
        signal.signal(signal.SIGINT, original)
