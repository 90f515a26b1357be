import pytest

from tclgraph.events.statistics import describe
from tclgraph.events.stream import EventStream
from tests.streams import KINDS, collegemsg, wikipedia


@pytest.mark.parametrize("kind", KINDS)
def test_the_papers_row_for_collegemsg(kind: str) -> None:
    found = describe(collegemsg(kind))  # type: ignore[arg-type]
    assert (found.interactions, found.sources, found.targets) == (48_771, 999, 1_352)
    assert found.days == pytest.approx(193.63, abs=0.006)
    assert found.repetition_density == pytest.approx(67.28, abs=0.005)
    # The text's definition does not give the table's figure.
    assert found.repetition_density_in_text == pytest.approx(23.18, abs=0.005)
    assert found.nodes == (1_399 if kind == "one-mode" else 999 + 1_352)


def test_wikipedia_differs_from_the_papers_row() -> None:
    found = describe(wikipedia().split(0.7, 0.15))
    assert (found.interactions, found.sources, found.targets) == (157_474, 8_227, 1_000)
    assert found.days == pytest.approx(31.0, abs=0.005)
    assert found.repetition_density == pytest.approx(88.41, abs=0.005)


def test_a_log_counted_by_hand() -> None:
    #  a→x a→y | b→x | a→x b→y      train | valid | test
    stream = EventStream.from_columns(list("aabab"), list("xyxxy"), [0, 10, 30, 60, 86_400])
    found = describe(stream.split(0.4, 0.2))
    assert (found.interactions, found.sources, found.targets, found.nodes) == (5, 2, 2, 4)
    assert found.days == 1.0
    assert found.repetition_density == pytest.approx(20.0)  # a→x comes twice
    assert found.repetition_density_in_text == 50.0  # a→x was in train, b→y was not
    # a: 10, 50; b: 86370; x: 30, 30; y: 86390
    assert found.median_interval == 40.0
