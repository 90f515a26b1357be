import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tclgraph.evaluation.metrics import METRIC_NAMES
from tclgraph.events.synthetic import SyntheticConfig, synthesize
from tclgraph.events.writers import write_file
from tests.git_repository import Repository
from tests.streams import Cli


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.csv"
    write_file(synthesize(SyntheticConfig(events=400)), path)
    return path


def test_datasets_lists_the_catalog(cli: Cli) -> None:
    code, out, _ = cli("datasets")
    assert code == 0
    assert "collegemsg" in out
    code, out, _ = cli("datasets", "--json")
    assert json.loads(out)["lastfm"]["interactions"] == 1_293_103


def test_describe_prints_the_statistics_of_collegemsg(cli: Cli) -> None:
    code, out, _ = cli("describe", "collegemsg", "--seen-only")
    assert code == 0
    for figure in ("48,771", "999", "1,352", "193.63", "67.28 %", "23.18 %"):
        assert figure in out
    code, out, _ = cli("describe", "collegemsg", "--seen-only", "--json")
    result = json.loads(out)
    assert result["interactions"] == 48_771
    assert (result["sources"], result["targets"]) == (999, 1_352)
    assert (result["days"], result["repetition_density"]) == (193.63, 67.28)
    assert result["parts"] == {"train": 35_901, "valid": 7_815, "test": 5_055}


def test_evaluate_prints_one_json_object(cli: Cli, log: Path) -> None:
    code, out, err = cli("evaluate", "--model", "own-recency", "--data", "log.csv", "--json")
    assert code == 0
    result = json.loads(out)
    assert result["model"] == "own-recency"
    assert result["data"] == "log.csv"
    assert result["split"] == "70/15/15 of rows"
    assert result["update"] == "streaming"
    assert result["events"] == 60
    assert result["targets"] > 1
    for group in ("metrics", "repeat", "new"):
        assert tuple(result[group]) == METRIC_NAMES
    assert result["seconds"] > 0
    assert result["machine"]["cores"] >= 1
    assert all(line.startswith("note: ") for line in err.splitlines())


def test_every_output_names_the_update_rule(cli: Cli, log: Path) -> None:
    for rule in ("streaming", "every=7", "frozen", "frozen=valid"):
        arguments = ("evaluate", "--data", "log.csv", "--update", rule, "--model")
        assert f"update {rule} (" in cli(*arguments, "popularity")[1]
        assert json.loads(cli(*arguments, "popularity", "--json")[1])["update"] == rule
    assert "update every=7 (" in cli(*arguments[:4], "every=7", "--model", "heuristics")[1]


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """Write a log of 60 orders of two rows each."""
    path = tmp_path / "orders.csv"
    rows = [f"{'ab'[n % 2]},{'wxyz'[(n + piece) % 4]},{n}" for n in range(60) for piece in (0, 1)]
    path.write_text("source,target,time\n" + "\n".join(rows) + "\n")
    return path


def test_both_rules_are_shown_if_many_events_are_simultaneous(cli: Cli, orders: Path) -> None:
    assert "same source and time as the event before" in cli("describe", "orders.csv")[1]
    description = json.loads(cli("describe", "orders.csv", "--json")[1])
    assert description["simultaneous"] == 50
    arguments = ("evaluate", "--data", "orders.csv", "--model")
    together = "events of the same time ranked before any of them is revealed"
    for model in ("popularity", "heuristics"):
        out = cli(*arguments, model)[1]
        assert out.count("popularity") >= 2
        assert together in out
        frozen = cli(*arguments, model, "--update", "frozen")[1]
        assert together not in frozen
    result = json.loads(cli(*arguments, "own-recency", "--json")[1])
    assert (result["simultaneous"], result["together"]["simultaneous"]) == ("in-order", "together")
    compared = json.loads(cli(*arguments, "heuristics", "--json")[1])
    assert all("together" in report for report in compared["heuristics"])


def test_a_rule_for_simultaneous_events_can_be_chosen(cli: Cli, orders: Path, log: Path) -> None:
    arguments = ("evaluate", "--model", "own-recency", "--json", "--data")
    both = json.loads(cli(*arguments, "orders.csv", "--simultaneous", "both")[1])
    for rule, expected in (("in-order", both), ("together", both["together"])):
        result = json.loads(cli(*arguments, "orders.csv", "--simultaneous", rule)[1])
        assert "together" not in result
        assert result["simultaneous"] == rule
        assert result["metrics"] == expected["metrics"]
    assert both["metrics"] != both["together"]["metrics"]
    # This log has few simultaneous events.
    assert "together" not in json.loads(cli(*arguments, "log.csv")[1])
    assert "together" in json.loads(cli(*arguments, "log.csv", "--simultaneous", "both")[1])
    text = cli(
        "evaluate", "--model", "edgebank", "--data", "log.csv", "--simultaneous", "together"
    )[1]
    assert "| simultaneous events together" in text


def test_evaluate_compares_all_heuristics(cli: Cli, log: Path) -> None:
    code, out, _ = cli(
        "evaluate", "--model", "heuristics", "--data", "log.csv", "--kind", "one-mode"
    )
    assert code == 0
    for name in ("popularity", "last-contact", "edgebank-window"):
        assert name in out
    code, out, _ = cli("evaluate", "--model", "heuristics", "--data", "log.csv", "--json")
    assert [heuristic["model"] for heuristic in json.loads(out)["heuristics"]][:2] == [
        "popularity",
        "global-recency",
    ]


