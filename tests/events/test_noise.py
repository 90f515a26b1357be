from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tclgraph.events.noise import with_noise
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream, GraphKind
from tclgraph.testing.streams import KINDS, cut


def small_split(kind: GraphKind = "bipartite") -> Split:
    """Return ten training, two validation and two test events; d-w is not in training."""
    times = [0.0, 1, 1, 2, 3, 5, 8, 8, 9, 10, 10, 11, 12, 13]
    stream = EventStream.from_columns(
        list("abcabcabcabdab"), list("xyzxyzxyzxywxy"), times, kind=kind
    )
    return cut(stream, 10, 12)


def events_of(stream: EventStream) -> list[tuple[int, int, float]]:
    return list(
        zip(stream.source.tolist(), stream.target.tolist(), stream.time.tolist(), strict=True)
    )


def added(clean: Split, noisy: Split) -> list[tuple[int, int, float]]:
    """Return the training events that are not those of the clean split, which keep their order."""
    rest = events_of(clean.train)
    others = []
    for event in events_of(noisy.train):
        if rest and event == rest[0]:
            rest.pop(0)
        else:
            others.append(event)
    assert not rest, "every clean event occurs, in the same order"
    return others


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("share", "count"), [(0.0, 0), (0.1, 1), (0.26, 3), (0.5, 5), (2.0, 20)])
def test_a_share_of_the_training_events_is_added(kind: GraphKind, share: float, count: int) -> None:
    clean = small_split(kind)
    noisy = with_noise(clean, share, seed=3)
    assert noisy.sizes == {"train": 10 + count, "valid": 2, "test": 2}
    assert events_of(noisy.valid) == events_of(clean.valid)
    assert events_of(noisy.test) == events_of(clean.test)
    assert len(added(clean, noisy)) == count
    assert noisy.events.kind == kind
    assert noisy.events.sources == clean.events.sources


@given(seed=st.integers(0, 1_000), share=st.sampled_from([0.3, 1.0, 5.0]))
def test_noise_is_among_nodes_and_times_of_training(seed: int, share: float) -> None:
    clean = small_split()
    noisy = with_noise(clean, share, seed=seed)
    assert set(noisy.train.source) == set(clean.train.source)
    assert set(noisy.train.target) == set(clean.train.target)
    assert noisy.train.time[0] == clean.train.time[0]
    assert noisy.train.time[-1] == clean.train.time[-1]


def test_sources_targets_and_times_are_uniform_and_independent() -> None:
    clean = small_split()
    noise = np.array(added(clean, with_noise(clean, 900.0, seed=0)))
    pairs, counts = np.unique(noise[:, :2], axis=0, return_counts=True)
    assert len(pairs) == 9
    # 1,000 of each are expected, with a deviation of about 30.
    assert abs(counts - 1_000).max() < 130
    in_quarters, _ = np.histogram(noise[:, 2], bins=4, range=(0.0, 10.0))
    assert abs(in_quarters - 2_250).max() < 180
    assert abs(np.corrcoef(noise.T) - np.eye(3)).max() < 0.05


def test_a_smaller_share_is_part_of_a_larger_one_of_the_same_seed() -> None:
    clean = small_split()
    few, many = (added(clean, with_noise(clean, share, seed=5)) for share in (0.3, 2.0))
    assert len(few) == 3
    assert set(few) < set(many)
    other = added(clean, with_noise(clean, 0.3, seed=6))
    assert not set(few) & set(other)


def test_the_clean_split_stays_as_it_is_and_features_are_dropped() -> None:
    stream = small_split().events
    clean = replace(
        small_split(), events=replace(stream, label=np.ones(14), features=np.ones((14, 2), "f4"))
    )
    noisy = with_noise(clean, 0.2, seed=0)
    assert clean.sizes["train"] == 10
    assert clean.events.label is not None
    assert noisy.events.label is None
    assert noisy.events.features is None
    assert str(noisy) == "by hand of rows, train with 20 % random interactions"
