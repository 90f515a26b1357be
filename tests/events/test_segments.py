"""A column of the log that divides its events into segments."""

from pathlib import Path

import pandas as pd
import polars as pl
import pytest

from tclgraph.errors import InputError
from tclgraph.events.catalog import load
from tclgraph.events.log_spec import LogSpec
from tclgraph.events.noise import with_noise
from tclgraph.events.readers import read_file, read_frame
from tclgraph.events.stream import EventStream
from tclgraph.events.writers import write_file
from tests.streams import refuse_notices, write

# The second row is the earliest event, and the third has no plan.
CSV = "source,target,time,plan,label\na,x,2,gold,1\nb,y,1, red ,0\na,y,3,,1\nb,x,4,gold,0\n"


def names(stream: EventStream) -> list[str]:
    """Return the segment of every event."""
    assert stream.segment is not None
    assert stream.segments is not None
    return [str(stream.segments.key(segment)) for segment in stream.segment]


def test_a_text_column_is_read_in_the_order_of_the_events(tmp_path: Path) -> None:
    path = write(tmp_path, "log.csv", CSV)
    stream = read_file(path, columns={"segment": "plan"}, notify=lambda _: None)
    assert names(stream) == ["red", "gold", "(empty)", "gold"]
    assert stream.segments is not None
    assert stream.segments.keys.name == "plan"
    assert names(stream[1:3]) == ["gold", "(empty)"]
    assert read_file(path, notify=lambda _: None).segment is None


@pytest.mark.parametrize("name", ["plan", "source", "label"])
def test_parquet_and_tables_give_the_same_segments_as_text(tmp_path: Path, name: str) -> None:
    frame = pl.read_csv(CSV.encode())
    frame.write_parquet(tmp_path / "log.parquet")
    columns = {"segment": name}
    text = read_file(write(tmp_path, "log.csv", CSV), columns=columns, notify=lambda _: None)
    assert read_file(tmp_path / "log.parquet", columns=columns, notify=lambda _: None).equals(text)
    for table in (frame, pd.DataFrame(frame.to_dict(as_series=False))):
        assert read_frame(table, columns=columns, notify=lambda _: None).equals(text)
    assert text.label is not None


def test_a_column_without_a_header_is_named_by_its_position(tmp_path: Path) -> None:
    path = write(tmp_path, "log.txt", "a x 1 gold\nb y 2 red\n")
    stream = read_file(path, columns={"segment": "4"}, notify=lambda _: None)
    assert names(stream) == ["gold", "red"]


def test_a_missing_column_and_a_column_of_lists_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "log.csv", CSV)
    with pytest.raises(InputError, match=r"log\.csv: there is no segment column 'plam'; did you"):
        read_file(path, columns={"segment": "plam"}, notify=lambda _: None)
    table = {"source": ["a"], "target": ["x"], "time": [1], "plan": pl.Series([[1, 2]])}
    with pytest.raises(InputError, match=r"'plan' has type List.*; name another column"):
        read_frame(table, columns={"segment": "plan"})


def test_a_written_segment_can_be_read_by_the_name_segment(tmp_path: Path) -> None:
    stream = EventStream.from_columns(["a", "b"], ["x", "y"], [1, 2], segment=["gold", "red"])
    for ending in (".csv", ".parquet"):
        path = tmp_path / f"log{ending}"
        write_file(stream, path)
        read = read_file(path, columns={"segment": "segment"}, notify=refuse_notices)
        assert read.equals(stream)
        assert not read_file(path, notify=refuse_notices).equals(stream)


def test_a_split_and_its_filter_keep_the_segments_of_their_events() -> None:
    stream = EventStream.from_columns(
        list("abac") * 5, list("xyxz") * 5, range(20), segment=[f"s{n}" for n in range(20)]
    )
    assert names(stream.split(0.2, 0.3).test) == [f"s{n}" for n in range(10, 20)]
    seen = EventStream.from_columns(
        list("abacab"), list("xyxzxy"), range(6), segment=list("uvwxyz")
    ).split(0.4, 0.3, seen_only=True)
    assert names(seen.events) == list("uvwyz")


def test_random_interactions_have_no_segment() -> None:
    stream = EventStream.from_columns(
        list("abab") * 5, list("xyyx") * 5, range(20), segment=["s"] * 20
    )
    noisy = with_noise(stream.split(0.5, 0.25), 0.2, seed=0)
    assert (noisy.events.segment, noisy.events.segments) == (None, None)


def test_a_log_and_a_data_set_are_opened_with_a_segment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, "log.csv", CSV)
    spec = LogSpec(log=str(path), split="50/25/25")
    split = spec.divide(spec.read(segment="plan"))
    assert names(split.test) == ["gold"]
    monkeypatch.setenv("TCLGRAPH_DATA", str(tmp_path))
    write(tmp_path, "mooc.csv", CSV)
    stream = load("mooc", columns={"segment": "plan"}, notify=lambda _: None)
    assert names(stream) == ["red", "gold", "(empty)", "gold"]
