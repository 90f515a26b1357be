"""The search itself, with models that are trained in a update."""

import json
import time
from collections.abc import Mapping, Sequence
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

SMALL: dict[str, Any] = {
    "epochs": 1,
    "batch_size": 64,
    "width": 4,
    "heads": 2,
    "levels": 3,
    "threads": 1,
    "learning_rate": 1e-3,
}
SPACE = {"learning_rate": (1e-3, 5e-3, 2e-2), "input_dropout": (0.1, 0.6)}
LONG = 600.0


@pytest.fixture(scope="module")
def split() -> Split:
    return synthesize(SyntheticConfig(events=300, sources=12, targets=15)).split(0.6, 0.2)


def opened(
    split: Split,
    folder: Path,
    space: Mapping[str, Sequence[Any]] = SPACE,
    *,
    seed: int = 0,
    **settings: Any,
) -> AbstractContextManager[Search]:
    return open_search(
        partial(TCL, **{**SMALL, **settings}), split, space, folder=folder, seed=seed
    )


def combinations(trials: list[Trial]) -> set[tuple[Any, ...]]:
    return {tuple(one.settings.values()) for one in trials}


def without_seconds(trials: list[Trial]) -> list[Trial]:
    return [replace(one, seconds=0.0) for one in trials]


def test_every_combination_is_tried_once_and_the_best_comes_first(
    split: Split, tmp_path: Path
) -> None:
    told: list[Trial] = []
    with opened(split, tmp_path) as search:
        search.run(seconds=LONG, tell=told.append)
        trials = search.trials()
    assert len(told) == len(trials) == len(combinations(trials)) == 6
    assert told[0].settings == search.own == {"learning_rate": 1e-3, "input_dropout": 0.6}
    figures = [one.valid["MRR"] for one in trials if one.valid]
    assert figures == sorted(figures, reverse=True)
    assert len(set(figures)) > 1
    assert {one.state for one in trials} == {"complete"}
    with opened(split, tmp_path) as search:
        search.run(seconds=LONG, tell=told.append)
    assert len(told) == 6


def test_a_trial_is_worth_what_training_finds(split: Split, tmp_path: Path) -> None:
    settings = {**SMALL, "epochs": 8, "learning_rate": 0.05}
    with opened(split, tmp_path / "study", **settings) as search:
        search.run(seconds=LONG, max_trials=1)
        (trial,) = search.trials()
    TCL(**{**settings, **trial.settings}).fit(split, run=tmp_path / "run")
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[1:]
    figures = [json.loads(line)["valid"]["MRR"] for line in lines]
    assert trial.valid is not None
    assert trial.valid["MRR"] == max(figures)
    assert trial.epoch == figures.index(max(figures)) + 1 < 8


def test_choosing_by_mean_rank_turns_the_order_round(split: Split, tmp_path: Path) -> None:
    with opened(split, tmp_path, choose_by="MR") as search:
        search.run(seconds=LONG, max_trials=4)
        figures = [one.valid["MR"] for one in search.trials() if one.valid]
    assert figures == sorted(figures)
    assert len(set(figures)) > 1


def test_a_value_of_the_models_own_is_tried_first_also_when_the_space_lacks_it(
    split: Split, tmp_path: Path
) -> None:
    with opened(split, tmp_path, learning_rate=3e-3) as search:
        search.run(seconds=LONG, max_trials=1)
        assert search.trials()[0].settings["learning_rate"] == 3e-3
    assert len(search.combinations) == 8


def test_in_parts_or_at_once_the_search_is_the_same_and_the_seed_decides_it(
    split: Split, tmp_path: Path
) -> None:
    # Enough trials for the sampler to learn from the first ones.
    for count in (2, 3, 6, 8):
        with opened(split, tmp_path / "parts", {**SPACE, "negatives": (1, 5)}) as search:
            search.run(seconds=LONG, max_trials=count)
            assert len(search.trials()) == count
            parts = search.trials()
    found = []
    for seed in (0, 1):
        with opened(
            split, tmp_path / f"seed{seed}", {**SPACE, "negatives": (1, 5)}, seed=seed
        ) as search:
            search.run(seconds=LONG, max_trials=8)
            found.append(search.trials())
    assert without_seconds(parts) == without_seconds(found[0])
    assert combinations(found[0]) != combinations(found[1])


def test_test_events_play_no_part(split: Split, tmp_path: Path) -> None:
    events = split.events
    target = events.target.copy()
    random = np.random.default_rng(5)
    target[split.valid_end :] = random.integers(events.num_targets, size=split.sizes["test"])
    other = replace(split, events=replace(events, target=target))
    found = []
    for number, data in enumerate((split, other)):
        with opened(data, tmp_path / str(number)) as search:
            search.run(seconds=LONG, max_trials=4)
            found.append(without_seconds(search.trials()))
    assert found[0] == found[1]


def test_a_trial_that_meets_the_end_of_the_budget_is_dropped_and_tried_again(
    split: Split, tmp_path: Path
) -> None:
    moments: list[tuple[float, ProgressUpdate]] = []
    settings: dict[str, Any] = {"epochs": 100_000}
    with opened(split, tmp_path, **settings) as search:
        end = time.monotonic() + 0.5
        search.run(seconds=0.5, progress=lambda update: moments.append((time.monotonic(), update)))
        assert search.trials() == []
    assert sum(when > end for when, _ in moments) <= 2  # an epoch's end, then a batch
    with opened(split, tmp_path, **settings) as search:
        taken = search._take(None)
    assert taken is not None
    assert taken.params == search.own


