import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from tclgraph.errors import InputError
from tclgraph.events.readers import read_file
from tclgraph.events.stream import EventStream
from tclgraph.events.writers import replacing, write_file
from tests.streams import KINDS

keys = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.text(
        alphabet=st.characters(codec="utf-8", exclude_characters="\0", exclude_categories=["Cs"]),
        min_size=1,
    ).filter(lambda key: key.strip() != ""),
)
finite = st.floats(allow_nan=False, allow_infinity=False, width=64)
finite32 = st.floats(allow_nan=False, allow_infinity=False, width=32)


@st.composite
def rich_streams(draw: st.DrawFn) -> EventStream:
    size = draw(st.integers(1, 12))

    def column(values: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(values, min_size=size, max_size=size))

    features = draw(
        st.none() | st.lists(st.tuples(finite32, finite32), min_size=size, max_size=size)
    )
    try:
        return EventStream.from_columns(
            list(map(str, column(keys))),
            list(map(str, column(keys))),
            column(finite),
            kind=draw(st.sampled_from(KINDS)),
            label=column(finite) if draw(st.booleans()) else None,
            weight=column(finite) if draw(st.booleans()) else None,
            features=features,
        )
    except InputError:  # the same column has keys like 1 and 2.0
        reject()


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
@given(stream=rich_streams())
def test_a_written_stream_reads_back_unchanged(ending: str, stream: EventStream) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"log{ending}"
        write_file(stream, path)
        kind = stream.kind if ending == ".csv" else None  # Parquet stores the kind
        assert read_file(path, kind=kind, notify=lambda _: None).equals(stream)
        assert os.listdir(folder) == [path.name]


def test_an_unknown_ending_is_refused(tmp_path: Path) -> None:
    stream = EventStream.from_columns([1], [2], [3])
    with pytest.raises(InputError, match=r"must end in \.parquet or \.csv"):
        write_file(stream, tmp_path / "log.xlsx")
    assert not os.listdir(tmp_path)


def test_the_error_names_a_path_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    stream = EventStream.from_columns([1], [2], [3])
    with pytest.raises(InputError, match=r"cannot write .*log\.csv"):
        write_file(stream, tmp_path / "file" / "log.csv")


def test_a_failed_write_leaves_the_old_file_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("old")
    with pytest.raises(RuntimeError), replacing(path) as temporary:  # noqa: PT012
        temporary.write_text("partial")
        raise RuntimeError
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["log.csv"]


FULL_DISK = """
import resource, signal, sys
import tclgraph as tg
stream = tg.synthesize(tg.SyntheticConfig(events=20_000))
model = tg.build("own-recency").fit(stream.split(0.5, 0.25))
# Simulate a full disk for this process: no file may grow beyond 16 kB.
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (16_384, 16_384))
jobs = {"log.csv": lambda path: tg.write_file(stream, path),
        "log.parquet": lambda path: tg.write_file(stream, path),
        "model": model.save}
for name, job in jobs.items():
    try:
        job(f"{sys.argv[1]}/{name}")
    except tg.InputError as error:
        print(error)
"""


def test_a_full_disk_gives_one_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path)], capture_output=True, text=True, check=True
    )
    messages = done.stdout.splitlines()
    assert len(messages) == 3, done
    for message in messages:
        assert message.startswith("cannot write ")
        assert "File too large" in message
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_times_keep_every_bit(tmp_path: Path) -> None:
    time = np.sort(np.random.default_rng(0).uniform(0, 2e9, 1000))
    stream = EventStream.from_columns(np.arange(1000), np.arange(1000), time)
    for name in ("log.csv", "log.parquet"):
        write_file(stream, tmp_path / name)
        read = read_file(tmp_path / name, notify=lambda _: None)
        assert read.time.tobytes() == time.tobytes()
