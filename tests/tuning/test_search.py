"""Tests of the search with models that train in a fraction of a second."""

import json
import time
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest

from tclgraph.errors import InputError
from tclgraph.events.split import Split
from tclgraph.events.synthetic import SyntheticConfig, synthesize
from tclgraph.models.tcl.model import TCL
from tclgraph.training.progress import ProgressUpdate
from tclgraph.tuning.search import Search, Trial, open_search
from tclgraph.tuning.search_space import SearchSpace

SMALL: dict[str, Any] = {
    "epochs": 1,
    "batch_size": 64,
    "width": 4,
    "heads": 2,
    "levels": 3,
    "threads": 1,
    "learning_rate": 1e-3,
}
SPACE: SearchSpace = {"learning_rate": (1e-3, 5e-3, 2e-2), "input_dropout": (0.1, 0.6)}
LARGER_SPACE: SearchSpace = {**SPACE, "negatives": (1, 5)}
NO_LIMIT = 600.0
"""More seconds than any search here takes."""


@pytest.fixture(scope="module")
def split() -> Split:
    return synthesize(SyntheticConfig(events=300, sources=12, targets=15)).split(0.6, 0.2)


def search_in(
    folder: Path, split: Split, space: SearchSpace = SPACE, *, seed: int = 0, **settings: Any
) -> AbstractContextManager[Search]:
    build = partial(TCL, **{**SMALL, **settings})
    return open_search(build, split, space, folder=folder, seed=seed)


def combinations(trials: list[Trial]) -> set[tuple[Any, ...]]:
    return {tuple(trial.settings.values()) for trial in trials}


def without_seconds(trials: list[Trial]) -> list[Trial]:
    return [replace(trial, seconds=0.0) for trial in trials]


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.iterdir()}


def test_every_combination_is_tried_once_and_the_best_comes_first(
    split: Split, tmp_path: Path
) -> None:
    finished: list[Trial] = []
    with search_in(tmp_path, split) as search:
        search.run(seconds=NO_LIMIT, on_trial_end=finished.append)
        trials = search.trials()
    assert len(finished) == len(trials) == len(combinations(trials)) == 6
    assert finished[0].settings == search.untuned == {"learning_rate": 1e-3, "input_dropout": 0.6}
    figures = [trial.valid["MRR"] for trial in trials if trial.valid]
    assert figures == sorted(figures, reverse=True)
    assert len(set(figures)) > 1
    assert {trial.state for trial in trials} == {"complete"}
    with search_in(tmp_path, split) as search:
        search.run(seconds=NO_LIMIT, on_trial_end=finished.append)
    assert len(finished) == 6


def test_the_result_of_a_trial_is_the_best_epoch_of_training(split: Split, tmp_path: Path) -> None:
    settings = {**SMALL, "epochs": 8, "learning_rate": 0.05}
    with search_in(tmp_path / "study", split, **settings) as search:
        search.run(seconds=NO_LIMIT, max_trials=4)
        trials = search.trials()
    for number, trial in enumerate(trials):
        run = tmp_path / f"run-{number}"
        TCL(**{**settings, **trial.settings}).fit(split, run=run)
        lines = (run / "metrics.jsonl").read_text().splitlines()[1:]
        figures = [json.loads(line)["valid"]["MRR"] for line in lines]
        assert trial.valid is not None
        assert trial.valid["MRR"] == max(figures)
        assert trial.epoch == figures.index(max(figures)) + 1
    # Otherwise the result could be that of the last epoch.
    assert any(trial.epoch != 8 for trial in trials)


def test_trials_are_sorted_upwards_if_the_metric_is_mean_rank(split: Split, tmp_path: Path) -> None:
    with search_in(tmp_path, split, selection_metric="MR") as search:
        search.run(seconds=NO_LIMIT, max_trials=4)
        figures = [trial.valid["MR"] for trial in search.trials() if trial.valid]
    assert figures == sorted(figures)
    assert len(set(figures)) > 1


def test_the_untuned_value_is_tried_first_even_if_the_space_lacks_it(
    split: Split, tmp_path: Path
) -> None:
    with search_in(tmp_path, split, learning_rate=3e-3) as search:
        search.run(seconds=NO_LIMIT, max_trials=1)
        assert search.trials()[0].settings["learning_rate"] == 3e-3
    assert len(search.combinations) == 8


