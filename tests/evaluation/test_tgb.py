"""The protocol of TGB, compared with a slow reference and with TGB's own evaluator."""

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Self

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tgb.linkproppred.evaluate import Evaluator

from tclgraph import registry
from tclgraph.arrays import FloatArray, IntArray, ScoreArray
from tclgraph.errors import InputError
from tclgraph.evaluation import protocol
from tclgraph.evaluation.protocol import evaluate
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream
from tclgraph.models.interface import Model
from tclgraph.testing.streams import KINDS, streams

PAGE = Path(__file__).parents[2] / "docs" / "tgb.md"


class TableModel(Model):
    """Scores the targets of a source by a row of a table."""

    name = "table"

    def __init__(self, table: ScoreArray) -> None:
        self.table = table

    def fit(self, split: Split) -> Self:
        self.start_state(split.events)
        return self

    def score(self, source: IntArray, time: FloatArray) -> ScoreArray:
        return self.table[source]

    def update_state(self, events: EventStream) -> None:
        pass

    def reset_state(self) -> None:
        pass


def tgb_split(stream: EventStream) -> Split:
    return stream.split(0.70, 0.15, by="quantiles")


def random_split(seed: int = 0) -> Split:
    """Return over 1,000 test events, many of which share their source and their time."""
    random = np.random.default_rng(seed)
    source, target, time = (random.integers(0, most, 7_000) for most in (12, 40, 2_000))
    return tgb_split(EventStream.from_columns(source, target, time))


def negatives_of(part: EventStream, event: int, targets: set[int]) -> list[int]:
    """Return the targets that TGB ranks against the true one, as its generator selects them."""
    is_same = (part.source == part.source[event]) & (part.time == part.time[event])
    return sorted(targets - set(part.target[is_same].tolist()))


def all_targets(split: Split) -> set[int]:
    return set(split.events.target.tolist())


def official(scores: ScoreArray, true: int, negatives: list[int]) -> dict[str, float]:
    """Return what TGB's evaluator returns for one event, as TGB's examples call it."""
    result = Evaluator(name="tgbl-wiki").eval(
        {
            "y_pred_pos": scores[[true]],
            "y_pred_neg": scores[negatives],
            "eval_metric": ["mrr"],
        }
    )
    return {name: float(value) for name, value in result.items()}


def officially(model: Model, split: Split, every: int) -> dict[str, FloatArray]:
    """Rank the test events in blocks with TGB's evaluator; return its figures of every event."""
    test, targets = split.test, all_targets(split)
    model.forget()
    model.observe(split.events[: split.valid_end])
    results = []
    for start in range(0, len(test), every):
        block = test[start : start + every]
        scores = model.score(block.source, block.time)
        for row in range(len(block)):
            negatives = negatives_of(test, start + row, targets)
            results.append(official(scores[row], int(block.target[row]), negatives))
        model.observe(block)
    return {name: np.array([result[name] for result in results]) for name in results[0]}


def exactly(reciprocal_ranks: FloatArray) -> FloatArray:
    """Return reciprocal ranks in double precision.

    TGB's evaluator rounds 1 / rank to float32. Ranks are multiples of 1/2, so no rank is lost.
    """
    ranks: FloatArray = np.rint(2 / reciprocal_ranks) / 2
    return 1 / ranks


@pytest.mark.parametrize("seed", range(3))
def test_the_mrr_is_that_of_the_official_evaluator(seed: int) -> None:
    split = random_split(seed)
    random = np.random.default_rng(seed)
    table = random.integers(0, 6, (split.events.num_sources, split.events.num_targets)) / 4
    model = TableModel(table).fit(split)
    report = evaluate(model, split, protocol="tgb", update="every=200")
    figures = officially(model, split, every=200)
    assert report.num_events == len(figures["mrr"]) >= 1_000
    assert report.tie_spread > 3
    np.testing.assert_array_equal(1 / report.ranks, exactly(figures["mrr"]))
    assert report["MRR"] == pytest.approx(exactly(figures["mrr"]).mean(), abs=1e-9)
    assert report["MRR"] == pytest.approx(figures["mrr"].mean(), abs=1e-8)
    assert report["Hit@10"] == pytest.approx(100 * figures["hits@10"].mean())
    # The candidates matter: the paper's protocol ranks the same scores otherwise.
    assert abs(report["MRR"] - evaluate(model, split)["MRR"]) > 1e-4


@pytest.mark.parametrize(("update", "every"), [("every=200", 200), ("streaming", 1)])
@pytest.mark.parametrize("name", ["edgebank", "own-recency"])
def test_the_mrr_of_a_model_that_follows_the_stream(name: str, update: str, every: int) -> None:
    split = random_split()
    model = registry.build(name).fit(split)
    report = evaluate(model, split, protocol="tgb", update=update)
    expected = exactly(officially(model, split, every)["mrr"]).mean()
    assert report["MRR"] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
def test_candidates_agree_with_a_slow_reference(kind: str, data: st.DataObject) -> None:
    stream = data.draw(streams(kind=kind, min_events=8))  # type: ignore[arg-type]
    try:
        split = tgb_split(stream)
    except InputError:
        return  # a part is empty, or there is only one target
    few_values = st.sampled_from([-np.inf, 0.0, 0.5, np.inf, np.nan])
    num_targets = split.events.num_targets
    size = split.events.num_sources * num_targets
    values = data.draw(st.lists(few_values, min_size=size, max_size=size))
    model = TableModel(np.array(values).reshape(-1, num_targets)).fit(split)
    # Validation knows no target that occurs only in test.
    known = set(split.events.target[: split.valid_end].tolist())
    for part, events, targets in (
        ("valid", split.valid, known),
        ("test", split.test, all_targets(split)),
    ):
        report = evaluate(
            model,
            split,
            protocol="tgb",
            part=part,  # type: ignore[arg-type]
            with_heuristics=False,
        )
        expected = []
        for event in range(len(events)):
            negatives = negatives_of(events, event, targets)
            scores = model.table[events.source[event]]
            expected.append(slow_rank(scores[events.target[event]], scores[negatives]))
        assert report.ranks.tolist() == expected


