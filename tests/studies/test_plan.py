"""From words to studies: entries, jobs, and the outcomes that count."""

from pathlib import Path

import numpy as np
import pytest

from tclgraph.baselines.graphsage import AGGREGATORS
from tclgraph.errors import InputError
from tclgraph.events.log_spec import LogSpec
from tclgraph.events.stream import GraphKind
from tclgraph.events.synthetic import SyntheticConfig, synthesize
from tclgraph.events.writers import write_file
from tclgraph.jobs.job import Job, write_ranks
from tclgraph.jobs.outcome import write_outcome_file
from tclgraph.studies.ablation import ranker_ablation, tcl_ablation
from tclgraph.studies.noise import SHARES, noise_study
from tclgraph.studies.overall import BASELINES, overall_study
from tclgraph.studies.parts import parts_ahead_study, parts_study
from tclgraph.studies.plan import make_plan
from tclgraph.studies.reading import reading_study
from tclgraph.studies.study import OpenLog, Role, Study
from tclgraph.studies.sweep import DEPTH, HEADS, sweep_study
from tests.reports.made_up import make_outcome


@pytest.fixture
def log(tmp_path: Path) -> OpenLog:
    return open_synthetic(tmp_path)


def open_synthetic(folder: Path, kind: GraphKind = "bipartite") -> OpenLog:
    path = folder / f"{kind}.csv"
    write_file(synthesize(SyntheticConfig(events=100, sources=8, targets=9, kind=kind)), path)
    return OpenLog.open(LogSpec(log=str(path), kind=kind))


def keys_of(study: Study, num_seeds: int = 1) -> set[str]:
    return {job.key for job in study.jobs(num_seeds)}


def test_entries_are_ordered_by_role(log: OpenLog) -> None:
    study = overall_study(log, ["ranker", "tcl", "tgn", "heuristics", "graphsage"])
    roles = [entry.role for entry in study.entries]
    assert roles == sorted(roles, key=list(Role).index)
    assert [entry.name for entry in study.entries][-4:] == ["tgn", "graphsage", "ranker", "tcl"]
    assert study.entries[0].name == "popularity"


def test_the_default_comparison_has_all_models_of_the_paper(log: OpenLog) -> None:
    study = overall_study(log)
    baselines = [entry.name for entry in study.entries if entry.role is Role.BASELINE]
    assert baselines == list(BASELINES)
    assert study.tcl is not None
    assert study.ranker is not None


def test_tcl_with_its_defaults_is_one_job_of_all_studies(log: OpenLog) -> None:
    study = overall_study(log, ["tcl"])
    (key,) = keys_of(study)
    for other in (sweep_study(log, DEPTH), sweep_study(log, HEADS), tcl_ablation(log)):
        assert key in keys_of(other)


def test_a_plan_has_every_job_once_and_first_seeds_first(log: OpenLog) -> None:
    plan = make_plan(["overall", "ablation", "depth"], [log.spec], ["popularity", "tcl"])
    jobs = plan.jobs(2)
    assert len({job.key for job in jobs}) == len(jobs)
    seeds = [job.seed for job in jobs]
    assert seeds == sorted(seeds)
    assert [job.seed for job in jobs if job.model == "popularity"] == [0]


def test_the_ablation_is_of_the_named_models(log: OpenLog) -> None:
    plan = make_plan(["ablation"], [log.spec], ["tcl:negative_pool=256", "tgn"])
    assert [study.name for study in plan.studies] == ["ablation-tcl"]
    plan = make_plan(["ablation"], [log.spec])
    assert [study.name for study in plan.studies] == ["ablation-tcl", "ablation-ranker"]


