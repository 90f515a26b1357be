"""Coverage and novelty of the targets that are ranked highest."""

import json
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from tclgraph.arrays import ScoreArray
from tclgraph.evaluation import top_targets
from tclgraph.evaluation.candidates import Candidates
from tclgraph.evaluation.protocol import evaluate
from tclgraph.evaluation.ranking_kernels import count_top
from tclgraph.events.stream import EventStream
from tclgraph.testing.streams import KINDS, cut, splits
from tests.evaluation.recording import RecordingModel, revealed_before, seen_by
from tests.evaluation.test_candidates import known_targets
from tests.evaluation.test_protocol import ConstantModel


def slow_top(scores: ScoreArray, candidates: set[int], depth: int) -> list[int]:
    """Return the best candidates, the smaller id first among equal scores."""
    scored = [target for target in candidates if scores[target] > -math.inf]
    return sorted(scored, key=lambda target: (-scores[target], target))[:depth]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("num_values", [2, 6, 10_000])
def test_counts_agree_with_sorting(dtype: type, num_values: int) -> None:
    random = np.random.default_rng(num_values)
    num_rows, num_targets, depth = 40, 300, 10
    scores: ScoreArray = random.integers(0, num_values, (num_rows, num_targets)).astype(dtype)
    scores[5] = np.arange(num_targets)  # every column is better than those before
    scores[random.random(scores.shape) < 0.05] = -np.inf
    scores[random.random(scores.shape) < 0.05] = np.nan
    scores[6, 4:] = -np.inf
    needed = random.integers(0, 60, num_targets)
    candidates = Candidates(needed, np.sort(random.integers(0, 60, num_rows)))
    times = np.zeros(num_targets, np.int64)
    count_top(scores, candidates.needed, candidates.revealed, depth, times)
    expected: Counter[int] = Counter()
    for row, is_candidate in zip(scores, candidates.table(), strict=True):
        expected.update(slow_top(row, set(np.flatnonzero(is_candidate).tolist()), depth))
    assert_array_equal(times, [expected[target] for target in range(num_targets)])


@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
def test_coverage_and_novelty_agree_with_a_slow_loop(kind: str, data: st.DataObject) -> None:
    split = data.draw(splits(kind=kind))  # type: ignore[arg-type]
    rules = {
        "candidates": data.draw(st.sampled_from(["all", "known"])),
        "simultaneous": data.draw(st.sampled_from(["in-order", "together"])),
        "mask_seen": data.draw(st.booleans()),
        "update": data.draw(st.sampled_from(["streaming", "every=3", "frozen"])),
    }
    model = RecordingModel().fit(split)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(top_targets, "DEPTH", 2)
        report = evaluate(model, split, **rules)  # type: ignore[arg-type]
    train = Counter(split.train.target.tolist())
    candidates = set(split.events.target.tolist())
    recommended: list[int] = []
    for event, scores in enumerate(model.rows):
        past = revealed_before(split, event, rules["simultaneous"])  # type: ignore[arg-type]
        if rules["candidates"] == "known":
            candidates = known_targets(past)
        allowed = candidates
        if rules["mask_seen"]:
            allowed = candidates - seen_by(int(split.test.source[event]), past)
        recommended += slow_top(scores, allowed, 2)
    information = [-math.log2(max(1, train[target]) / len(split.train)) for target in recommended]
    assert report.top.depth == 2
    if candidates:
        coverage = 100 * len(set(recommended)) / len(candidates)
        assert report.top.coverage == pytest.approx(coverage)
    if recommended:
        assert report.top.novelty == pytest.approx(np.mean(information))
    else:
        assert (report.top.coverage, report.top.novelty) == (0, None)


def test_novelty_is_the_self_information_of_a_target() -> None:
    # In training, x has 2 of 4 events, y has 1, z has 1, and w is unseen, which counts as 1.
    stream = EventStream.from_columns(list("aaaabb"), list("xyzxww"), range(6))
    split = cut(stream, 4, 5)
    report = evaluate(ConstantModel().fit(split), split)
    assert (report.top.depth, report.top.coverage) == (10, 100)
    assert report.top.novelty == (1 + 2 + 2 + 2) / 4
    assert report.to_json()["top"] == {"depth": 10, "coverage": 100.0, "novelty": 1.75}
    assert "top 10: coverage 100.00 % of the targets | novelty 1.75 bits" in str(report)
    header = next(line for line in str(report).splitlines() if line.endswith("novelty"))
    assert header.split()[-2:] == ["coverage", "novelty"]


def test_equal_scores_recommend_the_smallest_ids() -> None:
    stream = EventStream.from_columns(["a"] * 40, [*range(20), *range(20)], range(40))
    split = cut(stream, 20, 30)
    report = evaluate(ConstantModel().fit(split), split)
    assert report.top.coverage == 50  # the first 10 of 20 targets, for every event


def test_masked_targets_are_not_recommended_even_if_they_are_true() -> None:
    stream = EventStream.from_columns(list("aaaa"), list("xyxx"), range(4))
    split = cut(stream, 2, 3)
    report = evaluate(ConstantModel().fit(split), split, mask_seen=True)
    assert report.ranks.tolist() == [1]
    assert (report.top.coverage, report.top.novelty) == (0, None)


def test_scores_that_are_nan_recommend_nothing() -> None:
    stream = EventStream.from_columns(list("abab"), list("xyxy"), range(4))
    split = cut(stream, 2, 3)
    report = evaluate(ConstantModel(float("nan")).fit(split), split, with_heuristics=False)
    assert (report.top.coverage, report.top.novelty) == (0, None)
    assert json.dumps(report.to_json(), allow_nan=False)
    assert "novelty - bits" in str(report)
