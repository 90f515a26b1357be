"""Invalid input gives one sentence on stderr, exit code 2, no output and no files."""

import gzip
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from tests.streams import Cli, write

HEADER = "source,target,time\n"
VALID = HEADER + "".join(f"{'ab'[n % 2]},{'xyz'[n % 3]},{n}\n" for n in range(20))

BAD_FILES: dict[str, tuple[str, str | bytes, str]] = {
    "empty": ("log.csv", "", "log.csv: the file is empty"),
    "blank": ("log.csv", "\n \n", "log.csv: the file is empty"),
    "header only": ("log.csv", HEADER, "log.csv: the file has a header but no rows"),
    "missing column": (
        "log.csv",
        "source,target\na,b\n",
        "cannot guess the time column among source, target; name it with --time",
    ),
    "two possible times": (
        "log.csv",
        "who,what,ordered,paid\n" + "a,x,2024-05-01,2024-05-02\na,y,2024-05-03,2024-05-04\n" * 2,
        "cannot guess the time column among ordered, paid; name it with --time",
    ),
    "unparsable time": (
        "log.csv",
        VALID + "a,x,noon\n",
        "log.csv, row 21 (line 22), column 'time': cannot read 'noon' as a time",
    ),
    "NaN time": ("log.csv", VALID + "a,x,NaN\n", "row 21 (line 22), column 'time': time NaN"),
    "infinite time": ("log.csv", VALID + "a,x,inf\n", "row 21 (line 22), column 'time': time inf"),
    "empty time": (
        "log.csv",
        VALID + "a,x,\n",
        "row 21 (line 22), column 'time': the time is empty",
    ),
    "mixed times": (
        "log.csv",
        VALID + "a,x,2024-01-01\n",
        "row 21 (line 22), column 'time': '2024-01-01' has another format than '0' in row 1",
    ),
    "mixed zones": (
        "log.csv",
        HEADER + "a,x,2024-01-01T00:00Z\nb,y,2024-01-02T00:00\n",
        "column 'time': of '2024-01-02T00:00' and '2024-01-01T00:00Z' in row 1, only one has",
    ),
    "no such date": (
        "log.csv",
        HEADER + "a,x,2024-02-30\n",
        "'2024-02-30' is not an existing date",
    ),
    "float and integer keys": (
        "log.csv",
        HEADER + "17,x,1\n17.0,y,2\n",
        "row 2 (line 3), column 'source': key '17.0' and key '17' in row 1",
    ),
    "empty key": ("log.csv", HEADER + "a,,1\n", "column 'target': the key is empty"),
    "short row": (
        "log.csv",
        VALID + "a,x\n",
        "log.csv, row 21 (line 22): 2 fields instead of 3",
    ),
    "long row": (
        "log.csv",
        VALID + "a,x,1,9\n",
        "log.csv, row 21 (line 22): 4 fields instead of 3",
    ),
    "misplaced quote": (
        "log.csv",
        VALID + '"a"b,x,1\n',
        "log.csv, line 22: a quote or a line break is misplaced",
    ),
    "unclosed quote": ("log.csv", VALID + '"a,x,1\n', "log.csv, line 22: a quote"),
    "binary": ("log.csv", bytes(range(256)) * 9, "log.csv: the file is binary"),
    "not UTF-8": (
        "log.csv",
        HEADER.encode() + b"\xe9,x,1\n",
        "log.csv, line 2: the text is not UTF-8",
    ),
    "damaged gzip": ("log.csv.gz", gzip.compress(VALID.encode())[:40], "the gzip file is damaged"),
    "damaged Parquet": ("log.parquet", b"PAR1 and then nothing", "the Parquet file is damaged"),
    "one column": ("log.csv", "1\n2\n3\n", "need three columns, but the file has 1"),
    "one target": (
        "log.csv",
        HEADER + "".join(f"a,tea,{n}\n" for n in range(20)),
        "the log has only one target ('tea')",
    ),
    "too short to split": ("log.csv", HEADER + "a,x,1\nb,y,2\n", "leaves valid empty"),
}


def assert_refused(result: tuple[int, str, str], message: str) -> None:
    code, out, err = result
    errors = [line for line in err.splitlines() if not line.startswith("note: ")]
    assert code == 2, err
    assert out == ""
    assert len(errors) == 1, err
    assert errors[0].startswith("error: ")
    assert message in errors[0]


@pytest.mark.parametrize("case", BAD_FILES)
def test_invalid_files_are_refused(cli: Cli, tmp_path: Path, case: str) -> None:
    name, content, message = BAD_FILES[case]
    write(tmp_path, name, content)
    assert_refused(cli("describe", name), message)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_parquet_file_with_wrong_types_is_refused(cli: Cli, tmp_path: Path) -> None:
    pl.DataFrame({"source": [1.5], "target": ["x"], "time": [1]}).write_parquet(
        tmp_path / "log.parquet"
    )
    assert_refused(cli("describe", "log.parquet"), "column 'source' has type Float64")


