"""A search for the settings with the best validation metric, stored in a folder.

| file             | contents                                                                  |
|------------------|---------------------------------------------------------------------------|
| config.json      | model, settings, data and search space; a different search is refused     |
| environment.json | machine and versions                                                      |
| journal.log      | all trials, in optuna's journal format                                    |
| lock             | empty; processes that share the search lock single bytes of it            |

A trial trains the model with one combination of values. Its result is the validation metric of its
best epoch; the test events are never used. The next combination depends only on the seed and the
trials so far, so an interrupted search continues as if it had not been interrupted.
"""

import itertools
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Literal, Self

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.trial import FrozenTrial, TrialState

from tclgraph.errors import InputError
from tclgraph.evaluation.metrics import LOWER_IS_BETTER
from tclgraph.events.split import Split
from tclgraph.models.learned import LearnedModel
from tclgraph.training.progress import ProgressCallback, ProgressUpdate
from tclgraph.training.run_folder import RunFolder, fingerprint
from tclgraph.tuning.byte_lock import ByteLock
from tclgraph.tuning.journal import fail_abandoned_trials, open_journal, started_trials
from tclgraph.tuning.search_space import (
    SearchSpace,
    Settings,
    untuned_settings,
    with_untuned_values,
)

# Bytes of the lock file. A process holds the first while it writes to the journal, the second while
# it chooses a combination, and the third, in shared mode, as long as it is searching.
_WRITE_BYTE, _CHOICE_BYTE, _ACTIVE_BYTE = range(3)
# Number of random trials before the sampler uses their results. It is small because searches are
# short.
_RANDOM_TRIALS = 5
# After this many proposals that were already tried, the search picks an untried combination itself.
_MAX_PROPOSALS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A finished trial."""

    settings: Settings
    """Values of the searched settings."""
    state: Literal["complete", "pruned", "failed"]
    """pruned: stopped early because it was worse than the median trial; failed: see `error`."""
    valid: dict[str, float] | None
    """Validation metrics of the best epoch."""
    epoch: int | None
    """Number of the best epoch."""
    seconds: float
    """Duration of the trial."""
    error: str | None
    """Message of the error that ended the trial."""

    @classmethod
    def from_optuna(cls, trial: FrozenTrial) -> Self:
        """Convert a trial of the journal."""
        best = trial.user_attrs.get("best", {})
        states: dict[TrialState, Literal["complete", "pruned"]] = {
            TrialState.COMPLETE: "complete",
            TrialState.PRUNED: "pruned",
        }
        return cls(
            settings=trial.params,
            state=states.get(trial.state, "failed"),
            valid=best.get("valid"),
            epoch=best.get("epoch"),
            seconds=trial.duration.total_seconds() if trial.duration else 0.0,
            error=trial.user_attrs.get("error"),
        )


class _OutOfTimeError(Exception):
    """The time budget ended during a trial."""


class Search:
    """A search for the best settings of a model on a log; `open_search` creates it."""

    def __init__(
        self,
        build: Callable[..., LearnedModel],
        split: Split,
        space: SearchSpace,
        *,
        untuned: Settings,
        metric: str,
        study: optuna.Study,
        seed: int,
        choice_lock: ByteLock,
    ) -> None:
        self.untuned = untuned
        """Values of the searched settings without tuning."""
        self.metric = metric
        """Name of the validation metric that is optimized."""
        self.combinations = [
            dict(zip(space, values, strict=True)) for values in itertools.product(*space.values())
        ]
        """All combinations of values in the search space."""
        self._distributions: dict[str, BaseDistribution] = {
            name: CategoricalDistribution(values) for name, values in space.items()
        }
        self._build, self._split, self._study = build, split, study
        self._seed, self._choice_lock = seed, choice_lock

    def trials(self) -> list[Trial]:
        """Return all finished trials, best first."""
        finished = [
            Trial.from_optuna(trial)
            for trial in started_trials(self._study)
            if trial.state is not TrialState.RUNNING
        ]
        sign = 1 if self.metric in LOWER_IS_BETTER else -1

        def order(trial: Trial) -> tuple[bool, float]:
            return trial.state == "failed", sign * trial.valid[self.metric] if trial.valid else 0.0

        return sorted(finished, key=order)

    def run(
        self,
        *,
        seconds: float,
        max_trials: int | None = None,
        progress: ProgressCallback | None = None,
        on_trial_end: Callable[[Trial], None] | None = None,
    ) -> None:
        """Run trials until the time is up, `max_trials` exist, or every combination is tried.

        The trial that is running when the time is up is discarded. `max_trials` includes the
        trials of earlier calls. `progress` is called as in `fit`.
        """
        end = time.monotonic() + seconds
        while time.monotonic() < end and (trial := self._start_trial(max_trials)) is not None:
            try:
                finished = self._train(trial, end, progress)
            except _OutOfTimeError:
                return
            if on_trial_end:
                on_trial_end(Trial.from_optuna(finished))

    def _start_trial(self, max_trials: int | None) -> optuna.Trial | None:
        """Start a trial of an untried combination; return None if no further trial is wanted."""
        with self._choice_lock:
            started = started_trials(self._study)
            if len(started) >= min(max_trials or len(self.combinations), len(self.combinations)):
                return None
            # A process that is killed between the next two calls leaves a waiting trial.
            if not self._study.get_trials(deepcopy=False, states=(TrialState.WAITING,)):
                self._study.enqueue_trial(self._choose_combination(started))
            return self._study.ask(self._distributions)

    def _choose_combination(self, started: list[FrozenTrial]) -> Settings:
        tried = [trial.params for trial in started]
        if self.untuned not in tried:  # first, so that tuning never ends with a worse model
            return self.untuned
        generator = random.Random(f"{self._seed} {len(started)}")
        sampler = optuna.samplers.TPESampler(
            seed=generator.randrange(2**32), n_startup_trials=_RANDOM_TRIALS
        )
        # In memory, because rejected proposals must not be written to the journal.
        copy = optuna.create_study(sampler=sampler, direction=self._study.direction)
        copy.add_trials(started)
        for _ in range(_MAX_PROPOSALS):
            proposal = copy.ask(self._distributions).params
            if proposal not in tried:
                return proposal
        return generator.choice(
            [combination for combination in self.combinations if combination not in tried]
        )

    def _train(
        self, trial: optuna.Trial, end: float, progress: ProgressCallback | None
    ) -> FrozenTrial:
        """Train the model with the settings of a trial, and store the result in the journal."""

        def report_progress(update: ProgressUpdate) -> None:
            if progress:
                progress(update)
            if not update.is_epoch_end:
                # The time is not checked at the end of an epoch, because the last epoch counts
                # even if it ends late.
                if time.monotonic() > end:
                    raise _OutOfTimeError
                return
            assert update.valid is not None
            if update.best_epoch == update.epoch:
                trial.set_user_attr("best", {"epoch": update.epoch, "valid": update.valid})
            trial.report(update.valid[self.metric], update.epoch)
            if update.epoch < update.epochs and trial.should_prune():
                raise optuna.TrialPruned

        tell = self._study.tell
        try:
            self._build(**trial.params).fit(self._split, progress=report_progress)
        except optuna.TrialPruned:
            return tell(trial, state=TrialState.PRUNED)
        except InputError as error:  # training diverged, or the settings contradict each other
            trial.set_user_attr("error", str(error))
            return tell(trial, state=TrialState.FAIL)
        except BaseException:
            tell(trial, state=TrialState.FAIL)  # without an error, so it will be tried again
            raise
        return tell(trial, trial.user_attrs["best"]["valid"][self.metric])


@contextmanager
def open_search(
    build: Callable[..., LearnedModel],
    split: Split,
    search_space: SearchSpace,
    *,
    folder: str | Path,
    seed: int = 0,
) -> Iterator[Search]:
    """Start a search in a folder, or continue the search that the folder holds.

    `build` creates an unfitted model from values of the search space, given by name. The values
    that the model has without tuning are always tried, even if the search space lacks them.
    """
    model = build()
    untuned = untuned_settings(search_space, model.config)
    space = with_untuned_values(search_space, untuned)
    config = {
        "model": model.name,
        "settings": asdict(model.config),
        "data": fingerprint(split),
        "search_space": {name: list(values) for name, values in space.items()},
    }
    metric = model.config.selection_metric
    run = RunFolder(folder)
    stored_config = run.read_config()
    if stored_config is not None:  # checked before anything is written to the folder
        if "search_space" not in stored_config:
            raise InputError(f"{folder} holds a training run, not a search; give another folder")
        run.open(config, resume=True)
    with _lock_file(run.path) as file:
        choice_lock = ByteLock(file, _CHOICE_BYTE)
        with choice_lock:
            run.open(config, resume=True)
            study = open_journal(run.path / "journal.log", ByteLock(file, _WRITE_BYTE), metric)
            fail_abandoned_trials(study, ByteLock(file, _ACTIVE_BYTE))
        yield Search(
            build,
            split,
            space,
            untuned=untuned,
            metric=metric,
            study=study,
            seed=seed,
            choice_lock=choice_lock,
        )


@contextmanager
def _lock_file(folder: Path) -> Iterator[IO[bytes]]:
    """Open the lock file of a folder; closing it releases every lock that this process holds."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / "lock").open("a+b")
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error.strerror}") from None
    with file:
        yield file