def slow_rank(true: float, others: ScoreArray) -> float:
    if np.isnan(others).any() or np.isnan(true):
        return 1.0 + len(others)
    return float(1 + (others > true).sum() + (others == true).sum() / 2)


def test_true_targets_of_one_source_and_time_do_not_compete() -> None:
    # At time 10, ann interacts with w, x and again x, and bob with y.
    source = ["ann"] * 12 + ["bob"] * 12 + ["ann", "ann", "bob", "ann"]
    target = list("wxyz" * 6 + "wxyx")
    split = tgb_split(EventStream.from_columns(source, target, [*range(-14, 10), 10, 10, 10, 10]))
    assert split.test.time.tolist() == [9, 10, 10, 10, 10]
    by_key = {"w": 4.0, "x": 3.0, "y": 2.0, "z": 1.0}
    row = [by_key[str(key)] for key in split.events.targets.keys]
    model = TableModel(np.array([row, row])).fit(split)
    # Ann's x has a lower score than her w, but w is true too.
    assert evaluate(model, split, protocol="tgb").ranks.tolist() == [4, 1, 1, 3, 1]
    assert evaluate(model, split).ranks.tolist() == [4, 1, 2, 3, 2]


@pytest.mark.parametrize("update", ["every=200", "streaming"])
def test_the_block_size_does_not_change_the_ranks(
    monkeypatch: pytest.MonkeyPatch, update: str
) -> None:
    split = random_split()
    model = registry.build("own-frequency").fit(split)
    ranks = []
    for size in (1, 7, 1024):
        monkeypatch.setattr(protocol, "_EVENTS_PER_BLOCK", size)
        ranks.append(evaluate(model, split, protocol="tgb", update=update).ranks.tolist())
    assert ranks[0] == ranks[1] == ranks[2]


def test_the_report_names_the_protocol() -> None:
    split = random_split()
    model = TableModel(np.zeros((split.events.num_sources, split.events.num_targets))).fit(split)
    report = evaluate(model, split, protocol="tgb", update="every=200")
    assert "split 70/15/15 of time quantiles | update every=200 (" in report.rules
    assert report.rules.endswith(" | protocol tgb")
    assert {heuristic.protocol for heuristic in report.heuristics} == {"tgb"}
    assert report.to_json()["protocol"] == "tgb"
    other = evaluate(model, split)
    assert "protocol" not in other.rules
    assert "protocol" not in other.to_json()


def test_other_splits_and_rules_are_refused() -> None:
    stream = random_split().events
    split = tgb_split(stream)
    model = registry.build("popularity").fit(split)
    for other in (
        stream.split(0.70, 0.15),
        stream.split(0.60, 0.20, by="quantiles"),
        stream.split(0.70, 0.15, by="quantiles", seen_only=True),
    ):
        with pytest.raises(InputError, match=r"splits at the time quantiles 0\.70 and 0\.85, but"):
            evaluate(model, other, protocol="tgb")
    with pytest.raises(InputError, match="leave out --mask-seen"):
        evaluate(model, split, protocol="tgb", mask_seen=True)
    with pytest.raises(InputError, match="unknown protocol 'TGB'; did you mean \"tgb\""):
        evaluate(model, split, protocol="TGB")


# TGB numbers the destinations of tgbl-wiki after the sources.
FIRST_DESTINATION = 100


class FakeSampler:
    """Returns negatives as TGB's sampler does, from a split instead of a file."""

    def __init__(self, split: Split) -> None:
        test, targets = split.test, all_targets(split)
        self.negatives = {}
        for event, query in enumerate(zip(test.source, test.target, test.time, strict=True)):
            source, target, time = map(int, query)
            negatives = negatives_of(test, event, targets)
            self.negatives[source, target + FIRST_DESTINATION, time] = [
                negative + FIRST_DESTINATION for negative in negatives
            ]

    def query_batch(
        self, source: IntArray, target: IntArray, time: IntArray, split_mode: str
    ) -> list[list[int]]:
        assert split_mode == "test"
        return [self.negatives[query] for query in zip(source, target, time, strict=True)]


class FakeDataset:
    """Has the attributes of TGB's data set that the page uses, without a download."""

    negative_sampler: FakeSampler

    def __init__(self, name: str, root: str) -> None:
        assert name == "tgbl-wiki"
        self.split = random_split()
        events = self.split.events
        self.test_mask = np.arange(len(events)) >= self.split.valid_end
        self.full_data = {
            "sources": events.source,
            "destinations": events.target + FIRST_DESTINATION,
            "timestamps": events.time.astype(np.int64),
        }

    def load_test_ns(self) -> None:
        self.negative_sampler = FakeSampler(self.split)


def test_the_recipe_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page scores TGB's own negatives with TGB's evaluator; `evaluate` gives the same MRR."""
    module = ModuleType("tgb.linkproppred.dataset")
    module.LinkPropPredDataset = FakeDataset  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), flags=re.M | re.S)
    (recipe,) = [block for block in blocks if "LinkPropPredDataset" in block]
    names: dict[str, Any] = {}
    exec(recipe, names)
    split = random_split()
    model = registry.build("own-recency").fit(split)
    report = evaluate(model, split, protocol="tgb", update="every=200")
    assert names["mrr"] == pytest.approx(report["MRR"], abs=1e-7)  # TGB rounds to float32
