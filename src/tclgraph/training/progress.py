"""Progress of training, as a callback receives it and as people see it."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressUpdate:
    """State of training after a batch, or after the validation of an epoch (`batch` is then 0)."""

    epoch: int
    """Number of finished epochs."""
    epochs: int
    """Maximum number of epochs."""
    batch: int
    """Number of finished batches of the current epoch."""
    num_batches: int
    """Number of batches in an epoch."""
    loss: float | None
    """Mean loss of the current epoch so far."""
    events_per_second: float | None
    """Training speed in the current epoch."""
    metric: str
    """Validation metric that selects the best epoch."""
    valid: Mapping[str, float] | None
    """Validation metrics after the last finished epoch."""
    best_epoch: int | None
    """Number of the best epoch so far."""
    heuristic: tuple[str, float] | None
    """Name and validation metric of the best heuristic."""

    @property
    def is_epoch_end(self) -> bool:
        """Whether an epoch has just been validated."""
        return self.batch == 0

    @property
    def share(self) -> float:
        """Share of all batches of all epochs that is finished."""
        return (self.epoch + self.batch / self.num_batches) / self.epochs

    def __str__(self) -> str:
        words = [f"epoch {self.epoch + (not self.is_epoch_end)}/{self.epochs}"]
        if self.loss is not None:
            words.append(f"loss {self.loss:.4f}")
        if self.events_per_second is not None:
            words.append(f"{self.events_per_second:,.0f} events/s")
        if self.valid is not None:
            words.append(f"valid {self.metric} {self.valid[self.metric]:.4g}")
        if self.heuristic is not None:
            words.append(f"(best heuristic: {self.heuristic[0]} {self.heuristic[1]:.4g})")
        return "  ".join(words)


ProgressCallback: TypeAlias = Callable[[ProgressUpdate], None]


@contextmanager
def progress_bar(*, always: bool) -> Iterator[ProgressCallback | None]:
    """Yield a callback that shows a bar with the time left, on a terminal's stderr.

    Elsewhere it prints one line per epoch if `always`, and there is no callback otherwise.
    """
    if not sys.stderr.isatty():
        yield _print_epochs if always else None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = BarColumn(), TextColumn("{task.description}"), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("preparing (the first run on a machine compiles)", total=None)

        def show(update: ProgressUpdate) -> None:
            bar.update(task, description=str(update), completed=update.share, total=1.0)

        yield show


def _print_epochs(update: ProgressUpdate) -> None:
    if update.is_epoch_end:
        print(update, file=sys.stderr, flush=True)
