"""Which settings do best on validation: a search that lives in a folder. The only place that knows
optuna.

| file             | what                                                                      |
|------------------|---------------------------------------------------------------------------|
| config.json      | model, settings, data and search space; another search is refused         |
| environment.json | machine and versions                                                      |
| journal.log      | every trial, as optuna's journal has it: lines are only ever appended     |
| lock             | empty; parts of it are locked, so that several processes share a search   |

A trial is one combination of values. What it is worth is the validation figure of its best epoch;
test is never looked at. Which combination comes next depends on the seed and the trials that are
over, so a search that was interrupted goes on as if it had not been.
"""

import fcntl
import itertools
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Literal, Self

from tclgraph.errors import InputError
from tclgraph.evaluation.metrics import LOWER_IS_BETTER
from tclgraph.events.split import Split
from tclgraph.training.learned import LearnedModel
from tclgraph.training.progress import ProgressCallback, ProgressUpdate
from tclgraph.training.run_folder import RunFolder, fingerprint

try:
    import optuna
    from optuna.distributions import BaseDistribution, CategoricalDistribution
    from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock, JournalStorage
    from optuna.trial import FrozenTrial, TrialState
except ModuleNotFoundError:
    raise InputError('tclgraph tune needs optuna: pip install "tclgraph[tune]"') from None

# Bytes of the lock file, and what it means to hold them.
_WRITING, _TAKING, _SEARCHING = range(3)
# Trials drawn at random before what they found is learned from. Searches here are short.
_RANDOM_TRIALS = 5
# No trial is judged by others before so many of them are over, nor before this epoch.
_TRIALS_BEFORE_PRUNING = 3
_FIRST_PRUNING_EPOCH = 3
# When so many proposals in a row have been tried already, any that has not been will do.
_PROPOSALS = 30