def test_settings_of_a_model_make_another_row(log: OpenLog) -> None:
    study = overall_study(log, ["tcl:negative_pool=256", "tcl"])
    pooled, plain = study.entries
    assert pooled.name == "tcl, negative_pool=256"
    assert study.tcl is plain
    same = log.job("tcl", {"negative_pool": 256})
    assert pooled.jobs[0].key.rsplit("-", 1)[1] == same.key.rsplit("-", 1)[1]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("tgnn", "unknown model 'tgnn'; did you mean"),
        ("tcl:heads", "cannot read the setting 'heads' of 'tcl:heads'; write NAME=VALUE"),
        ("tcl:head=2", "unknown setting 'head'"),
    ],
)
def test_a_model_that_cannot_be_built_is_refused(log: OpenLog, model: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        overall_study(log, [model])


def test_the_best_aggregator_on_validation_counts(log: OpenLog, tmp_path: Path) -> None:
    study = overall_study(log, ["graphsage"])
    (entry,) = study.entries
    assert [job.settings["aggregator"] for job in entry.jobs] == list(AGGREGATORS)
    valid_rank = {"gcn": 9.0, "mean": 2.0, "max": 4.0}
    for seed in (0, 1):
        for job in entry.jobs_of_seed(seed):
            aggregator = job.settings["aggregator"]
            if seed == 0 or aggregator != "gat":  # the second seed is not complete
                store(job, tmp_path, valid_rank=valid_rank.get(aggregator, 20.0))
    rows = study.results(tmp_path)[entry]
    assert [outcome.settings for outcome in rows.outcomes] == [{"aggregator": "mean"}]


def store(job: Job, folder: Path, *, valid_rank: float) -> None:
    """Write made-up files of a job."""
    entry = overall_study(OpenLog.open(job.spec), ["graphsage"]).entries[0]
    outcome = make_outcome(entry, [1.0], seed=job.seed, valid_rank=valid_rank)
    document = {**outcome.to_json(), "settings": dict(job.settings)}
    write_ranks(job, folder, np.ones(1))
    write_outcome_file(type(outcome).from_json(document), job.outcome_path(folder))


def test_the_ablation_of_the_ranker_has_the_row_that_the_point_process_is_compared_with(
    log: OpenLog,
) -> None:
    study = ranker_ablation(log)
    assert study.entries[-1] is study.full
    assert study.contrastive is study.without_history
    assert study.point_process.jobs[0].model == "tcl"
    assert {entry.jobs[0].model for entry in study.without} == {"ranker"}
    tcl = tcl_ablation(log)
    assert tcl.contrastive is tcl.full
    assert len(study.entries) == len(tcl.entries) + 1


def test_parts_are_ranked_on_validation_with_few_seeds(tmp_path: Path) -> None:
    study = parts_study(open_synthetic(tmp_path, "one-mode"))
    jobs = study.jobs(5)
    assert {job.part for job in jobs} == {"valid"}
    assert {job.settings["epochs"] for job in jobs} == {4}
    assert [job.seed for job in jobs if list(job.settings) == ["epochs"]].count(0) == 2
    assert sorted(job.seed for job in jobs)[-2:] == [1, 2]
    assert study.without[-1].name == "without one identity"
    assert study.without[-1].jobs[0].spec.kind == "bipartite"


def test_one_identity_is_no_part_on_a_bipartite_log(log: OpenLog) -> None:
    names = [entry.name for entry in parts_study(log).without]
    assert "without one identity" not in names
    assert "without encoder" in names


def test_the_ahead_variant_ranks_the_validation_events_of_the_log(log: OpenLog) -> None:
    study = parts_ahead_study(log)
    assert study.file_name == "parts-ahead-bipartite"
    assert len(study.without) == 4
    (part,) = {job.part for job in study.jobs(1)}
    split, ahead = log.split, study.log.split
    assert part == "test"  # of a split whose last part is the log's validation part
    assert ahead.sizes["test"] == split.sizes["valid"]
    np.testing.assert_array_equal(
        ahead.events.time[ahead.valid_end :], split.events.time[split.train_end : split.valid_end]
    )
    assert ahead.train_end == int(0.8 * split.train_end)


def test_readings_are_ranked_on_validation_with_three_seeds(tmp_path: Path) -> None:
    study = reading_study(open_synthetic(tmp_path, "one-mode"))
    jobs = study.jobs(5)
    assert {job.part for job in jobs} == {"valid"}
    assert {job.seed for job in jobs} == {0, 1, 2}
    assert all(len(entry.jobs[0].settings) == 1 for entry in study.variants[1:])
    assert study.variants[0].jobs[0].spec.kind == "bipartite"
    assert len({job.key for job in jobs}) == 3 * len(study.entries)


def test_a_bipartite_log_has_no_reading_with_two_ids(log: OpenLog) -> None:
    assert {entry.jobs[0].spec.kind for entry in reading_study(log).entries} == {"bipartite"}


def test_collegemsg_has_one_identity_and_seen_nodes_only() -> None:
    words = ["overall", "depth", "parts", "noise"]
    plan = make_plan(words, [LogSpec(log="collegemsg")], ["popularity", "tcl"])
    names = [study.file_name for study in plan.studies]
    assert names == [
        "overall-collegemsg",
        "depth-collegemsg",
        "parts-collegemsg",
        "parts-ahead-collegemsg",
        "noise-collegemsg",
    ]
    for study in plan.studies:
        assert study.log.split.events.kind == "one-mode"
        assert study.log.spec.seen_only
    overall = plan.studies[0]
    assert overall.log_title == "collegemsg"
    assert str(overall.entries[-1].published["MR"]) == "137.57 ± 1.70"


def test_two_id_spaces_are_another_reading_with_other_jobs_and_files() -> None:
    one_identity, two_id_spaces = (
        make_plan(["overall", "depth", "parts"], [LogSpec(log="collegemsg", kind=kind)], ["tcl"])
        for kind in (None, "bipartite")
    )
    assert [study.file_name for study in two_id_spaces.studies] == [
        "overall-two-id-spaces-collegemsg",
        "depth-two-id-spaces-collegemsg",
        "parts-two-id-spaces-collegemsg",
        "parts-ahead-two-id-spaces-collegemsg",
    ]
    assert [study.log_title for study in two_id_spaces.studies][::3] == [
        "collegemsg (two id spaces)",
        "collegemsg (two id spaces, trained on the first 80 % of the training events)",
    ]
    sizes = [
        study.log.split.sizes for study in (*one_identity.studies[:2], *two_id_spaces.studies[:2])
    ]
    assert sizes == [sizes[0]] * 4
    assert not {job.key for job in one_identity.jobs(1)} & {
        job.key for job in two_id_spaces.jobs(1) if job.model == "tcl"
    }


def test_the_stored_jobs_of_both_readings_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their names have a digest of the events and of the kind of graph."""
    monkeypatch.setenv("TCLGRAPH_DATA", "")
    monkeypatch.setenv("TCLGRAPH_CACHE", str(tmp_path))
    folder = Path(__file__).parents[2] / "results" / "reproduce" / "collegemsg"
    for kind, model in ((None, "ranker"), ("bipartite", "ranker"), ("bipartite", "tcl")):
        plan = make_plan(["overall"], [LogSpec(log="collegemsg", kind=kind)], [model])
        (study,) = plan.studies
        (row,) = study.results(folder).values()
        assert len(row.outcomes) == 5
        assert {outcome.kind for outcome in row.outcomes} == {kind or "one-mode"}


def test_noise_is_that_of_the_seed_and_the_clean_jobs_are_those_of_other_studies(
    log: OpenLog,
) -> None:
    study = noise_study(log)
    assert [entry.name for entry in study.entries[:5]] == [
        "TCL, 0 %",
        "TCL, 5 %",
        "TCL, 10 %",
        "TCL, 20 %",
        "point process, 0 %",
    ]
    jobs = study.jobs(2)
    assert len({job.key for job in jobs}) == len(jobs) == 2 * 3 * len(SHARES)
    assert [job.noise for job in jobs[: len(SHARES)]] == list(SHARES)
    clean = {job.key for job in jobs if not job.noise}
    others = (overall_study(log, ["tcl"]), tcl_ablation(log))
    own = clean - set[str]().union(*(keys_of(other, 2) for other in others))
    # TGN validates on all events, and on a sample elsewhere.
    assert len(own) == 2
    assert all("/tgn-max_valid_events=None-" in key for key in own)
    assert "/tcl-objective=point-process-noise=0.2-1-" in jobs[-5].key
    assert {job.events for job in jobs} == {log.digest}


def test_all_leaves_out_what_is_not_in_the_paper(log: OpenLog) -> None:
    names = [study.name for study in make_plan(["all"], [log.spec]).studies]
    assert names == ["overall", "ablation-tcl", "ablation-ranker", "depth", "heads"]
