"""`tclgraph update`: a run observes the events of a log that it does not have yet."""

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import tclgraph as tg
from tests.streams import Cli, write

HEADER = "who,what,when\n"
TRAINED, ALL = 60, 90
TINY = ("epochs=1", "batch_size=16", "width=8", "heads=2", "levels=3", "threads=1")


def row(number: int) -> str:
    """Return an event; new sources and targets appear until the end, and times repeat."""
    newest = 4 + number // 12
    return f"p{number * 7 % newest},q{number * 5 % newest},{number // 2}\n"


ROWS = [row(number) for number in range(ALL)]
COLUMNS = ("--source", "who", "--target", "what", "--time", "when")
UPDATED = "run: added 30 events, 2 new sources and 1 new targets; it has 90 events now\n"


def log(folder: Path, name: str, rows: list[str]) -> str:
    write(folder, name, HEADER + "".join(rows))
    return name


def train(cli: Cli, folder: Path, model: str = "own-recency", *options: str) -> Path:
    name = log(folder, "log.csv", ROWS[:TRAINED])
    code, _, err = cli("train", name, "--model", model, "--run", "run", *COLUMNS, *options)
    assert code == 0, err
    return folder / "run" / "model.safetensors"


@pytest.mark.parametrize("name", ["own-recency", "tcl"])
def test_answers_are_those_of_a_model_that_has_seen_all_events(
    cli: Cli, tmp_path: Path, name: str
) -> None:
    settings = [word for setting in TINY for word in ("--set", setting)] if name == "tcl" else []
    train(cli, tmp_path, name, *settings)
    before = json.loads(cli("evaluate", "run", "--json")[1])
    roomy = tg.load_model(tmp_path / "run")
    stream = tg.load(tmp_path / log(tmp_path, "all.csv", ROWS), notify=lambda _: None)
    roomy.forget()
    roomy.add_nodes(stream.sources.keys.to_list(), stream.targets.keys.to_list())
    roomy.observe(stream)

    code, out, err = cli("update", "run", log(tmp_path, "more.csv", ROWS[TRAINED:]))
    assert (code, out) == (0, UPDATED), err
    model = tg.load_model(tmp_path / "run")
    assert model.state.events().equals(roomy.state.events())
    for source, ranking in roomy.recommend_many(stream.sources.keys.to_list(), top=99).items():
        ours = dict(model.recommend(source, top=99))
        assert ours == pytest.approx(dict(ranking), rel=1e-4, abs=1e-5)
    newest = stream.sources.key(-1)
    code, out, err = cli("recommend", "run", "--source", str(newest), "--json")
    assert code == 0
    assert len(json.loads(out)["sources"][0]["recommendations"]) == stream.num_targets
    assert "is new" not in err
    after = json.loads(cli("evaluate", "run", "--json")[1])
    assert after["parts"] == before["parts"]
    assert after["metrics"] == pytest.approx(before["metrics"])


def test_an_export_that_grows_can_be_given_again(cli: Cli, tmp_path: Path) -> None:
    saved = train(cli, tmp_path)
    before = json.loads(cli("evaluate", "run", "--json")[1])
    # The log of training itself grows: the run still has its own split.
    assert cli("update", "run", log(tmp_path, "log.csv", ROWS))[1] == UPDATED
    complete = saved.read_bytes()
    for rows in (ROWS, ROWS[TRAINED:], ROWS[41:73], ROWS[-1:]):
        code, out, _ = cli("update", "run", log(tmp_path, "again.csv", rows), "--json")
        assert code == 0
        assert json.loads(out) == {
            "run": "run",
            "added": 0,
            "new_sources": 0,
            "new_targets": 0,
            "events": ALL,
        }
        assert saved.read_bytes() == complete
    after = json.loads(cli("evaluate", "run", "--json")[1])
    assert (after["parts"], after["metrics"]) == (before["parts"], before["metrics"])


def test_parts_that_overlap_in_the_middle_of_a_time(cli: Cli, tmp_path: Path) -> None:
    train(cli, tmp_path)
    for first, last in ((50, 71), (70, 70), (64, 75), (75, 90)):
        assert cli("update", "run", log(tmp_path, "part.csv", ROWS[first : last + 1]))[0] == 0
    model = tg.load_model(tmp_path / "run")
    assert model.state.events().equals(
        tg.load(tmp_path / log(tmp_path, "all.csv", ROWS), notify=lambda _: None)
    )


def test_a_log_can_be_read_in_another_way(cli: Cli, tmp_path: Path) -> None:
    train(cli, tmp_path)
    write(tmp_path, "other.csv", "a,b,ms\np0,new,45000\np0,q1,45000\n")
    code, _, err = cli("update", "run", "other.csv")
    assert code == 2
    assert "there is no source column 'who'" in err
    columns = ("--source", "a", "--target", "b", "--time", "ms", "--time-unit", "ms")
    out = cli("update", "run", "other.csv", *columns)[1]
    assert out.startswith("run: added 2 events, 0 new sources and 1 new targets;")