TGB = ["evaluate", "--model", "edgebank", "--data", "log.csv", "--protocol", "tgb"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["describe", "wikipeda"], 'did you mean "wikipedia"?'),
        (["describe", "nowhere.csv"], "cannot find 'nowhere.csv': it is neither a file"),
        (["describe", "."], "cannot read .: Is a directory; give a file"),
        (["describe", "git:nowhere"], "cannot read git:nowhere: there is no such folder"),
        (["train", "git:.", "--time", "date"], "git:. has no columns to name; leave out --source"),
        (["describe", "log.csv", "--source", "sorce"], 'did you mean "source"?'),
        (
            ["describe", "collegemsg", "--time", "t"],
            "the columns of the data set collegemsg are known",
        ),
        (["describe", "log.csv", "--kind", "onemode"], 'did you mean "one-mode"?'),
        (
            ["describe", "log.csv", "--split", "98/1/1"],
            "leaves valid empty (the log has 20 events)",
        ),
        (["describe", "log.csv", "--split", "70/30/0"], "leaves a part empty"),
        (["describe", "log.csv", "--split", "seventy"], "three percentages that add to 100"),
        (["describe", "log.csv", "--split-by", "row"], 'did you mean "rows"?'),
        (["describe", "log.csv", "--time-unit", "sec"], "unknown time unit 'sec'"),
        (["evaluate", "--model", "populrity", "--data", "log.csv"], 'did you mean "popularity"?'),
        (["evaluate", "--model", "last-contact", "--data", "log.csv"], "pass --kind one-mode"),
        (
            ["evaluate", "--model", "edgebank", "--data", "log.csv", "--update", "always"],
            "give streaming, every=N",
        ),
        (
            ["evaluate", "--model", "edgebank", "--data", "log.csv", "--simultaneous", "apart"],
            "unknown rule for simultaneous events 'apart'; give in-order, together or both",
        ),
        (
            ["evaluate", "--model", "edgebank", "--data", "log.csv", "--protocol", "tbg"],
            "unknown protocol 'tbg'; did you mean \"tgb\"?",
        ),
        (
            [*TGB, "--split", "60/20/20", "--seen-only"],
            "the protocol tgb has its own split; leave out --seen-only --split",
        ),
        ([*TGB, "--mask-seen"], "leave out --mask-seen"),
        ([*TGB, "--candidates", "known"], "the protocol tgb has its own candidates"),
        (
            ["evaluate", "--model", "edgebank", "--data", "log.csv", "--candidates", "seen"],
            "unknown candidates 'seen'; known are: all, known",
        ),
        (
            ["evaluate", "--model", "edgebank", "--data", "log.csv", "--by", "sorce"],
            "log.csv: there is no segment column 'sorce'; did you mean \"source\"?",
        ),
        (["evaluate", "--model", "edgebank"], "give the folder of a run, or --model and --data"),
        (["evaluate", "run", "--model", "edgebank"], "leave out --model and --data"),
    ],
)
def test_invalid_arguments_are_refused(
    cli: Cli, tmp_path: Path, arguments: list[str], message: str
) -> None:
    write(tmp_path, "log.csv", VALID)
    assert_refused(cli(*arguments), message)


def test_json_output_has_the_same_errors(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path, "log.csv", HEADER)
    arguments = ("evaluate", "--model", "edgebank", "--data", "log.csv", "--json")
    assert_refused(cli(*arguments), "no rows")


def test_an_unsorted_file_gives_a_notice_and_no_error(cli: Cli, tmp_path: Path) -> None:
    rows = VALID.splitlines(keepends=True)
    write(tmp_path, "log.csv", rows[0] + "".join(reversed(rows[1:])))
    code, out, err = cli("describe", "log.csv")
    assert code == 0
    assert "interactions" in out
    assert (
        "note: log.csv, row 2 (line 3), column 'time': the time is earlier than in the row before"
        in err
    )


def test_the_offline_error_says_what_to_get_and_where_to_save_it(cli: Cli, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    # A proxy that does not answer simulates a machine without a network.
    offline = {
        "http_proxy": "http://127.0.0.1:1",
        "TCLGRAPH_DATA": "",
        "TCLGRAPH_CACHE": str(cache),
    }
    result = cli("describe", "reddit", **offline)
    assert_refused(result, "get http://snap.stanford.edu/jodie/reddit.csv and save it as")
    assert not list(cache.iterdir())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
@pytest.mark.parametrize("flag", ["", "--json"])
def test_output_to_a_full_disk_gives_one_sentence(tmp_path: Path, flag: str) -> None:
    write(tmp_path, "log.csv", VALID)
    command = f"{sys.executable} -m tclgraph.cli.main describe log.csv {flag} > /dev/full"
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert_refused((done.returncode, done.stdout, done.stderr), "cannot write the output: No space")


def test_a_negative_seed_is_refused(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path, "log.csv", VALID)
    code, out, err = cli("evaluate", "--model", "edgebank", "--data", "log.csv", "--seed", "-1")
    assert (code, out) == (2, "")
    assert "Traceback" not in err