def test_options_change_the_evaluation(cli: Cli, log: Path) -> None:
    arguments = ("evaluate", "--model", "own-recency", "--data", "log.csv", "--json")
    plain = json.loads(cli(*arguments)[1])
    masked = json.loads(cli(*arguments, "--mask-seen")[1])
    by_time = json.loads(cli(*arguments, "--split", "50/25/25", "--split-by", "time")[1])
    seen_only = json.loads(cli(*arguments, "--seen-only")[1])
    assert masked["metrics"]["MR"] < plain["metrics"]["MR"]
    assert by_time["split"] == "50/25/25 of time"
    assert seen_only["events"] < plain["events"]
    assert seen_only["split"] == "70/15/15 of rows, seen only"


def test_help_imports_nothing_heavy() -> None:
    """`tclgraph --help` takes under 0.3 s only without these; scripts/bench measures the time."""
    code = (
        "import sys; sys.argv = ['tclgraph', '--help']\n"
        "from tclgraph.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted({'numpy', 'polars', 'rich', 'torch', 'safetensors'} & sys.modules.keys()))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.splitlines()[-1] == "[]"


def test_a_closed_pipe_gives_no_traceback(log: Path) -> None:
    command = f"{sys.executable} -m tclgraph.cli.main describe {log} | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("imported", "seconds"),
    [("torch.version", 0.0), ("tclgraph.evaluation.protocol", 0.3)],
    ids=["in an import", "in the evaluation"],
)
def test_ctrl_c_exits_at_once(tmp_path: Path, imported: str, seconds: float) -> None:
    write_file(synthesize(SyntheticConfig(events=200_000, targets=5_000)), tmp_path / "log.parquet")
    arguments = ["evaluate", "--model", "heuristics", "--data", "log.parquet"]
    with subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", "tclgraph.cli.main", *arguments],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.rstrip().endswith(f" {imported}"):
                break
        time.sleep(seconds)  # the evaluation takes several times as long
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=10)
    assert process.returncode == 130
    assert out == ""
    assert all(line.startswith("import time:") for line in err.splitlines())


def test_the_protocol_of_tgb_shows_both_update_rules(cli: Cli, log: Path) -> None:
    arguments = ("evaluate", "--data", "log.csv", "--protocol", "tgb", "--model")
    code, out, _ = cli(*arguments, "own-recency")
    assert code == 0
    for rule in ("every=200", "streaming"):
        assert f"split 70/15/15 of time quantiles | update {rule} (" in out
    assert "different update rules must not be compared" in out
    document = json.loads(cli(*arguments, "own-recency", "--json")[1])
    assert (document["model"], document["parts"]["test"]) == ("own-recency", 60)
    assert list(document["updates"]) == ["every=200", "streaming"]
    for rule, report in document["updates"].items():
        assert (report["update"], report["protocol"]) == (rule, "tgb")
    # All test events are one block of 200, so only one rule knows what test repeats.
    by_rule = [report["metrics"]["MRR"] for report in document["updates"].values()]
    assert by_rule[0] < by_rule[1]
    single = json.loads(cli(*arguments, "own-recency", "--update", "every=200", "--json")[1])
    assert single["metrics"] == document["updates"]["every=200"]["metrics"]
    assert single["data"] == document["data"] == "log.csv"
    code, out, _ = cli(*arguments, "heuristics")
    assert code == 0
    assert out.count("edgebank-window") == 4  # two tables for each update rule
    document = json.loads(cli(*arguments, "heuristics", "--json")[1])
    for report in document["updates"].values():
        assert report["heuristics"][0]["model"] == "popularity"


def test_a_run_has_the_split_of_tgb_or_is_refused(cli: Cli, log: Path) -> None:
    train = ("train", "log.csv", "--model", "own-recency", "--run")
    assert cli(*train, "paper")[0] == 0
    assert cli(*train, "tgb", "--split", "70/15/15", "--split-by", "quantiles")[0] == 0
    code, _, err = cli("evaluate", "paper", "--protocol", "tgb")
    assert code == 2
    assert "this split is 70/15/15 of rows; train with --split 70/15/15 --split-by quantiles" in err
    of_run = json.loads(cli("evaluate", "tgb", "--protocol", "tgb", "--json")[1])
    fitted = ("evaluate", "--data", "log.csv", "--model", "own-recency", "--protocol", "tgb")
    of_model = json.loads(cli(*fitted, "--json")[1])
    for rule, report in of_run["updates"].items():
        assert report["metrics"] == of_model["updates"][rule]["metrics"]


def test_a_git_history_is_a_log(cli: Cli, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "project")
    for step in range(6):
        repository.commit("a", "b", f"c{step % 2}", author=("ann", "bob")[step % 2], time=step)
    assert json.loads(cli("describe", "git:project", "--json")[1])["interactions"] == 18
    train = ("train", "git:project", "--model", "own-recency")
    run = "runs/own-recency-git-project"
    assert cli(*train)[1].endswith(f"next: tclgraph evaluate {run}\n")
    assert cli(*train, "--run", run, "--resume")[0] == 0
    code, _, err = cli("train", "git:elsewhere", "--run", run, "--resume")
    assert code == 2
    assert f"{run} was begun with the log git:{repository.path.resolve()}, not git:else" in err
    report = json.loads(cli("evaluate", run, "--json")[1])
    assert (report["data"], report["file"], report["events"]) == ("project", "git:project", 3)
