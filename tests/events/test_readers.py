import csv
import gzip
import io
import os
import threading
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tclgraph.errors import InputError
from tclgraph.events.catalog import load
from tclgraph.events.columns import Columns
from tclgraph.events.readers import read_file, read_frame
from tclgraph.events.stream import EventStream
from tests.streams import refuse_notices, write

PLAIN = "source,target,time\nann,tea,1\nbob,jam,2\nann,jam,3\n"


def expected() -> EventStream:
    return EventStream.from_columns(["ann", "bob", "ann"], ["tea", "jam", "jam"], [1, 2, 3])


FORMATS: dict[str, str | bytes] = {
    "plain.csv": PLAIN,
    "tabs.tsv": PLAIN.replace(",", "\t"),
    "semicolons.csv": PLAIN.replace(",", ";"),
    "spaces.txt": PLAIN.replace(",", "   "),
    "windows.csv": PLAIN.replace("\n", "\r\n"),
    "marked.csv": "\ufeff" + PLAIN,
    "no_newline.csv": PLAIN.rstrip(),
    "blank_lines.csv": PLAIN.replace("\nbob", "\n\nbob") + "\n\n",
    "spaces_after_commas.csv": PLAIN.replace(",", ", "),
    "quoted.csv": PLAIN.replace("ann", '"ann"'),
    "quoted_after_spaces.csv": PLAIN.replace(",", ", ").replace("ann", '"ann"'),
    "old_mac.csv": PLAIN.replace("\n", "\r"),
    "any_ending.log": PLAIN,
    "zipped.csv.gz": gzip.compress(PLAIN.encode()),
    "more.csv": "note,source,target,time,x\n,ann,tea,1,\n,bob,jam,2,\n?,ann,jam,3,!\n",
    "capitals.csv": PLAIN.replace("source,target,time", "Source,TARGET,Time"),
}


@pytest.mark.parametrize("name", FORMATS)
def test_text_files_of_all_formats_give_the_same_stream(tmp_path: Path, name: str) -> None:
    stream = read_file(write(tmp_path, name, FORMATS[name]), notify=lambda _: None)
    assert stream.equals(expected())


def test_a_quote_inside_a_field_is_part_of_the_key(tmp_path: Path) -> None:
    text = 'source,target,time\nann,12" single,1\n"b ""x""",7" single,2\nann,tea,3\n\nbob,tea,4\n'
    stream = read_file(write(tmp_path, "records.csv", text), notify=refuse_notices)
    assert stream.targets.keys.to_list() == ['12" single', '7" single', "tea"]
    assert stream.sources.keys.to_list() == ["ann", 'b "x"', "bob"]


# Plain cells, and cells with correct and incorrect quoting.
cells = st.sampled_from(
    ["a", "b", "x y", "#t", "", '"q"', '"a,b"', '"n\nl"', '"e""f"', 'g"h', '"i', 'j"', ' "k"', "é"]
)


@settings(max_examples=300)
@given(st.lists(st.tuples(cells, cells), min_size=1, max_size=6), st.sampled_from(["\n", "\r\n"]))
def test_the_fields_are_those_of_pythons_strict_csv_reader(
    rows: list[tuple[str, str]], line_end: str
) -> None:
    lines = ["source,target,time", *(f"{u},{v},{time}" for time, (u, v) in enumerate(rows))]
    text = line_end.join(lines)
    try:
        strict = csv.reader(io.StringIO(text, newline=""), strict=True, skipinitialspace=True)
        wanted = [[field.strip() for field in fields] for fields in strict][1:]
    except csv.Error:
        wanted = []
    with TemporaryDirectory() as folder:
        path = write(Path(folder), "log.csv", text)
        try:
            stream = read_file(path, notify=lambda _: None)
        except InputError:
            # The reason must be a misplaced quote or a row that is not an event.
            assert not wanted or any(
                len(fields) != 3 or "" in fields or not fields[2].isdigit() for fields in wanted
            )
            return
    rows_read = [
        [stream.sources.key(u), stream.targets.key(v), f"{time:.0f}"]
        for u, v, time in zip(stream.source, stream.target, stream.time, strict=True)
    ]
    assert rows_read == wanted


