"""The settings that searches have chosen: records, files, and their use in the comparison."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tclgraph import registry
from tclgraph.baselines.graphsage import AGGREGATORS
from tclgraph.events.log_spec import LogSpec
from tclgraph.events.synthetic import SyntheticConfig, synthesize
from tclgraph.events.writers import write_file
from tclgraph.studies import tuned
from tclgraph.studies.overall import BASELINES, overall_study
from tclgraph.studies.study import OpenLog
from tclgraph.studies.tuned import TunedSettings, collect_records, stored_records, write_records

ROOT = Path(__file__).parent.parent.parent
SEARCH: dict[str, Any] = {
    "made_by": "tclgraph tune log.csv --model jodie --set epochs=3 --set threads=1",
    "folder": "runs/tune-jodie-log",
    "log": "log",
    "kind": "bipartite",
    "split": "70/15/15 of rows",
    "model": "jodie",
    "fixed": {"epochs": "3", "threads": "1"},
    "command": "tclgraph train log.csv",
    "metric": "MRR",
    "combinations": 12,
    "untuned": {"learning_rate": 0.001, "batch_size": 128},
    "trials": [
        {
            "settings": {"learning_rate": 0.005, "batch_size": 256},
            "state": "complete",
            "valid": {"MRR": 0.5, "MR": 9.0},
            "epoch": 2,
            "seconds": 60.0,
            "error": None,
        },
        {
            "settings": {"learning_rate": 0.001, "batch_size": 128},
            "state": "complete",
            "valid": {"MRR": 0.4, "MR": 10.0},
            "epoch": 3,
            "seconds": 45.0,
            "error": None,
        },
        {
            "settings": {"learning_rate": 0.1, "batch_size": 128},
            "state": "failed",
            "valid": None,
            "epoch": None,
            "seconds": 3.0,
            "error": "training diverged",
        },
    ],
}
SEARCH["best"] = SEARCH["trials"][0]
RECORD = TunedSettings(
    log="log",
    kind="bipartite",
    split="70/15/15 of rows",
    model="jodie",
    settings={"epochs": "3", "learning_rate": 0.005, "batch_size": 256},
    metric="MRR",
    valid=0.5,
    untuned_valid=0.4,
    trials=3,
    combinations=12,
    minutes=1.8,
    file="results/tuning/log-bipartite/jodie.json",
    command="tclgraph tune log.csv --model jodie --set epochs=3 --set threads=1",
)


@pytest.fixture
def log(tmp_path: Path) -> OpenLog:
    path = tmp_path / "log.csv"
    write_file(synthesize(SyntheticConfig(events=100, sources=8, targets=9)), path)
    return OpenLog.open(LogSpec(log=str(path)))


def test_a_record_has_the_best_trial_and_the_one_without_tuning() -> None:
    assert TunedSettings.from_search(SEARCH, RECORD.file) == RECORD


def test_written_records_are_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuned, "FILE", tmp_path / "tuned.json")
    write_records((RECORD, replace(RECORD, untuned_valid=None)), tuned.FILE)
    assert stored_records.__wrapped__() == (RECORD, replace(RECORD, untuned_valid=None))


def test_a_tuned_baseline_has_these_settings_and_its_own_name(
    log: OpenLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuned, "stored_records", lambda: (RECORD,))
    study = overall_study(log, ["tgn", "jodie", "jodie:batch_size=128"])
    tgn, jodie, given = study.entries
    assert jodie.name == "jodie"
    assert jodie.tuned == RECORD
    assert [job.settings for job in jodie.jobs] == [RECORD.settings]
    assert (tgn.tuned, tgn.jobs[0].settings) == (None, {})
    assert (given.tuned, given.jobs[0].settings) == (None, {"batch_size": "128"})


@pytest.mark.parametrize(
    "change",
    [{"log": "other"}, {"kind": "one-mode"}, {"split": "60/20/20 of rows"}, {"model": "tgn"}],
)
def test_settings_of_another_log_kind_split_or_model_are_not_used(
    log: OpenLog, monkeypatch: pytest.MonkeyPatch, change: dict[str, str]
) -> None:
    monkeypatch.setattr(tuned, "stored_records", lambda: (replace(RECORD, **change),))  # type: ignore[arg-type]
    (entry,) = overall_study(log, ["jodie"]).entries
    assert (entry.tuned, entry.jobs[0].settings) == (None, {})


@pytest.mark.parametrize("aggregator", [None, "mean"])
def test_a_search_may_choose_the_aggregator(
    log: OpenLog, monkeypatch: pytest.MonkeyPatch, aggregator: str | None
) -> None:
    settings = {"aggregator": aggregator, "batch_size": 256}
    record = replace(RECORD, model="graphsage", settings=settings)
    monkeypatch.setattr(tuned, "stored_records", lambda: (record,))
    (entry,) = overall_study(log, ["graphsage"]).entries
    expected = [aggregator] if aggregator else list(AGGREGATORS)
    assert [job.settings["aggregator"] for job in entry.jobs] == expected
    assert {job.settings["batch_size"] for job in entry.jobs} == {256}


def test_stored_records_are_those_of_the_stored_trials() -> None:
    assert stored_records() == collect_records(ROOT)


def test_stored_records_can_be_built_and_are_of_baselines() -> None:
    keys = [(record.log, record.kind, record.split, record.model) for record in stored_records()]
    assert len(set(keys)) == len(keys)
    for record in stored_records():
        assert record.model in BASELINES
        registry.build(record.model, **record.settings)
