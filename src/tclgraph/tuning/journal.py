"""The trials of a search, stored in optuna's journal: a file to which lines are only appended."""

import fcntl
from pathlib import Path

import optuna
from optuna.storages.journal import JournalFileBackend, JournalStorage
from optuna.trial import FrozenTrial, TrialState

from tclgraph.errors import InputError
from tclgraph.evaluation.metrics import LOWER_IS_BETTER
from tclgraph.tuning.byte_lock import ByteLock

# The pruner compares a trial with the others only if this many of them are complete, and not
# before this epoch.
_TRIALS_BEFORE_PRUNING = 3
_FIRST_PRUNING_EPOCH = 3


def open_journal(path: Path, write_lock: ByteLock, metric: str) -> optuna.Study:
    """Open the journal at `path`, or create it; trials are compared by `metric`."""
    # By default optuna logs a message for every study that is created, even in memory.
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with write_lock:
        _drop_incomplete_line(path)
    try:
        return optuna.create_study(
            storage=JournalStorage(JournalFileBackend(str(path), lock_obj=write_lock)),
            study_name="tune",
            load_if_exists=True,
            direction="minimize" if metric in LOWER_IS_BETTER else "maximize",
            pruner=optuna.pruners.MedianPruner(
                n_startup_trials=_TRIALS_BEFORE_PRUNING, n_warmup_steps=_FIRST_PRUNING_EPOCH
            ),
        )
    except (ValueError, KeyError) as error:
        raise InputError(f"cannot read {path} ({error}); start in another folder") from None


def fail_abandoned_trials(study: optuna.Study, active_lock: ByteLock) -> None:
    """Mark the running trials of killed processes as failed, and register this process as active.

    Every active process holds `active_lock` in shared mode. If another process holds it, the
    running trials may belong to that process, so they are left alone.
    """
    try:
        active_lock.acquire(fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        pass
    else:
        for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            study.tell(trial.number, state=TrialState.FAIL)
    active_lock.acquire(fcntl.LOCK_SH)


def started_trials(study: optuna.Study) -> list[FrozenTrial]:
    """Return the trials that are finished or running.

    Interrupted trials have failed without an error. They are left out, so that their combinations
    are tried again.
    """
    return [
        trial
        for trial in study.get_trials(deepcopy=False)
        if trial.state is not TrialState.WAITING
        and (trial.state is not TrialState.FAIL or "error" in trial.user_attrs)
    ]


def _drop_incomplete_line(path: Path) -> None:
    """Remove an incomplete last line, which a full disk can leave.

    Optuna cannot read any line that follows it.
    """
    with path.open("a+b") as file:
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)