pieces = st.sampled_from(
    [
        *("a", "é", "17", "17.0", "1", "nan", "1e400", "9" * 20, "2024-01-01"),
        *(",", ",", ";", "\t", " ", "\n", "\n", "\r", '"', '"a,b"', "#", "\0", "\ufeff", "PAR1"),
        *("source,target,time\n", "u,i,ts\n", "user_id,item_id,timestamp,", "state_label"),
        *("label", "feature_0"),
    ]
)


@settings(max_examples=300)
@given(st.lists(pieces, max_size=25).map("".join), st.sampled_from([None, True, False]))
def test_random_text_is_read_or_refused_in_one_line(text: str, header: bool | None) -> None:
    with TemporaryDirectory() as folder:
        path = write(Path(folder), "log", text)
        message = ""
        try:
            read_file(path, header=header, notify=lambda _: None)
        except InputError as error:
            message = str(error)
    assert len(message.splitlines()) <= 1


def test_text_is_read_from_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(PLAIN,))
    writer.start()
    assert read_file(pipe, notify=refuse_notices).equals(expected())
    writer.join()


def test_columns_without_header_are_source_target_time(tmp_path: Path) -> None:
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


def test_guessed_column_names_give_a_notice(tmp_path: Path) -> None:
    notices: list[str] = []
    path = write(tmp_path, "shop.csv", PLAIN.replace("source,target,time", "user,item,ts"))
    assert read_file(path, notify=notices.append).equals(expected())
    assert notices == ["shop.csv: user is the source, item is the target, ts is the time"]


def test_columns_can_be_named(tmp_path: Path) -> None:
    path = write(tmp_path, "odd.csv", PLAIN.replace("source,target,time", "who,what,when"))
    mapping = {"source": "who", "target": "what", "time": "when"}
    for columns in (mapping, Columns(**mapping)):
        assert read_file(path, columns=columns, notify=refuse_notices).equals(expected())
        assert load(path, columns=columns, notify=refuse_notices).equals(expected())
    with pytest.raises(InputError, match="no target column 'wat'; did you mean \"what\""):
        read_file(path, columns=Columns(source="who", target="wat", time="when"))
    with pytest.raises(InputError, match="three different columns"):
        read_file(path, columns=Columns(source="who", target="who", time="when"))
    with pytest.raises(InputError, match="no entry 'sauce'; did you mean \"source\""):
        read_file(path, columns={"sauce": "who"})


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


TGB_FILES = {
    "tgbl-wiki_edgelist_v2.csv": JODIE.replace("0.0,0,-0.175", "0,0,-0.175"),
    "tgbl-review_edgelist_v2.csv": "ts,source,target,weight\n0,0,0,5.0\n36,1,0,4.0\n77,0,1,1.0\n",
    # The header has a name more than the rows have fields.
    "tgbl-coin_edgelist_v2.csv": (
        "day,src,dst,callsign,typecode\n0,0,0,5.0\n36,1,0,4.0\n77,0,1,1.0\n"
    ),
    "tgbl-flight_edgelist.csv": (
        "day,src,dst,callsign,typecode\n"
        "1970-01-01,0,0,AB1,B738\n1970-01-02,1,0,,\n1970-01-03,0,1,AB3,A320\n"
    ),
    "tgbl-flight_edgelist_v2.csv": (
        "timestamp,src,dst,callsign,typecode\n0,0,0,AB1,B738\n36,1,0,,\n77,0,1,AB3,A320\n"
    ),
    "tgbl-comment_edgelist.csv": (
        "ts,src,dst,subreddit,num_words,score\n0,0,0,x,9,1\n36,1,0,y,1,-2\n77,0,1,x,2,3\n"
    ),
    "tgbl-uci_edgelist.csv": "u,i,ts,label,idx\n0,0,0.0,0,1\n1,0,36.0,0,2\n0,1,77.0,0,3\n",
}


