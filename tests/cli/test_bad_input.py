"""Every bad input: one sentence on stderr, exit code 2, nothing on stdout, nothing written."""

import gzip
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from tests.streams import Cli, write

HEADER = "source,target,time\n"
GOOD = HEADER + "".join(f"{'ab'[n % 2]},{'xyz'[n % 3]},{n}\n" for n in range(20))

BAD_FILES: dict[str, tuple[str, str | bytes, str]] = {
    "empty": ("log.csv", "", "log.csv: the file is empty"),
    "blank": ("log.csv", "\n \n", "log.csv: the file is empty"),
    "header only": ("log.csv", HEADER, "log.csv: a header but no rows"),
    "missing column": (
        "log.csv",
        "source,target\na,b\n",
        "cannot tell which column is the time among source, target",
    ),
    "unparsable time": (
        "log.csv",
        GOOD + "a,x,noon\n",
        "log.csv, row 21 (line 22), column 'time': cannot read 'noon' as a time",
    ),
    "NaN time": ("log.csv", GOOD + "a,x,NaN\n", "row 21 (line 22), column 'time': time NaN"),
    "infinite time": ("log.csv", GOOD + "a,x,inf\n", "row 21 (line 22), column 'time': time inf"),
    "empty time": (
        "log.csv",
        GOOD + "a,x,\n",
        "row 21 (line 22), column 'time': the time is empty",
    ),
    "mixed times": (
        "log.csv",
        GOOD + "a,x,2024-01-01\n",
        "row 21 (line 22), column 'time': '2024-01-01' is written in another way than '0' in row 1",
    ),
    "mixed zones": (
        "log.csv",
        HEADER + "a,x,2024-01-01T00:00Z\nb,y,2024-01-02T00:00\n",
        "row 2 (line 3), column 'time': '2024-01-02T00:00' and '2024-01-01T00:00Z' in row 1",
    ),
    "no such date": ("log.csv", HEADER + "a,x,2024-02-30\n", "'2024-02-30' is not a date"),
    "float and integer keys": (
        "log.csv",
        HEADER + "17,x,1\n17.0,y,2\n",
        "row 2 (line 3), column 'source': key '17.0' and key '17' in row 1",
    ),
    "empty key": ("log.csv", HEADER + "a,,1\n", "column 'target': the key is empty"),
    "short row": (
        "log.csv",
        GOOD + "a,x\n",
        "log.csv, row 21 (line 22): 2 fields where 3 are expected",
    ),
    "long row": (
        "log.csv",
        GOOD + "a,x,1,9\n",
        "log.csv, row 21 (line 22): 4 fields where 3 are expected",
    ),
    "quote out of place": (
        "log.csv",
        GOOD + '"a"b,x,1\n',
        "log.csv, line 22: a quote or a line break out of place",
    ),
    "unclosed quote": ("log.csv", GOOD + '"a,x,1\n', "log.csv, line 22: a quote"),
    "binary": ("log.csv", bytes(range(256)) * 9, "log.csv: a binary file"),
    "not UTF-8": ("log.csv", HEADER.encode() + b"\xe9,x,1\n", "log.csv, line 2: not UTF-8"),
    "damaged gzip": ("log.csv.gz", gzip.compress(GOOD.encode())[:40], "damaged gzip file"),
    "damaged Parquet": ("log.parquet", b"PAR1 and then nothing", "damaged Parquet file"),
    "one column": ("log.csv", "1\n2\n3\n", "1 column where source, target and time need three"),
    "one target": (
        "log.csv",
        HEADER + "".join(f"a,tea,{n}\n" for n in range(20)),
        "the log has one target only ('tea')",
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
def test_bad_files(cli: Cli, tmp_path: Path, case: str) -> None:
    name, content, message = BAD_FILES[case]
    write(tmp_path, name, content)
    assert_refused(cli("describe", name), message)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_parquet_with_the_wrong_types(cli: Cli, tmp_path: Path) -> None:
    pl.DataFrame({"source": [1.5], "target": ["x"], "time": [1]}).write_parquet(
        tmp_path / "log.parquet"
    )
    assert_refused(cli("describe", "log.parquet"), "column 'source' has type Float64")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["describe", "wikipeda"], 'did you mean "wikipedia"?'),
        (["describe", "nowhere.csv"], "cannot find 'nowhere.csv'"),
        (["describe", "."], "cannot read .: Is a directory"),
        (["describe", "log.csv", "--source", "sorce"], 'did you mean "source"?'),
        (["describe", "collegemsg", "--time", "t"], "the columns of collegemsg are known"),
        (["describe", "log.csv", "--kind", "onemode"], 'did you mean "one-mode"?'),
        (["describe", "log.csv", "--split", "98/1/1"], "leaves valid empty (20 events in all)"),
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
    ],
)
def test_bad_words(cli: Cli, tmp_path: Path, words: list[str], message: str) -> None:
    write(tmp_path, "log.csv", GOOD)
    assert_refused(cli(*words), message)


def test_the_same_holds_for_json(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path, "log.csv", HEADER)
    words = ("evaluate", "--model", "edgebank", "--data", "log.csv", "--json")
    assert_refused(cli(*words), "no rows")


def test_an_unsorted_file_is_no_error(cli: Cli, tmp_path: Path) -> None:
    rows = GOOD.splitlines(keepends=True)
    write(tmp_path, "log.csv", rows[0] + "".join(reversed(rows[1:])))
    code, out, err = cli("describe", "log.csv")
    assert code == 0
    assert "interactions" in out
    assert "note: log.csv, row 2 (line 3), column 'time': time runs backwards" in err


def test_offline_says_what_to_get_and_where_to_put_it(cli: Cli, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    # A proxy that nobody answers at: as good as no network.
    offline = {
        "http_proxy": "http://127.0.0.1:1",
        "TCLGRAPH_DATA": "",
        "TCLGRAPH_CACHE": str(cache),
    }
    result = cli("describe", "reddit", **offline)
    assert_refused(result, "get http://snap.stanford.edu/jodie/reddit.csv and put it as reddit.csv")
    assert not list(cache.iterdir())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
@pytest.mark.parametrize("flag", ["", "--json"])
def test_a_full_disk_behind_stdout(tmp_path: Path, flag: str) -> None:
    write(tmp_path, "log.csv", GOOD)
    command = f"{sys.executable} -m tclgraph.cli.main describe log.csv {flag} > /dev/full"
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert_refused((done.returncode, done.stdout, done.stderr), "cannot write the output: No space")


def test_a_seed_is_not_negative(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path, "log.csv", GOOD)
    code, out, err = cli("evaluate", "--model", "edgebank", "--data", "log.csv", "--seed", "-1")
    assert (code, out) == (2, "")
    assert "Traceback" not in err
