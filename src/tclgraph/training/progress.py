"""What is shown while a model trains."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressUpdate:
    """Where training stands, after a batch or after an epoch's validation (batch is then 0)."""

    epoch: int
    """Epochs that are over."""
    epochs: int
    batch: int
    num_batches: int
    loss: float | None
    """Mean over the epoch so far."""
    events_per_second: float | None
    metric: str
    """Which of the validation metrics says what epoch is best."""
    valid: Mapping[str, float] | None
    """Metrics after the last finished epoch."""
    best_epoch: int | None
    heuristic: tuple[str, float] | None
    """Name and validation figure of the best heuristic."""

    @property
    def is_epoch_end(self) -> bool:
        return self.batch == 0

    @property
    def share(self) -> float:
        """How much of all epochs is over."""
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
            words.append(f"(heuristic {self.heuristic[0]} {self.heuristic[1]:.4g})")
        return "  ".join(words)


ProgressCallback: TypeAlias = Callable[[ProgressUpdate], None]


@contextmanager
def progress_bar(*, always: bool) -> Iterator[ProgressCallback | None]:
    """A bar with time left where someone watches; else a line per epoch if `always`, on stderr."""
    if not sys.stderr.isatty():
        yield _print_epochs if always else None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = BarColumn(), TextColumn("{task.description}"), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("preparing (the first run on a machine compiles)", total=None)

        def show(update: ProgressUpdate) -> None:
            bar.update(
                task,
                description=str(update),
                completed=update.share,
                total=1.0,
            )

        yield show


def _print_epochs(update: ProgressUpdate) -> None:
    if update.is_epoch_end:
        print(update, file=sys.stderr, flush=True)