@pytest.mark.parametrize("name", TGB_FILES)
def test_the_files_of_tgb(tmp_path: Path, name: str) -> None:
    stream = read_file(write(tmp_path, name, TGB_FILES[name]), notify=lambda _: None)
    assert [stream.sources.key(source) for source in stream.source] == [0, 1, 0]
    assert [stream.targets.key(target) for target in stream.target] == [0, 0, 1]
    days = name == "tgbl-flight_edgelist.csv"
    assert [int(time) for time in stream.time] == ([0, 86_400, 172_800] if days else [0, 36, 77])
    has_weight = "weight" in TGB_FILES[name] or "coin" in name
    assert (stream.weight is not None) == has_weight
    if stream.weight is not None:
        assert stream.weight.tolist() == [5, 4, 1]


def test_sorting_an_unsorted_file_gives_a_notice(tmp_path: Path) -> None:
    notices: list[str] = []
    path = write(tmp_path, "mixed.csv", "source,target,time\nbob,jam,2\nann,tea,1\nann,jam,3\n")
    assert read_file(path, notify=notices.append).equals(expected())
    assert notices == [
        "mixed.csv, row 2 (line 3), column 'time': the time is earlier than in the row before; "
        "the events were sorted"
    ]


def test_keys_on_both_sides_give_a_notice_about_the_graph_kind(tmp_path: Path) -> None:
    notices: list[str] = []
    path = write(tmp_path, "mail.csv", "source,target,time\nann,bob,1\nbob,ann,2\n")
    assert read_file(path, notify=notices.append).kind == "bipartite"
    assert "pass --kind one-mode" in notices[0]
    assert read_file(path, kind="one-mode", notify=refuse_notices).kind == "one-mode"


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
    texts = ["2024-05-31T12:00:00", "2024-05-31T12:00:01.5"]
    seconds = [1717156800.0, 1717156801.5]
    keys = {"source": [1, 2], "target": [3, 4]}
    naive = pd.DataFrame({**keys, "time": pd.to_datetime(texts, format="ISO8601")})
    zoned = pd.DataFrame(
        {**keys, "time": pd.to_datetime(texts, format="ISO8601").tz_localize("Europe/Paris")}
    )
    assert load(naive, notify=lambda _: None).time.tolist() == seconds
    in_paris = [second - 7200 for second in seconds]
    assert load(zoned, notify=refuse_notices).time.tolist() == in_paris
    arrow = pa.table({**keys, "time": pa.array(naive["time"].tolist(), pa.timestamp("us", "UTC"))})
    assert load(arrow, notify=refuse_notices).time.tolist() == seconds


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    pl.DataFrame(columns_of_three()).write_parquet(path)
    assert read_file(path, notify=refuse_notices).equals(expected())


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        (
            "source",
            [1.5, 2.0, 3.0],
            "'source' has type Float64, but a key must be an integer or text",
        ),
        ("target", [[1], [2], [3]], "'target' has type List"),
        ("time", [True, False, True], "type Boolean cannot be read as a time"),
        ("weight", ["a", "b", "c"], "row 1, column 'weight': 'a' is not a number"),
    ],
)
def test_errors_about_types_name_the_column(
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


def test_an_object_that_is_not_a_table_is_refused() -> None:
    with pytest.raises(InputError, match="cannot read a int as a log"):
        load(7)


def test_integer_keys_and_their_texts_are_the_same_keys() -> None:
    as_text = read_frame({"source": ["7", "8"], "target": ["x", "y"], "time": [1, 2]})
    as_numbers = read_frame({"source": [7, 8], "target": ["x", "y"], "time": [1, 2]})
    assert as_text.equals(as_numbers)
