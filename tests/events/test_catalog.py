"""Finding and downloading named data sets; downloads come from a local HTTP server."""

import gzip
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tclgraph.errors import InputError
from tclgraph.events.catalog import CATALOG, DataSet, cache_folder, find, load, load_entry
from tclgraph.events.stream import EventStream
from tclgraph.events.writers import write_file
from tests.streams import refuse_notices, write

SMALL = "user_id,item_id,timestamp,state_label,comma_separated_list_of_features\n" + "".join(
    f"{number % 3},{number % 2},{number}.0,0,0.5\n" for number in range(6)
)


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCLGRAPH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("TCLGRAPH_DATA", raising=False)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "www").mkdir()

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path / "www"))
    ) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{http.server_port}"
        http.shutdown()


def small_entry(server: str) -> DataSet:
    return replace(
        CATALOG["wikipedia"], url=f"{server}/small.csv", interactions=6, sources=3, targets=2
    )


def test_collegemsg_is_read_from_the_installed_package() -> None:
    stream = load("collegemsg", notify=refuse_notices)
    assert len(stream) == CATALOG["collegemsg"].interactions
    assert len(np.unique(stream.source)) == CATALOG["collegemsg"].sources
    assert len(np.unique(stream.target)) == CATALOG["collegemsg"].targets
    assert stream.time[0] == 1_082_040_960  # 2004-04-15 14:56 UTC; times are minutes
    assert stream.kind == "one-mode"
    assert load("collegemsg", kind="bipartite").kind == "bipartite"


@pytest.mark.parametrize("name", ["wikipedia.csv", "wikipedia.parquet", "wikipedia.csv.gz"])
def test_the_data_folder_is_searched_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("TCLGRAPH_DATA", str(folder))
    if name.endswith(".parquet"):
        plain = write(tmp_path, "plain.csv", SMALL)
        write_file(load(plain, notify=lambda _: None), folder / name)
    else:
        content = SMALL.encode()
        write(folder, name, gzip.compress(content) if name.endswith(".gz") else content)
    notices: list[str] = []
    stream = load("wikipedia", notify=notices.append)
    assert len(stream) == 6
    assert stream.features is not None
    assert find(CATALOG["wikipedia"]) == folder / name
    # A file in the user's folder is used even if it is not the official one; a notice says so.
    assert notices == [f"{folder / name}: the file has 6 interactions, but wikipedia has 157,474"]


def test_a_download_is_checked_and_cached(server: str, tmp_path: Path) -> None:
    write(tmp_path / "www", "small.csv", SMALL)
    entry = small_entry(server)
    calls: list[tuple[int, int]] = []
    stream = load_entry(entry, notify=refuse_notices, progress=lambda *call: calls.append(call))
    assert len(stream) == 6
    assert calls[-1] == (len(SMALL), len(SMALL))
    assert os.listdir(cache_folder()) == ["small.csv"]
    (tmp_path / "www" / "small.csv").unlink()
    assert load_entry(entry).equals(stream)


def test_a_download_of_another_file_is_not_cached(server: str, tmp_path: Path) -> None:
    write(tmp_path / "www", "small.csv", SMALL + "9,9,9.0,0,0.5\n")
    with pytest.raises(
        InputError, match="not the official file: the file has 7 interactions, but wikipedia"
    ):
        load_entry(small_entry(server))
    assert os.listdir(cache_folder()) == []


def test_an_interrupted_download_leaves_nothing(tmp_path: Path) -> None:
    class Breaking(SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "1000000")
            self.end_headers()
            self.wfile.write(SMALL.encode())

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Breaking) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        with pytest.raises(InputError, match="the connection closed after"):
            load_entry(small_entry(f"http://127.0.0.1:{http.server_port}"))
        http.shutdown()
    assert os.listdir(cache_folder()) == []


def test_without_a_network_the_error_says_what_to_get_and_where_to_save_it() -> None:
    entry = small_entry("http://127.0.0.1:1")
    with pytest.raises(InputError) as caught:
        load_entry(entry)
    message = str(caught.value)
    assert entry.url in message
    assert str(cache_folder()) in message
    assert "TCLGRAPH_DATA" in message
    assert "\n" not in message


def test_a_misspelled_name_gets_a_suggestion() -> None:
    with pytest.raises(InputError, match='did you mean "wikipedia"'):
        load("wikipeda")


@pytest.mark.parametrize("columns", [{"source": "who"}, {"label": "grade"}])
def test_the_columns_of_a_data_set_cannot_be_named(columns: dict[str, str]) -> None:
    with pytest.raises(InputError, match="the columns of the data set collegemsg are known"):
        load("collegemsg", columns=columns)


def test_official_file_names_come_from_the_addresses() -> None:
    assert CATALOG["lastfm"].files[0] == "lastfm.csv"
    assert CATALOG["collegemsg"].files[0] == "CollegeMsg.txt.gz"


def test_the_collegemsg_file_of_snap_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TCLGRAPH_DATA", str(tmp_path))
    write(tmp_path, "CollegeMsg.txt.gz", gzip.compress(b"1 2 1082040961\n3 4 1082155839\n"))
    stream = load("collegemsg", notify=lambda _: None)
    assert isinstance(stream, EventStream)
    assert stream.time.tolist() == [1082040961, 1082155839]