def test_an_interrupted_search_equals_an_uninterrupted_one_with_the_same_seed(
    split: Split, tmp_path: Path
) -> None:
    # Enough trials for the sampler to use the results of the first ones.
    for count in (2, 3, 6, 8):
        with search_in(tmp_path / "interrupted", split, LARGER_SPACE) as search:
            search.run(seconds=NO_LIMIT, max_trials=count)
            interrupted = search.trials()
        assert len(interrupted) == count
    by_seed = []
    for seed in (0, 1):
        with search_in(tmp_path / f"seed{seed}", split, LARGER_SPACE, seed=seed) as search:
            search.run(seconds=NO_LIMIT, max_trials=8)
            by_seed.append(search.trials())
    assert without_seconds(interrupted) == without_seconds(by_seed[0])
    assert combinations(by_seed[0]) != combinations(by_seed[1])


def test_test_events_do_not_influence_the_search(split: Split, tmp_path: Path) -> None:
    events = split.events
    target = events.target.copy()
    random = np.random.default_rng(5)
    target[split.valid_end :] = random.integers(events.num_targets, size=split.sizes["test"])
    other_test_events = replace(split, events=replace(events, target=target))
    results = []
    for number, data in enumerate((split, other_test_events)):
        with search_in(tmp_path / str(number), data) as search:
            search.run(seconds=NO_LIMIT, max_trials=4)
            results.append(without_seconds(search.trials()))
    assert results[0] == results[1]


def test_a_trial_that_exceeds_the_budget_is_discarded_and_tried_again(
    split: Split, tmp_path: Path
) -> None:
    update_times: list[float] = []
    with search_in(tmp_path, split, epochs=100_000) as search:
        end = time.monotonic() + 0.5
        search.run(seconds=0.5, progress=lambda _: update_times.append(time.monotonic()))
        assert search.trials() == []
    # At most the end of an epoch and the batch that follows it.
    assert sum(update_time > end for update_time in update_times) <= 2
    with search_in(tmp_path, split, epochs=100_000) as search:
        next_trial = search._start_trial(None)
    assert next_trial is not None
    assert next_trial.params == search.untuned


def test_a_trial_whose_last_epoch_ends_after_the_budget_counts(
    split: Split, tmp_path: Path
) -> None:
    def wait_for_the_end(update: ProgressUpdate) -> None:
        if update.is_epoch_end:
            time.sleep(max(0.0, end - time.monotonic()))

    with search_in(tmp_path, split) as search:
        search._build(epochs=1).fit(split)  # compiles, which would exceed the budget
        end = time.monotonic() + 3.0
        search.run(seconds=3.0, progress=wait_for_the_end)
        assert [trial.state for trial in search.trials()] == ["complete"]


def expected_epochs(curve: list[float], complete_curves: list[list[float]]) -> int:
    """Return after how many of 8 epochs the median rule stops a trial."""
    if len(complete_curves) < 3:
        return 8
    for epoch in range(3, 8):
        median = np.median([other[epoch - 1] for other in complete_curves])
        if max(curve[:epoch]) < median:
            return epoch
    return 8


def test_a_trial_below_the_median_is_pruned(split: Split, tmp_path: Path) -> None:
    space = {"learning_rate": (0.05, 0.02, 0.01, 1e-9, 2e-9, 3e-9)}
    curves: list[list[float]] = [[]]
    finished: list[Trial] = []

    def progress(update: ProgressUpdate) -> None:
        if update.is_epoch_end and update.valid is not None:
            curves[-1].append(update.valid["MRR"])

    def on_trial_end(trial: Trial) -> None:
        finished.append(trial)
        curves.append([])

    with search_in(tmp_path, split, space, epochs=8, learning_rate=0.05) as search:
        search.run(seconds=NO_LIMIT, progress=progress, on_trial_end=on_trial_end)
        assert search.trials()[0].state == "complete"
    assert {trial.state for trial in finished} == {"complete", "pruned"}
    complete_curves: list[list[float]] = []
    for trial, curve in zip(finished, curves, strict=False):
        num_epochs = expected_epochs(curve, complete_curves)
        assert len(curve) == num_epochs
        assert trial.state == ("complete" if num_epochs == 8 else "pruned")
        assert trial.valid is not None
        assert trial.valid["MRR"] == max(curve)
        if num_epochs == 8:
            complete_curves.append(curve)


