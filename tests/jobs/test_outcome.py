"""The file of a job reads back as it was written, and any other file is refused."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tclgraph import registry
from tclgraph.errors import InputError
from tclgraph.evaluation.protocol import evaluate
from tclgraph.events.log_spec import LogSpec
from tclgraph.events.synthetic import SyntheticConfig, synthesize
from tclgraph.events.writers import write_file
from tclgraph.jobs.job import Job, digest_of, read_outcome, read_ranks
from tclgraph.jobs.outcome import Outcome, read_outcome_file, write_outcome_file
from tclgraph.jobs.run import run_job

ROOT = Path(__file__).parents[2]
STORED = sorted((ROOT / "results" / "reproduce").glob("*/jobs/*/*.json"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("jobs")


@pytest.fixture(scope="module")
def spec(folder: Path) -> LogSpec:
    path = folder / "log.parquet"
    write_file(synthesize(SyntheticConfig(events=300, sources=12, targets=9)), path)
    return LogSpec(log=str(path))


def finished(spec: LogSpec, folder: Path, model: str, **settings: Any) -> Job:
    part = settings.pop("part", "test")
    digest = digest_of(spec.open())
    job = Job(spec=spec, events=digest, model=model, settings=settings, part=part)
    run_job(job, folder, threads=1, progress=lambda update: None)
    return job


def test_a_learned_model_leaves_a_learning_curve(spec: LogSpec, folder: Path) -> None:
    job = finished(spec, folder, "jodie", epochs=2, width=8)
    outcome = read_outcome(job, folder)
    assert outcome is not None
    assert outcome.learning is not None
    assert [record.epoch for record in outcome.learning.curve] == [1, 2]
    best = outcome.learning.curve[outcome.learning.best_epoch - 1]
    assert outcome.valid == best.valid
    assert outcome.learning.config["width"] == 8
    assert outcome.machine.threads == 1


def test_a_heuristic_has_no_learning_curve(spec: LogSpec, folder: Path) -> None:
    outcome = read_outcome(finished(spec, folder, "popularity"), folder)
    assert outcome is not None
    assert outcome.learning is None
    assert outcome.seconds == outcome.report.seconds


def test_a_job_of_the_validation_part_ranks_no_test_event(spec: LogSpec, folder: Path) -> None:
    on_test = finished(spec, folder, "popularity")
    on_valid = finished(spec, folder, "popularity", part="valid")
    assert on_test.key != on_valid.key
    outcome = read_outcome(on_valid, folder)
    assert outcome is not None
    assert outcome.report.part == "valid"
    assert outcome.report.metrics == outcome.valid
    ranks = read_ranks(on_valid, folder)
    assert len(ranks) == outcome.report.events == outcome.parts.valid
    assert ranks.mean() == pytest.approx(outcome.valid["MR"])


def test_test_events_are_ranked_by_both_rules_if_many_are_simultaneous(tmp_path: Path) -> None:
    stream = synthesize(SyntheticConfig(events=300, sources=12, targets=9))
    orders = replace(stream, source=np.repeat(stream.source[::2], 2), time=np.arange(300.0) // 2)
    path = tmp_path / "orders.parquet"
    write_file(orders, path)
    spec = LogSpec(log=str(path))
    job = finished(spec, tmp_path, "own-recency")
    outcome = read_outcome(job, tmp_path)
    assert outcome is not None
    assert outcome.together is not None
    assert outcome.together.metrics != outcome.report.metrics
    assert outcome.seconds == outcome.report.seconds + outcome.together.seconds
    model = registry.build("own-recency").fit(spec.open())
    report = evaluate(model, spec.open(), simultaneous="together")
    assert outcome.together.metrics == report.groups["all"].metrics
    assert read_ranks(job, tmp_path).mean() == pytest.approx(outcome.report.metrics["MR"])
    assert Outcome.from_json(json.loads(json.dumps(outcome.to_json()))) == outcome
    on_valid = read_outcome(finished(spec, tmp_path, "own-recency", part="valid"), tmp_path)
    assert on_valid is not None
    assert on_valid.together is None
    assert "together" not in on_valid.to_json()


def test_a_noisy_job_trains_on_more_events_and_ranks_the_same(spec: LogSpec, folder: Path) -> None:
    clean = finished(spec, folder, "tgn", epochs=1, width=8)
    noisy = replace(clean, noise=0.1)
    assert noisy.key != clean.key
    assert "-noise=0.1-0-" in noisy.key
    assert noisy.key != replace(noisy, noise=0.2).key
    run_job(noisy, folder, threads=1, progress=lambda update: None)
    before, after = read_outcome(clean, folder), read_outcome(noisy, folder)
    assert before is not None
    assert after is not None
    assert (before.noise, after.noise) == (0.0, 0.1)
    assert "noise" not in json.loads(clean.outcome_path(folder).read_text())
    assert (before.parts.train, after.parts.train) == (210, 231)
    assert after.split == "70/15/15 of rows, train with 10 % random interactions"
    assert after.parts.test == before.parts.test
    assert after.report.targets == before.report.targets
    assert len(read_ranks(noisy, folder)) == len(read_ranks(clean, folder))
    assert after.learning is not None
    assert before.learning is not None
    assert after.learning.curve[0].loss != before.learning.curve[0].loss


def test_an_outcome_has_coverage_and_unseen_nodes_and_older_files_have_not(
    spec: LogSpec, folder: Path
) -> None:
    outcome = read_outcome(finished(spec, folder, "own-recency"), folder)
    assert outcome is not None
    report = evaluate(registry.build("own-recency").fit(spec.open()), spec.open())
    assert outcome.report.top == report.top
    assert outcome.report.unseen == report.groups["unseen"].metrics
    document = outcome.to_json()
    del document["report"]["top"]
    document["report"].pop("unseen", None)
    older = Outcome.from_json(document)
    assert (older.report.top, older.report.unseen) == (None, None)
    assert older.to_json() == document


def test_an_outcome_reads_back_as_it_was_written(spec: LogSpec, folder: Path) -> None:
    job = finished(spec, folder, "popularity")
    outcome = read_outcome(job, folder)
    assert outcome is not None
    copy = folder / "copy.json"
    write_outcome_file(outcome, copy)
    assert read_outcome_file(copy) == outcome
    assert copy.read_text() == job.outcome_path(folder).read_text()


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_stored_results_have_exactly_the_fields_of_an_outcome(path: Path) -> None:
    document = json.loads(path.read_text())
    written = json.loads(json.dumps(Outcome.from_json(document).to_json()))
    assert written == document


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"model": "tcl"', "Expecting ',' delimiter"),
        ("[1, 2]", "the document: "),
        ('{"model": "tcl"}', "settings: Field required"),
        ("\udcff", "utf-8"),
    ],
)
def test_a_foreign_file_is_refused_with_its_path(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "job.json"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(InputError) as caught:
        read_outcome_file(path)
    assert str(caught.value).startswith(f"{path} is not a readable job file (")
    assert reason in str(caught.value)
    assert str(caught.value).endswith("; delete it, and the job runs again")


def test_a_file_with_a_wrong_figure_is_refused(spec: LogSpec, folder: Path, tmp_path: Path) -> None:
    job = finished(spec, folder, "popularity")
    document = json.loads(job.outcome_path(folder).read_text())
    document["report"]["events"] = "many"
    path = tmp_path / "job.json"
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"report\.events: Input should be a valid integer"):
        read_outcome_file(path)


def test_a_missing_file_is_no_outcome(tmp_path: Path) -> None:
    assert read_outcome_file(tmp_path / "job.json") is None


@pytest.mark.parametrize("content", [None, b"", b"PK damaged"])
def test_damaged_ranks_are_refused_with_their_path(
    spec: LogSpec, tmp_path: Path, content: bytes | None
) -> None:
    job = finished(spec, tmp_path, "popularity")
    path = job.ranks_path(tmp_path)
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_ranks(job, tmp_path)
    assert str(path) in str(caught.value)
    assert f"delete {job.outcome_path(tmp_path).name}" in str(caught.value)


def test_a_log_that_has_changed_is_refused(spec: LogSpec, tmp_path: Path) -> None:
    job = Job(spec=spec, events="of another log", model="popularity")
    with pytest.raises(InputError, match="has changed since the job was planned"):
        run_job(job, tmp_path, threads=1, progress=lambda update: None)
