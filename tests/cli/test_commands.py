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
from tests.streams import Cli


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.csv"
    write_file(synthesize(SyntheticConfig(events=400)), path)
    return path


def test_datasets(cli: Cli) -> None:
    code, out, _ = cli("datasets")
    assert code == 0
    assert "collegemsg" in out
    code, out, _ = cli("datasets", "--json")
    assert json.loads(out)["lastfm"]["interactions"] == 1_293_103


def test_describe_collegemsg(cli: Cli) -> None:
    code, out, _ = cli("describe", "collegemsg", "--seen-only")
    assert code == 0
    for figure in ("48,771", "999", "1,352", "193.63", "67.28 %", "23.18 %"):
        assert figure in out
    code, out, _ = cli("describe", "collegemsg", "--seen-only", "--json")
    found = json.loads(out)
    assert found["interactions"] == 48_771
    assert (found["sources"], found["targets"]) == (999, 1_352)
    assert (found["days"], found["repetition_density"]) == (193.63, 67.28)
    assert found["parts"] == {"train": 35_901, "valid": 7_815, "test": 5_055}


def test_evaluate_json_is_one_object_and_nothing_else(cli: Cli, log: Path) -> None:
    code, out, err = cli("evaluate", "--model", "own-recency", "--data", "log.csv", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["model"] == "own-recency"
    assert found["data"] == "log.csv"
    assert found["split"] == "70/15/15 of rows"
    assert found["update"] == "streaming"
    assert found["events"] == 60
    assert found["targets"] > 1
    for group in ("metrics", "repeat", "new"):
        assert tuple(found[group]) == METRIC_NAMES
    assert found["seconds"] > 0
    assert found["machine"]["cores"] >= 1
    assert all(line.startswith("note: ") for line in err.splitlines())


def test_the_update_rule_is_in_every_output(cli: Cli, log: Path) -> None:
    for rule in ("streaming", "every=7", "frozen", "frozen=valid"):
        words = ("evaluate", "--data", "log.csv", "--update", rule, "--model")
        assert f"update {rule} (" in cli(*words, "popularity")[1]
        assert json.loads(cli(*words, "popularity", "--json")[1])["update"] == rule
    assert "update every=7 (" in cli(*words[:4], "every=7", "--model", "heuristics")[1]


def test_all_floors_side_by_side(cli: Cli, log: Path) -> None:
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


def test_flags_reach_the_protocol(cli: Cli, log: Path) -> None:
    words = ("evaluate", "--model", "own-recency", "--data", "log.csv", "--json")
    plain = json.loads(cli(*words)[1])
    masked = json.loads(cli(*words, "--mask-seen")[1])
    by_time = json.loads(cli(*words, "--split", "50/25/25", "--split-by", "time")[1])
    seen_only = json.loads(cli(*words, "--seen-only")[1])
    assert masked["metrics"]["MR"] < plain["metrics"]["MR"]
    assert by_time["split"] == "50/25/25 of time"
    assert seen_only["events"] < plain["events"]
    assert seen_only["split"] == "70/15/15 of rows, seen only"


def test_help_imports_nothing_heavy() -> None:
    """What keeps `tclgraph --help` under 0.3 s; scripts/bench measures the time itself."""
    code = (
        "import sys; sys.argv = ['tclgraph', '--help']\n"
        "from tclgraph.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted({'numpy', 'polars', 'rich', 'torch', 'safetensors'} & sys.modules.keys()))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.splitlines()[-1] == "[]"


def test_a_reader_that_has_seen_enough_is_no_error(log: Path) -> None:
    command = f"{sys.executable} -m tclgraph.cli.main describe {log} | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert "Traceback" not in done.stderr


def test_ctrl_c_ends_at_once_and_quietly(tmp_path: Path) -> None:
    write_file(synthesize(SyntheticConfig(events=200_000, targets=5_000)), tmp_path / "log.parquet")
    words = ["evaluate", "--model", "heuristics", "--data", "log.parquet"]
    with subprocess.Popen(
        [sys.executable, "-m", "tclgraph.cli.main", *words],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        time.sleep(2)  # it needs several times as long
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert out == ""
    assert "Traceback" not in err