def test_a_trial_that_diverges_fails_and_the_search_continues(split: Split, tmp_path: Path) -> None:
    space = {"learning_rate": (1e-3, 1e9, 2e-3)}
    with search_in(tmp_path, split, space, epochs=2) as search:
        search.run(seconds=NO_LIMIT)
        trials = search.trials()
    assert [trial.state for trial in trials] == ["complete", "complete", "failed"]
    assert trials[-1].error is not None
    assert trials[-1].error.startswith("training diverged")
    with search_in(tmp_path, split, space, epochs=2) as search:
        search.run(seconds=NO_LIMIT)
        assert search.trials() == trials  # the failed trial is not repeated


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epochs": 2}, r"other settings \(epochs: then 1, now 2\)"),
        (
            {"space": {"learning_rate": (1e-3, 1e-4), "input_dropout": (0.1, 0.6)}},
            r"other search_space \(learning_rate: then",
        ),
    ],
)
def test_a_different_search_is_refused_and_leaves_the_folder_unchanged(
    split: Split, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    with search_in(tmp_path, split) as search:
        search.run(seconds=NO_LIMIT, max_trials=1)
    before = contents(tmp_path)
    with pytest.raises(InputError, match=message), search_in(tmp_path, split, **change):
        pass
    assert contents(tmp_path) == before


def test_the_folder_of_a_training_run_is_refused_and_left_unchanged(
    split: Split, tmp_path: Path
) -> None:
    TCL(**SMALL).fit(split, run=tmp_path)
    before = contents(tmp_path)
    with (
        pytest.raises(InputError, match="holds a training run, not a search"),
        search_in(tmp_path, split),
    ):
        pass
    assert contents(tmp_path) == before


def test_an_incomplete_last_line_of_the_journal_is_dropped(split: Split, tmp_path: Path) -> None:
    with search_in(tmp_path, split) as search:
        search.run(seconds=NO_LIMIT, max_trials=2)
        before = search.trials()
    with (tmp_path / "journal.log").open("a") as file:
        file.write('{"op_code":4,"worker_')
    for count in (2, 3):
        with search_in(tmp_path, split) as search:
            search.run(seconds=NO_LIMIT, max_trials=count)
            trials = search.trials()
    assert len(trials) == 3
    assert [trial for trial in trials if trial in before] == before


def test_a_combination_that_was_chosen_but_not_started_is_started(
    split: Split, tmp_path: Path
) -> None:
    chosen = {"learning_rate": 2e-2, "input_dropout": 0.1}
    with search_in(tmp_path, split) as search:
        search.run(seconds=NO_LIMIT, max_trials=1)
        # The state after a kill between choosing a combination and starting its trial.
        search._study.enqueue_trial(chosen)
    with search_in(tmp_path, split) as search:
        search.run(seconds=NO_LIMIT, max_trials=2)
        assert chosen in [trial.settings for trial in search.trials()]
        search.run(seconds=NO_LIMIT)
        assert len(search.trials()) == len(combinations(search.trials())) == 6


def test_a_file_that_is_not_a_journal_is_refused(split: Split, tmp_path: Path) -> None:
    with search_in(tmp_path, split):
        pass
    (tmp_path / "journal.log").write_text("nonsense\nand more\nof it\n")
    with pytest.raises(InputError, match="cannot read"), search_in(tmp_path, split):
        pass


def test_optuna_can_read_the_journal(split: Split, tmp_path: Path) -> None:
    with search_in(tmp_path, split) as search:
        search.run(seconds=NO_LIMIT, max_trials=2)
        best = search.trials()[0]
    backend = optuna.storages.journal.JournalFileBackend(str(tmp_path / "journal.log"))
    study = optuna.load_study(
        study_name="tune", storage=optuna.storages.journal.JournalStorage(backend)
    )
    assert study.best_params == best.settings