def test_a_trial_whose_last_epoch_ends_after_the_budget_counts(
    split: Split, tmp_path: Path
) -> None:
    def slowly(update: ProgressUpdate) -> None:
        if update.is_epoch_end:
            time.sleep(max(0.0, end - time.monotonic()))

    with opened(split, tmp_path) as search:
        search._build(epochs=1).fit(split)  # compiled before time runs
        end = time.monotonic() + 3.0
        search.run(seconds=3.0, progress=slowly)
        assert [one.state for one in search.trials()] == ["complete"]


def test_a_trial_that_does_worse_than_half_of_the_others_is_stopped_early(
    split: Split, tmp_path: Path
) -> None:
    space = {"learning_rate": (0.05, 0.02, 0.01, 1e-9, 2e-9, 3e-9)}
    curves: list[list[float]] = [[]]
    told: list[Trial] = []

    def progress(update: ProgressUpdate) -> None:
        if update.is_epoch_end and update.valid is not None:
            curves[-1].append(update.valid["MRR"])

    def tell(trial: Trial) -> None:
        told.append(trial)
        curves.append([])

    with opened(split, tmp_path, space, preset="paper", epochs=8, learning_rate=0.05) as search:
        search.run(seconds=LONG, progress=progress, tell=tell)
        assert search.trials()[0].state == "complete"
    assert {one.state for one in told} == {"complete", "pruned"}
    others: list[list[float]] = []
    for trial, curve in zip(told, curves, strict=False):
        # The rule, told slowly.
        wanted = next(
            (
                epoch
                for epoch in range(3, 8)
                if len(others) >= 3
                and max(curve[:epoch]) < np.median([other[epoch - 1] for other in others])
            ),
            8,
        )
        assert len(curve) == wanted
        assert trial.state == ("complete" if wanted == 8 else "pruned")
        assert trial.valid is not None
        assert trial.valid["MRR"] == max(curve)
        if wanted == 8:
            others.append(curve)


def test_a_trial_that_diverges_is_told_and_the_search_goes_on(split: Split, tmp_path: Path) -> None:
    space = {"learning_rate": (1e-3, 1e9, 2e-3)}
    with opened(split, tmp_path, space, epochs=2) as search:
        search.run(seconds=LONG)
        trials = search.trials()
    assert [one.state for one in trials] == ["complete", "complete", "failed"]
    assert trials[-1].error is not None
    assert trials[-1].error.startswith("training diverged")
    with opened(split, tmp_path, space, epochs=2) as search:
        search.run(seconds=LONG)
        assert search.trials() == trials  # nor is it tried again


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"epochs": 2}, r"other settings \(epochs: then 1, now 2\)"),
        (
            {"space": {"learning_rate": (1e-3, 1e-4), "input_dropout": (0.1, 0.6)}},
            r"other search_space \(learning_rate: then",
        ),
    ],
)
def test_another_search_is_refused_and_changes_nothing(
    split: Split, tmp_path: Path, change: dict[str, Any], told: str
) -> None:
    with opened(split, tmp_path) as search:
        search.run(seconds=LONG, max_trials=1)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(InputError, match=told), opened(split, tmp_path, **change):
        pass
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_folder_of_a_run_is_refused_and_stays_as_it_is(split: Split, tmp_path: Path) -> None:
    TCL(**SMALL).fit(split, run=tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(InputError, match="holds no search"), opened(split, tmp_path):
        pass
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_half_a_line_that_a_full_disk_left_costs_no_finished_trial(
    split: Split, tmp_path: Path
) -> None:
    with opened(split, tmp_path) as search:
        search.run(seconds=LONG, max_trials=2)
        before = search.trials()
    with (tmp_path / "journal.log").open("a") as file:
        file.write('{"op_code":4,"worker_')
    for count in (2, 3):
        with opened(split, tmp_path) as search:
            search.run(seconds=LONG, max_trials=count)
            trials = search.trials()
    assert len(trials) == 3
    assert [one for one in trials if one in before] == before


def test_a_combination_that_was_chosen_but_not_begun_is_begun(split: Split, tmp_path: Path) -> None:
    with opened(split, tmp_path) as search:
        search.run(seconds=LONG, max_trials=1)
        # What a kill between choosing and beginning leaves.
        chosen = {"learning_rate": 2e-2, "input_dropout": 0.1}
        search._study.enqueue_trial(chosen)
    with opened(split, tmp_path) as search:
        search.run(seconds=LONG, max_trials=2)
        assert chosen in [one.settings for one in search.trials()]
        search.run(seconds=LONG)
        assert len(search.trials()) == len(combinations(search.trials())) == 6


def test_a_journal_that_is_none_is_refused(split: Split, tmp_path: Path) -> None:
    with opened(split, tmp_path):
        pass
    (tmp_path / "journal.log").write_text("nonsense\nand more\nof it\n")
    with pytest.raises(InputError, match="cannot read"), opened(split, tmp_path):
        pass


def test_a_study_can_be_read_with_optuna_itself(split: Split, tmp_path: Path) -> None:
    with opened(split, tmp_path) as search:
        search.run(seconds=LONG, max_trials=2)
        best = search.trials()[0]
    backend = optuna.storages.journal.JournalFileBackend(str(tmp_path / "journal.log"))
    study = optuna.load_study(
        study_name="tune", storage=optuna.storages.journal.JournalStorage(backend)
    )
    assert study.best_params == best.settings
