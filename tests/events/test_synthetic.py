import numpy as np
import pytest

from tclgraph.errors import InputError
from tclgraph.events.stream import GraphKind
from tclgraph.events.synthetic import SyntheticConfig, synthesize
from tests.streams import KINDS


def keys(config: SyntheticConfig) -> tuple[list[int], list[int]]:
    stream = synthesize(config)
    return (
        [int(stream.sources.key(source)) for source in stream.source],
        [int(stream.targets.key(target)) for target in stream.target],
    )


def test_the_seed_determines_the_stream() -> None:
    assert synthesize(SyntheticConfig(seed=1)).equals(synthesize(SyntheticConfig(seed=1)))
    assert not synthesize(SyntheticConfig(seed=1)).equals(synthesize(SyntheticConfig(seed=2)))


@pytest.mark.parametrize("kind", KINDS)
def test_size_and_kind_follow_the_config(kind: GraphKind) -> None:
    stream = synthesize(SyntheticConfig(events=5_000, sources=40, targets=30, days=7, kind=kind))
    assert len(stream) == 5_000
    assert stream.kind == kind
    assert stream.num_sources == 40
    assert stream.num_targets == (40 if kind == "one-mode" else 30)
    assert 6.9 < stream.duration / 86_400 <= 7


def test_without_other_causes_targets_come_from_the_sources_community() -> None:
    config = SyntheticConfig(events=2_000, communities=7, repeat=0, habit=0, wave=0)
    for source, target in zip(*keys(config), strict=True):
        assert source % 7 == target % 7


def test_a_habit_follows_from_the_last_target() -> None:
    config = SyntheticConfig(events=2_000, repeat=0, habit=1, wave=0)
    last: dict[int, int] = {}
    for source, target in zip(*keys(config), strict=True):
        if source in last:
            assert target == config.successor(last[source])
        last[source] = target


def test_repeats_return_to_earlier_targets() -> None:
    config = SyntheticConfig(events=2_000, repeat=1, habit=0, wave=0)
    seen: dict[int, set[int]] = {}
    num_new = 0
    for source, target in zip(*keys(config), strict=True):
        earlier = seen.setdefault(source, set())
        num_new += target not in earlier
        earlier.add(target)
    # A target is new only if the source has fewer earlier events than the drawn steps back.
    assert num_new < 0.35 * 2_000


def test_each_wave_has_a_single_target() -> None:
    config = SyntheticConfig(events=2_000, repeat=0, habit=0, wave=1, waves=4, days=4)
    stream = synthesize(config)
    day = np.floor(stream.time / 86_400)
    for wave in range(4):
        assert len(np.unique(stream.target[day == wave])) == 1


def test_impossible_settings_are_refused() -> None:
    with pytest.raises(InputError, match=r"must add up to at most 1; they are 0\.9, 0\.9 and 0\.1"):
        SyntheticConfig(repeat=0.9, habit=0.9)
    with pytest.raises(InputError, match="there are 4 communities and 3 targets"):
        SyntheticConfig(targets=3, communities=4)
