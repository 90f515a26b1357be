"""Time to read a CSV file of LastFM's size, compared with pandas and plain Python.

Each reader reads the source, target and time columns, numbers the nodes by first appearance and
sorts the events by time.
"""

import csv
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

from benchmarks.measuring import in_own_process, measured, write_result
from tclgraph.events.readers import read_file
from tclgraph.events.synthetic import SyntheticConfig, synthesize
from tclgraph.events.writers import write_file

LASTFM = SyntheticConfig(events=1_293_103, sources=980, targets=1_000, days=1_587)


def read_with_tclgraph(path: str) -> None:
    stream = read_file(path)
    assert len(stream) == LASTFM.events


def read_with_pandas(path: str) -> None:
    frame = pd.read_csv(path).sort_values("time", kind="stable")
    source, _ = pd.factorize(frame["source"])
    target, _ = pd.factorize(frame["target"])
    assert len(source) == len(target) == LASTFM.events


def read_with_plain_python(path: str) -> None:
    with Path(path).open() as file:
        rows = sorted(csv.DictReader(file), key=lambda row: float(row["time"]))
    sources: dict[str, int] = {}
    targets: dict[str, int] = {}
    source = np.array([sources.setdefault(row["source"], len(sources)) for row in rows])
    target = np.array([targets.setdefault(row["target"], len(targets)) for row in rows])
    assert len(source) == len(target) == LASTFM.events


def write_log(path: str) -> None:
    write_file(synthesize(LASTFM), path)


READERS = {
    "tclgraph": read_with_tclgraph,
    "pandas": read_with_pandas,
    "plain Python": read_with_plain_python,
}


def main() -> None:
    with TemporaryDirectory() as folder:
        path = f"{folder}/lastfm.csv"
        in_own_process("benchmarks.reading", "write", path)
        results = {name: in_own_process("benchmarks.reading", name, path) for name in READERS}
    tclgraph_seconds = results["tclgraph"]["seconds"]
    write_result(
        "reading",
        {
            "rows": LASTFM.events,
            "readers": results,
            "times_faster_than": {
                name: round(result["seconds"] / tclgraph_seconds, 2)
                for name, result in results.items()
                if name != "tclgraph"
            },
        },
    )


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    else:
        job, log = sys.argv[1:]
        print(json.dumps(measured(lambda: {"write": write_log, **READERS}[job](log))))
