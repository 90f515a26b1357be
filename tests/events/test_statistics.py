import pytest

from tclgraph.events.statistics import describe, simultaneous_share
from tclgraph.events.stream import EventStream
from tclgraph.testing.streams import KINDS
from tests.streams import collegemsg, wikipedia


@pytest.mark.parametrize("kind", KINDS)
def test_collegemsg_has_the_figures_of_the_papers_table(kind: str) -> None:
    description = describe(collegemsg(kind))  # type: ignore[arg-type]
    assert (description.interactions, description.sources, description.targets) == (
        48_771,
        999,
        1_352,
    )
    assert description.days == pytest.approx(193.63, abs=0.006)
    assert description.repetition_density == pytest.approx(67.28, abs=0.005)
    # The definition in the paper's text gives another figure than its table.
    assert description.repetition_density_in_text == pytest.approx(23.18, abs=0.005)
    assert description.nodes == (1_399 if kind == "one-mode" else 999 + 1_352)


def test_statistics_of_wikipedia() -> None:
    description = describe(wikipedia().split(0.7, 0.15))
    assert (description.interactions, description.sources, description.targets) == (
        157_474,
        8_227,
        1_000,
    )
    assert description.days == pytest.approx(31.0, abs=0.005)
    assert description.repetition_density == pytest.approx(88.41, abs=0.005)


def test_a_log_counted_by_hand() -> None:
    #  a→x a→y | b→x | a→x b→y      train | valid | test
    stream = EventStream.from_columns(list("aabab"), list("xyxxy"), [0, 10, 30, 60, 86_400])
    description = describe(stream.split(0.4, 0.2))
    assert (
        description.interactions,
        description.sources,
        description.targets,
        description.nodes,
    ) == (5, 2, 2, 4)
    assert description.days == 1.0
    assert description.repetition_density == pytest.approx(20.0)  # a→x occurs twice
    assert description.repetition_density_in_text == 50.0  # a→x is in train, b→y is not
    # a: 10, 50; b: 86370; x: 30, 30; y: 86390
    assert description.median_interval == 40.0


def test_simultaneous_events_are_counted_by_source_and_time() -> None:
    #  time 0: a→x a→y b→x a→z | time 5: a→x | time 6: b→x b→y
    stream = EventStream.from_columns(list("aabaabb"), list("xyxzxxy"), [0, 0, 0, 0, 5, 6, 6])
    # a→y follows a→x and b→y follows b→x; a→z follows an event of b.
    assert describe(stream.split(0.6, 0.2)).simultaneous == pytest.approx(100 * 2 / 7)
    assert simultaneous_share(stream[:1]) == 0
