from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tclgraph.errors import InputError
from tclgraph.events.log_spec import LogSpec
from tests.streams import write

LOG = "who,what,when\n" + "".join(f"{'ab'[n % 2]},{'xyz'[n % 3]},{n}000\n" for n in range(20))


@pytest.fixture
def spec(tmp_path: Path) -> LogSpec:
    path = write(tmp_path, "shop.log.csv", LOG)
    return LogSpec(log=str(path), source="who", target="what", time="when", time_unit="ms")


def test_open_reads_and_splits_the_log(spec: LogSpec) -> None:
    split = spec.open()
    assert str(split) == "70/15/15 of rows"
    assert split.sizes == {"train": 14, "valid": 3, "test": 3}
    assert split.events.kind == "bipartite"
    assert split.events.duration == 19
    chosen = replace(spec, kind="one-mode", split="50/25/25", split_by="time", seen_only=True)
    assert chosen.open().events.kind == "one-mode"
    assert str(chosen.open()) == "50/25/25 of time, seen only"


def test_header_says_whether_the_first_line_is_an_event(tmp_path: Path) -> None:
    path = str(write(tmp_path, "log.csv", "a,x,0\n" * 20 + "b,y,1\n" * 20))
    assert len(LogSpec(log=path).open().events) == 40
    columns = {"source": "a", "target": "x", "time": "0"}
    assert len(LogSpec(log=path, header=True, **columns).open().events) == 39  # type: ignore[arg-type]


def test_ahead_leaves_test_out_and_moves_both_cuts_back(spec: LogSpec) -> None:
    split = spec.open()
    ahead = replace(spec, ahead=True).open()
    assert ahead.sizes == {"train": 11, "valid": 3, "test": 3}
    assert ahead.test.time.tolist() == split.valid.time.tolist()
    assert len(ahead.events) == split.valid_end
    assert str(ahead) == "70/15/15 of rows, train cut to its first 80 %, test left out"


def test_a_log_can_be_read_up_to_an_event(spec: LogSpec) -> None:
    first = replace(spec, num_events=10)
    assert first.read().time.tolist() == list(range(10))
    assert first.open().sizes == {"train": 7, "valid": 1, "test": 2}
    assert first.flags() == spec.flags()


def test_a_data_set_has_the_papers_split() -> None:
    spec = LogSpec(log="collegemsg")
    assert str(spec.open()) == "60/20/20 of rows"
    assert spec.open().events.kind == "one-mode"


def test_name_and_file(spec: LogSpec, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TCLGRAPH_CACHE", str(tmp_path))
    monkeypatch.delenv("TCLGRAPH_DATA", raising=False)
    assert (spec.name, spec.file) == ("shop", "shop.log.csv")
    collegemsg = LogSpec(log="collegemsg")
    assert (collegemsg.name, collegemsg.file) == ("collegemsg", "collegemsg.csv.gz")
    assert LogSpec(log="reddit").file == ""


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"kind": "onemode"}, "unknown graph kind 'onemode'; did you mean \"one-mode\""),
        ({"split": "70/30"}, "cannot read the split '70/30'"),
        ({"split_by": "row"}, "cannot split by 'row'; did you mean \"rows\""),
        ({"time_unit": "sec"}, "unknown time unit 'sec'"),
    ],
)
def test_invalid_values_are_refused_before_the_log_is_read(
    values: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        LogSpec(log="missing.csv", **values)


def test_json_restores_the_spec(spec: LogSpec) -> None:
    assert LogSpec.from_json(spec.to_json()) == spec


def test_flags_list_every_value_that_is_not_the_default() -> None:
    spec = LogSpec(
        log="log.csv",
        kind="one-mode",
        source="u",
        target="i",
        time="t",
        time_unit="ms",
        header=True,
        split="60/20/20",
        split_by="time",
        seen_only=True,
    )
    assert " ".join(spec.flags()) == (
        "--kind one-mode --source u --target i --time t --time-unit ms --header "
        "--split 60/20/20 --split-by time --seen-only"
    )
    assert LogSpec(log="log.csv").flags() == []
