import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tclgraph.errors import InputError
from tclgraph.events.catalog import load
from tclgraph.events.columns import Columns
from tclgraph.events.readers import read_file, read_frame
from tclgraph.events.stream import EventStream
from tests.streams import refuse_notices, write

PLAIN = "source,target,time\nann,tea,1\nbob,jam,2\nann,jam,3\n"


def expected(**more: object) -> EventStream:
    return EventStream.from_columns(
        ["ann", "bob", "ann"],
        ["tea", "jam", "jam"],
        [1, 2, 3],
        **more,  # type: ignore[arg-type]
    )


DRESSES: dict[str, str | bytes] = {
    "plain.csv": PLAIN,
    "tabs.tsv": PLAIN.replace(",", "\t"),
    "semicolons.csv": PLAIN.replace(",", ";"),
    "blanks.txt": PLAIN.replace(",", "   "),
    "windows.csv": PLAIN.replace("\n", "\r\n"),
    "marked.csv": "\ufeff" + PLAIN,
    "no_newline.csv": PLAIN.rstrip(),
    "blank_lines.csv": PLAIN.replace("\nbob", "\n\nbob") + "\n\n",
    "spaces.csv": PLAIN.replace(",", ", "),
    "quoted.csv": PLAIN.replace("ann", '"ann"'),
    "any_ending.log": PLAIN,
    "zipped.csv.gz": gzip.compress(PLAIN.encode()),
    "more.csv": "note,source,target,time,x\n,ann,tea,1,\n,bob,jam,2,\n?,ann,jam,3,!\n",
    "capitals.csv": PLAIN.replace("source,target,time", "Source,TARGET,Time"),
}


@pytest.mark.parametrize("name", DRESSES)
def test_text_files_of_every_dress_give_the_same_stream(tmp_path: Path, name: str) -> None:
    stream = read_file(write(tmp_path, name, DRESSES[name]), notify=lambda _: None)
    assert stream.equals(expected())


def test_a_file_without_header_is_source_target_time(tmp_path: Path) -> None:
    notices: list[str] = []
    path = write(tmp_path, "bare.csv", PLAIN.split("\n", 1)[1])
    assert read_file(path, notify=notices.append).equals(expected())
    assert notices == [
        "bare.csv: no header; column 1 is the source, 2 is the target, 3 is the time"
    ]


def test_columns_of_a_file_without_header_are_named_by_position(tmp_path: Path) -> None:
    path = write(tmp_path, "bare.csv", "1,ann,tea\n2,bob,jam\n3,ann,jam\n")
    columns = Columns(source="2", target="3", time="1")
    assert read_file(path, columns=columns, notify=refuse_notices).equals(expected())


def test_a_header_of_numbers_can_be_declared(tmp_path: Path) -> None:
    path = write(tmp_path, "numbers.csv", "0,1,2\nann,tea,1\nbob,jam,2\nann,jam,3\n")
    columns = Columns(source="0", target="1", time="2")
    assert read_file(path, columns=columns, header=True).equals(expected())


def test_column_names_are_guessed_and_the_guess_is_told(tmp_path: Path) -> None:
    notices: list[str] = []
    path = write(tmp_path, "shop.csv", PLAIN.replace("source,target,time", "user,item,ts"))
    assert read_file(path, notify=notices.append).equals(expected())
    assert notices == ["shop.csv: user is the source, item is the target, ts is the time"]


def test_columns_can_be_named(tmp_path: Path) -> None:
    path = write(tmp_path, "odd.csv", PLAIN.replace("source,target,time", "who,what,when"))
    columns = Columns(source="who", target="what", time="when")
    assert read_file(path, columns=columns, notify=refuse_notices).equals(expected())
    with pytest.raises(InputError, match="no target column 'wat'; did you mean \"what\""):
        read_file(path, columns=Columns(source="who", target="wat", time="when"))
    with pytest.raises(InputError, match="three different columns"):
        read_file(path, columns=Columns(source="who", target="who", time="when"))


def test_snap_text(tmp_path: Path) -> None:
    text = "# Directed graph\n# Nodes: 3\n1 2 1082040961\n3  4\t1082155839 \n1 2 1082414391\n"
    stream = read_file(write(tmp_path, "CollegeMsg.txt", text), notify=lambda _: None)
    assert stream.sources.keys.to_list() == [1, 3]
    assert stream.time.tolist() == [1082040961, 1082155839, 1082414391]
    tabs = write(tmp_path, "tabs.txt", "# comment\n1\t2\t3\n")
    assert len(read_file(tabs, notify=lambda _: None)) == 1


def test_a_hash_tag_is_a_key_in_a_comma_separated_log(tmp_path: Path) -> None:
    stream = read_file(write(tmp_path, "tags.csv", "#a,x,1\n#b,y,2\n"), notify=lambda _: None)
    assert stream.sources.keys.to_list() == ["#a", "#b"]


JODIE = (
    "user_id,item_id,timestamp,state_label,comma_separated_list_of_features\n"
    "0,0,0.0,0,-0.175,0.25\n1,0,36.0,1,0.5,0.0\n0,1,77.5,0,1e-3,2\n"
)