def test_a_run_of_seen_nodes_leaves_the_same_events_out(cli: Cli, tmp_path: Path) -> None:
    train(cli, tmp_path, "own-recency", "--seen-only")
    code, out, err = cli("update", "run", log(tmp_path, "log.csv", ROWS))
    assert code == 0
    assert "run: added 33 events" in out
    assert "because it was trained with --seen-only; they stay out" in err
    assert "added 0 events" in cli("update", "run", "log.csv")[1]
    assert cli("evaluate", "run")[0] == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (HEADER, "the file has a header but no rows"),
        (
            HEADER + "p9,q1,3\np0,q0,99\n",
            "bad.csv: the run lacks 1 of the events before its last one, such as source 'p9', "
            "target 'q1', time 3; leave them out",
        ),
        (HEADER + "p0,q0,\n", "column 'when': the time is empty"),
        (None, "cannot find 'bad.csv'"),
    ],
)
def test_bad_logs_leave_the_run_as_it_is(
    cli: Cli, tmp_path: Path, content: str | None, message: str
) -> None:
    saved = train(cli, tmp_path)
    before = saved.read_bytes()
    if content is not None:
        write(tmp_path, "bad.csv", content)
    assert_refused(cli("update", "run", "bad.csv"), message)
    assert saved.read_bytes() == before


def assert_refused(result: tuple[int, str, str], message: str) -> None:
    code, out, err = result
    assert (code, out) == (2, ""), err
    assert message in err
    assert "Traceback" not in err


def test_runs_that_cannot_be_updated(cli: Cli, tmp_path: Path) -> None:
    more = log(tmp_path, "more.csv", ROWS[TRAINED:])
    assert_refused(cli("update", "nowhere", more), "nowhere is not the folder of a run")
    train(cli, tmp_path)
    assert cli("update", "run", more)[0] == 0
    assert_refused(
        cli("train", "--run", "run", "--resume"),
        "run has been updated with 30 later events, which training would drop",
    )
    # As an interrupted training leaves it: the model has observed the training events only.
    model = tg.load_model(tmp_path / "run")
    events = model.state.events()
    model.forget()
    model.observe(events[:40])
    model.save(tmp_path / "run")
    assert_refused(cli("update", "run", more), "the training of run is not finished; continue it")
    assert cli("train", "--run", "run", "--resume")[0] == 0


def test_keys_of_another_type_are_refused(cli: Cli, tmp_path: Path) -> None:
    rows = [row.replace("p", "").replace("q", "") for row in ROWS[:TRAINED]]
    log(tmp_path, "log.csv", rows)
    assert cli("train", "log.csv", "--model", "own-recency", "--run", "run", *COLUMNS)[0] == 0
    assert "1 new targets" in cli("update", "run", log(tmp_path, "more.csv", ["1,77,99\n"]))[1]
    bad = log(tmp_path, "bad.csv", ["1,77,99\n", "guest,77,100\n"])
    assert_refused(cli("update", "run", bad), "the key 'guest' is text, but those of the log")


def test_a_changed_log_is_not_evaluated(cli: Cli, tmp_path: Path) -> None:
    train(cli, tmp_path)
    log(tmp_path, "log.csv", ROWS[1:])
    assert_refused(cli("evaluate", "run"), "the log of run has changed since training (")


def test_new_nodes_get_answers_with_a_note(cli: Cli, tmp_path: Path) -> None:
    saved = train(cli, tmp_path)
    before = saved.read_bytes()
    code, out, err = cli("recommend", "run", "--source", "nobody", "--candidate", "q1", "--json")
    assert code == 0
    assert len(json.loads(out)["sources"][0]["recommendations"]) == 1
    assert err == "note: source nobody is new; it counts as a node without events\n"
    assert saved.read_bytes() == before


def test_kill_9_at_random_moments(cli: Cli, tmp_path: Path) -> None:
    settings = [word for setting in TINY for word in ("--set", setting)]
    saved = train(cli, tmp_path, "tcl", *settings)
    many = [f"p{n % 97},q{n % 89},{100 + n}\n" for n in range(12_000)]
    command = [sys.executable, "-m", "tclgraph.cli.main", "update", "run"]
    command.append(log(tmp_path, "more.csv", many))
    before = saved.read_bytes()
    started = time.monotonic()
    assert cli(*command[3:])[0] == 0
    duration = time.monotonic() - started
    expected = load_file(saved)
    moments = random.Random(3)
    num_killed = 0
    for _ in range(4):
        saved.unlink()  # not overwritten: the expected tensors are read from the file when needed
        saved.write_bytes(before)
        process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL)
        time.sleep(moments.uniform(0.3, 1.2) * duration)
        process.kill()
        num_killed += process.wait(60) == -9
        assert saved.read_bytes() == before or len(load_file(saved)["time"]) == 12_060
        assert cli(*command[3:])[0] == 0
        ours = load_file(saved)
        assert ours.keys() == expected.keys()
        for name, tensor in ours.items():
            assert torch.equal(tensor, expected[name]), name
        assert not list(saved.parent.glob(".*.part"))
    assert num_killed >= 1