Settings = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One combination that was tried."""

    settings: Settings
    state: Literal["complete", "pruned", "failed"]
    """pruned: stopped early, as it did worse than half of the others; failed: see `error`."""
    valid: dict[str, float] | None
    """Metrics of the best epoch."""
    epoch: int | None
    """The best one."""
    seconds: float
    error: str | None

    @classmethod
    def of(cls, trial: FrozenTrial) -> Self:
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
    """The budget ended within a trial."""


class _Lock(JournalFileOpenLock):
    """Of one byte of a file. The system opens it when its holder dies, by whatever.

    Optuna's own locks are files, which a killed process leaves behind and others wait for.
    """

    def __init__(self, file: IO[bytes], byte: int) -> None:
        self._file, self._byte = file, byte

    def acquire(self, how: int = fcntl.LOCK_EX) -> bool:
        fcntl.lockf(self._file, how, 1, self._byte)
        return True

    def release(self) -> None:
        fcntl.lockf(self._file, fcntl.LOCK_UN, 1, self._byte)

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class Search:
    """Trials of one model on one log; `open_search` makes it."""

    def __init__(
        self,
        build: Callable[..., LearnedModel],
        split: Split,
        space: Mapping[str, Sequence[Any]],
        *,
        own: Settings,
        metric: str,
        study: optuna.Study,
        seed: int,
        taking: _Lock,
    ) -> None:
        self.own = own
        """What the model has without tuning."""
        self.metric = metric
        self.combinations = [
            dict(zip(space, values, strict=True)) for values in itertools.product(*space.values())
        ]
        self._distributions: dict[str, BaseDistribution] = {
            name: CategoricalDistribution(values) for name, values in space.items()
        }
        self._build, self._split, self._study = build, split, study
        self._seed, self._taking = seed, taking

    def trials(self) -> list[Trial]:
        """All that are over, best first."""
        over = [Trial.of(one) for one in _taken(self._study) if one.state is not TrialState.RUNNING]
        sign = 1 if self.metric in LOWER_IS_BETTER else -1

        def order(trial: Trial) -> tuple[bool, float]:
            return trial.state == "failed", sign * trial.valid[self.metric] if trial.valid else 0.0

        return sorted(over, key=order)

    def run(
        self,
        *,
        seconds: float,
        max_trials: int | None = None,
        progress: ProgressCallback | None = None,
        tell: Callable[[Trial], None] | None = None,
    ) -> None:
        """Try combinations until time is up, there are `max_trials` in all, or none is left.

        The trial that meets the end of the time is dropped. `progress` is called as in `fit`, and
        `tell` after every trial.
        """
        end = time.monotonic() + seconds
        while time.monotonic() < end and (trial := self._take(max_trials)) is not None:
            try:
                over = self._train(trial, end, progress)
            except _OutOfTimeError:
                return
            if tell:
                tell(Trial.of(over))

    def _take(self, max_trials: int | None) -> optuna.Trial | None:
        """Begin a trial with a combination that nobody has taken; None if there is none to take."""
        with self._taking:
            taken = _taken(self._study)
            if len(taken) >= min(max_trials or len(self.combinations), len(self.combinations)):
                return None
            # One is waiting if a process was killed right here.
            if not self._study.get_trials(deepcopy=False, states=(TrialState.WAITING,)):
                self._study.enqueue_trial(self._choose(taken))
            return self._study.ask(self._distributions)

    def _choose(self, taken: list[FrozenTrial]) -> Settings:
        tried = [one.params for one in taken]
        if self.own not in tried:  # first, so that tuning never ends worse than not tuning
            return self.own
        chance = random.Random(f"{self._seed} {len(taken)}")
        sampler = optuna.samplers.TPESampler(
            seed=chance.randrange(2**32), n_startup_trials=_RANDOM_TRIALS
        )
        # In memory, as the journal is no place for proposals that are not taken.
        copy = optuna.create_study(sampler=sampler, direction=self._study.direction)
        copy.add_trials(taken)
        for _ in range(_PROPOSALS):
            proposal = copy.ask(self._distributions).params
            if proposal not in tried:
                return proposal
        return chance.choice([one for one in self.combinations if one not in tried])

    def _train(
        self, trial: optuna.Trial, end: float, progress: ProgressCallback | None
    ) -> FrozenTrial:
        def follow(update: ProgressUpdate) -> None:
            if progress:
                progress(update)
            if not update.is_epoch_end:
                # Not at the end of an epoch, which may have been the last.
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
            self._build(**trial.params).fit(self._split, progress=follow)
        except optuna.TrialPruned:
            return tell(trial, state=TrialState.PRUNED)
        except InputError as error:  # it diverged, or these settings do not go together
            trial.set_user_attr("error", str(error))
            return tell(trial, state=TrialState.FAIL)
        except BaseException:
            tell(trial, state=TrialState.FAIL)  # without an error: to be tried again
            raise
        return tell(trial, trial.user_attrs["best"]["valid"][self.metric])


@contextmanager
def open_search(
    build: Callable[..., LearnedModel],
    split: Split,
    search_space: Mapping[str, Sequence[Any]],
    *,
    folder: str | Path,
    seed: int = 0,
) -> Iterator[Search]:
    """Begin a search in a folder, or go on with the one that is there.

    `build` makes an unfitted model; it is given values of the search space by name. A value that
    the model has without being given any is tried even if the search space leaves it out.
    """
    model = build()
    own = {name: getattr(model.config, name) for name in search_space}
    space = {
        name: tuple(values) if own[name] in values else (own[name], *values)
        for name, values in search_space.items()
    }
    told = {
        "model": model.name,
        "settings": asdict(model.config),
        "data": fingerprint(split),
        "search_space": {name: list(values) for name, values in space.items()},
    }
    metric = model.config.choose_by
    run = RunFolder(folder)
    known = run.read_config()
    if known is not None:  # a folder that is refused stays as it is
        if "search_space" not in known:
            raise InputError(f"{folder} holds no search but a training run; give another folder")
        run.open(told, resume=True)
    with _lock_file(run.path) as file:
        taking, searching = _Lock(file, _TAKING), _Lock(file, _SEARCHING)
        with taking:
            run.open(told, resume=True)
            study = _open_study(run.path, _Lock(file, _WRITING), metric)
            _let_go_of_the_dead(study, searching)
        yield Search(
            build, split, space, own=own, metric=metric, study=study, seed=seed, taking=taking
        )


@contextmanager
def _lock_file(folder: Path) -> Iterator[IO[bytes]]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / "lock").open("a+b")
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error.strerror}") from None
    with file:
        yield file


def _open_study(folder: Path, writing: _Lock, metric: str) -> optuna.Study:
    # Optuna tells of every study that is made, also of those in memory.
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    path = folder / "journal.log"
    with writing:
        _drop_half_a_line(path)
    try:
        return optuna.create_study(
            storage=JournalStorage(JournalFileBackend(str(path), lock_obj=writing)),
            study_name="tune",
            load_if_exists=True,
            direction="minimize" if metric in LOWER_IS_BETTER else "maximize",
            pruner=optuna.pruners.MedianPruner(
                n_startup_trials=_TRIALS_BEFORE_PRUNING, n_warmup_steps=_FIRST_PRUNING_EPOCH
            ),
        )
    except (ValueError, KeyError) as error:
        raise InputError(f"cannot read {path} ({error}); begin in another folder") from None


def _drop_half_a_line(path: Path) -> None:
    """A full disk leaves one at the end, and optuna could read nothing that follows it."""
    with path.open("a+b") as file:
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)


def _let_go_of_the_dead(study: optuna.Study, searching: _Lock) -> None:
    """Free the trials of killed processes, unless another process is alive and may run them."""
    try:
        searching.acquire(fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        pass
    else:
        for one in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            study.tell(one.number, state=TrialState.FAIL)
    searching.acquire(fcntl.LOCK_SH)


def _taken(study: optuna.Study) -> list[FrozenTrial]:
    """Trials that are over or under way, without those that were interrupted."""
    return [
        one
        for one in study.get_trials(deepcopy=False)
        if one.state is not TrialState.WAITING
        and (one.state is not TrialState.FAIL or "error" in one.user_attrs)
    ]