def test_the_jodie_format_whose_header_is_shorter_than_its_rows(tmp_path: Path) -> None:
    stream = read_file(write(tmp_path, "wikipedia.csv", JODIE), notify=lambda _: None)
    assert stream.time.tolist() == [0, 36, 77.5]
    assert stream.label is not None
    assert stream.label.tolist() == [0, 1, 0]
    assert stream.features is not None
    np.testing.assert_array_equal(
        stream.features, np.array([[-0.175, 0.25], [0.5, 0], [1e-3, 2]], dtype=np.float32)
    )
    without = read_file(
        write(tmp_path, "again.csv", JODIE), columns=Columns(features=()), notify=lambda _: None
    )
    assert without.features is None


def test_the_tgn_format(tmp_path: Path) -> None:
    text = ",u,i,ts,label,idx\n0,1,8228,0.0,0.0,1\n1,2,8228,36.5,1.0,2\n"
    notices: list[str] = []
    stream = read_file(write(tmp_path, "ml_wikipedia.csv", text), notify=notices.append)
    assert stream.targets.keys.to_list() == [8228]
    assert stream.label is not None
    assert stream.label.tolist() == [0, 1]
    assert notices == ["ml_wikipedia.csv: u is the source, i is the target, ts is the time"]


def test_an_unsorted_file_is_sorted_and_that_is_told(tmp_path: Path) -> None:
    notices: list[str] = []
    path = write(tmp_path, "mixed.csv", "source,target,time\nbob,jam,2\nann,tea,1\nann,jam,3\n")
    assert read_file(path, notify=notices.append).equals(expected())
    assert notices == [
        "mixed.csv, row 2 (line 3), column 'time': time runs backwards; the events were sorted"
    ]


def test_shared_keys_bring_up_the_kind_of_graph(tmp_path: Path) -> None:
    notices: list[str] = []
    path = write(tmp_path, "mail.csv", "source,target,time\nann,bob,1\nbob,ann,2\n")
    assert read_file(path, notify=notices.append).graph == "bipartite"
    assert "pass --graph one-mode" in notices[0]
    assert read_file(path, graph="one-mode", notify=refuse_notices).graph == "one-mode"


def columns_of_three() -> dict[str, list[object]]:
    return {"source": ["ann", "bob", "ann"], "target": ["tea", "jam", "jam"], "time": [1, 2, 3]}


def test_tables_of_every_library_give_the_same_stream() -> None:
    columns = columns_of_three()
    categorical = pd.DataFrame(columns).astype({"source": "category"})
    for table in (
        columns,
        {name: np.array(column) for name, column in columns.items()},
        pl.DataFrame(columns),
        pl.DataFrame(columns).with_columns(pl.col("source").cast(pl.Categorical)),
        pd.DataFrame(columns),
        categorical,
        pa.table(columns),
    ):
        assert load(table, notify=refuse_notices).equals(expected()), type(table)


def test_date_columns_of_every_library() -> None:
    moments = ["2024-05-31T12:00:00", "2024-05-31T12:00:01.5"]
    seconds = [1717156800.0, 1717156801.5]
    keys = {"source": [1, 2], "target": [3, 4]}
    naive = pd.DataFrame({**keys, "time": pd.to_datetime(moments, format="ISO8601")})
    zoned = pd.DataFrame(
        {**keys, "time": pd.to_datetime(moments, format="ISO8601").tz_localize("Europe/Paris")}
    )
    assert load(naive, notify=lambda _: None).time.tolist() == seconds
    assert load(zoned, notify=refuse_notices).time.tolist() == [one - 7200 for one in seconds]
    arrow = pa.table({**keys, "time": pa.array(naive["time"].tolist(), pa.timestamp("us", "UTC"))})
    assert load(arrow, notify=refuse_notices).time.tolist() == seconds


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    pl.DataFrame(columns_of_three()).write_parquet(path)
    assert read_file(path, notify=refuse_notices).equals(expected())


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("source", [1.5, 2.0, 3.0], "'source' has type Float64, and a key is an integer or text"),
        ("target", [[1], [2], [3]], "'target' has type List"),
        ("time", [True, False, True], "type Boolean cannot be read as a time"),
        ("weight", ["a", "b", "c"], "row 1, column 'weight': 'a' is not a number"),
    ],
)
def test_wrong_types_are_named(
    tmp_path: Path, column: str, values: list[object], message: str
) -> None:
    path = tmp_path / "log.parquet"
    pl.DataFrame({**columns_of_three(), column: values}).write_parquet(path)
    with pytest.raises(InputError, match=message):
        read_file(path)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (["ann", None, "bob"], "row 2, column 'source': the key is empty"),
        (pd.array([1, None, 2], dtype="Int64"), "'source' has type Float64"),
        ([1.0, None, 2.0], "'source' has type Float64"),
        (pd.Series(["ann", 7, "bob"], dtype=object), "'source' mixes types"),
    ],
)
def test_pandas_columns_with_gaps_or_mixtures_are_refused(source: object, message: str) -> None:
    frame = pd.DataFrame({**columns_of_three(), "source": source})
    with pytest.raises(InputError, match=message):
        load(frame)


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(InputError, match="cannot read a int as a log"):
        load(7)


def test_keys_are_the_same_whichever_way_they_come() -> None:
    as_text = read_frame({"source": ["7", "8"], "target": ["x", "y"], "time": [1, 2]})
    as_numbers = read_frame({"source": [7, 8], "target": ["x", "y"], "time": [1, 2]})
    assert as_text.equals(as_numbers)
