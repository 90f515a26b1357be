"""SASRec against single histories without padding, in double precision."""

import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from torch import Tensor
from torch.nn import functional

import tclgraph as tg
from tclgraph.baselines import sasrec
from tclgraph.baselines.sasrec import SASRec
from tclgraph.errors import InputError
from tclgraph.events.split import Split
from tclgraph.events.stream import EventStream, GraphKind
from tclgraph.testing import CHECKS
from tclgraph.testing.contract import Check
from tclgraph.testing.streams import KINDS, cut, splits
from tclgraph.training.progress import ProgressUpdate
from tests.learnable import assert_learns, learnable

SMALL: dict[str, Any] = {
    "width": 4,
    "heads": 2,
    "length": 3,
    "batch_size": 4,
    "epochs": 1,
    "dropout": 0.0,
    "hidden_share": 0.0,
    "threads": 1,
}


def prepared(split: Split, **changed: Any) -> SASRec:
    """Return an untrained model in double precision."""
    model = SASRec(**{**SMALL, **changed})
    model.prepare(split.train_only())
    model.network.double()
    model.reset_state()
    return model


class OneByOne:
    """Histories as lists; a query is computed from its complete history whenever it is needed."""

    def __init__(self, model: SASRec, split: Split) -> None:
        self.model, self.vectors = model, model.network.token_vectors()
        self.num_targets = split.events.num_targets
        self.tokens: list[list[int]] = [[0] for _ in range(split.events.num_sources)]

    def state(self, tokens: list[int]) -> Tensor:
        """Return the states of all positions of a sequence, [P, D]."""
        length = torch.tensor([len(tokens)])
        states: Tensor = self.model.network(self.vectors, torch.tensor([tokens]), length)[0]
        return states

    @torch.no_grad()
    def scores(self, source: int) -> Tensor:
        query = self.state(self.tokens[source][-self.model.config.length :])[-1]
        return self.vectors[1 : 1 + self.num_targets] @ query

    def observe(self, source: int, target: int) -> None:
        self.tokens[source].append(1 + target)
        if self.model.config.history == "both" and source != target:
            self.tokens[target].append(1 + self.num_targets + source)


@settings(max_examples=30)
@given(splits(), st.sampled_from(["sent", "both"]), st.integers(0, 40))
def test_scores_equal_those_of_single_histories(split: Split, history: str, first: int) -> None:
    history = "sent" if split.events.kind == "bipartite" else history
    model = prepared(split, history=history).extended(split.events)
    with torch.no_grad():
        reference = OneByOne(model, split)
    events = split.events
    first = min(first, len(events))
    model.observe(events[:first])
    scores = model.score_each(events[first:])
    for event, (source, target) in enumerate(zip(events.source, events.target, strict=True)):
        if event >= first:
            expected = reference.scores(int(source))
            assert_allclose(scores[event - first], expected, rtol=1e-9, atol=1e-12)
        reference.observe(int(source), int(target))
    sources = np.arange(events.num_sources)
    expected_after = torch.stack([reference.scores(source) for source in sources.tolist()])
    actual = model.score(sources, np.full(len(sources), 1e10))
    assert_allclose(actual, expected_after, rtol=1e-9, atol=1e-12)


@settings(max_examples=20)
@given(splits(), st.sampled_from(["sent", "both"]))
def test_loss_is_the_cross_entropy_of_every_event(split: Split, history: str) -> None:
    history = "sent" if split.events.kind == "bipartite" else history
    model = prepared(split, history=history, length=80)
    train = split.train_only()
    reference = OneByOne(model, train)
    for source, target in zip(train.events.source, train.events.target, strict=True):
        reference.observe(int(source), int(target))
    candidates = np.unique(train.events.target)
    expected = torch.zeros((), dtype=torch.float64)
    for tokens in reference.tokens:
        labels = np.array(tokens[1:], dtype=np.int64)
        sent = np.flatnonzero(labels <= train.events.num_targets)
        if len(sent):
            query = reference.state(tokens[:-1])[sent]
            true = torch.tensor(np.searchsorted(candidates, labels[sent] - 1))
            scores = query @ reference.vectors[1 + torch.tensor(candidates)].T
            expected = expected + functional.cross_entropy(scores, true, reduction="sum")
    random = np.random.default_rng(0)
    counts = [
        model._sequences.windows(windows).is_counted.sum().item() for windows in model._batches
    ]
    losses = [model.loss(batch, random) * count for batch, count in enumerate(counts)]
    assert sum(counts) == len(train.events)
    assert_allclose(torch.stack(losses).sum().detach(), expected.detach(), rtol=1e-9)


def test_with_all_others_as_negatives_the_sampled_loss_is_the_full_one() -> None:
    split = learnable()
    model = prepared(split, length=6)
    windows = model._sequences.windows(model._batches[0])
    vectors = model.network.token_vectors()
    negatives = np.tile(model._candidates, (len(windows.token), 1))
    full, sampled = (model.window_loss(windows, vectors, drawn) for drawn in (None, negatives))
    assert_allclose(sampled.detach(), full.detach(), rtol=1e-9)
    parameters = list(model.network.parameters())
    gradients = [
        torch.autograd.grad(loss, parameters, retain_graph=True, allow_unused=True)
        for loss in (full, sampled)
    ]
    for actual, expected in zip(*gradients, strict=True):
        if expected is not None:
            assert_allclose(actual, expected, rtol=1e-7, atol=1e-10)


def test_negatives_are_drawn_if_there_are_many_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    assert SASRec().config.num_negatives(20_000) is None
    assert SASRec().config.num_negatives(20_001) == 256
    assert SASRec(negatives="all").config.num_negatives(10**6) is None
    assert SASRec(objective="gbce").config.num_negatives(5) == 256
    monkeypatch.setattr(sasrec, "MAX_SOFTMAX_TARGETS", 59)
    model = prepared(learnable())
    drawn = model._draw_negatives(500, np.random.default_rng(0))
    assert drawn is not None
    assert drawn.shape == (500, 256)
    share = np.bincount(drawn.ravel(), minlength=60) / drawn.size
    assert_allclose(share, 1 / 60, rtol=0.15)
    assert not (drawn[0] == drawn[1]).all()


def test_unseen_targets_share_a_vector_that_hidden_ones_train() -> None:
    gradients = []
    for share in (0.0, 0.3):
        model = prepared(learnable(), hidden_share=share)
        loss = model.loss(0, np.random.default_rng(0))
        gradients.append(torch.autograd.grad(loss, model.network.unknown)[0])
    assert not gradients[0].any()
    assert gradients[1].all()
    stream = EventStream.from_columns(list("aaabab"), list("xyxxyz"), range(6))
    split = cut(stream, 4, 5)
    model = SASRec(**SMALL).fit(split)
    unknown = model.embed(["z"], side="target")[0]
    assert_array_equal(unknown, model.network.unknown.detach())
    # A person who never receives in training is no candidate of the loss.
    one_mode = EventStream.from_columns(list("abc"), list("bcb"), range(3), kind="one-mode")
    model = SASRec(**SMALL).fit(cut(one_mode, 1, 2))
    assert model.network.is_known.tolist() == [0.0, 1.0, 0.0]
    scores = model.score(np.array([0]), np.array([9.0]))[0]
    assert_allclose(scores[0], scores[2], rtol=1e-6)
    assert abs(scores[0] - scores[1]) > 1e-4


def test_a_query_changes_only_with_events_of_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    split = learnable()
    model = prepared(split).extended(split.events)
    model.observe(split.train)
    before, source = model._query.clone(), int(split.valid.source[0])
    windows: list[int] = []
    original = model._encode

    def counting(token: Any, length: Any) -> Tensor:
        windows.append(len(token))
        return original(token, length)

    monkeypatch.setattr(model, "_encode", counting)
    model.score(split.valid.source, split.valid.time)
    assert not windows
    model.observe(split.valid[:1])
    assert windows == [1]
    changed = (model._query != before).any(dim=1)
    assert changed.nonzero().flatten().tolist() == [source]


def test_a_source_of_cycles_is_predicted_perfectly() -> None:
    event = np.arange(720)
    source = event % 8
    stream = EventStream.from_columns(source, (event // 8 + source) % 6, event)
    split = stream.split(0.6, 0.2)
    model = SASRec(width=16, heads=2, blocks=1, length=8, epochs=30, batch_size=16, threads=1)
    report = tg.evaluate(model.fit(split), split, with_heuristics=False)
    assert report["MRR"] == 1.0


LEARNING: dict[str, Any] = {
    "width": 32,
    "length": 20,
    "epochs": 12,
    "batch_size": 16,
    "learning_rate": 5e-3,
    "dropout": 0.2,
    "max_valid_events": 64,
    "threads": 1,
}


@pytest.mark.parametrize("kind", KINDS)
def test_it_learns(kind: GraphKind) -> None:
    assert_learns(SASRec(**LEARNING), learnable(kind))


def test_it_learns_by_the_generalized_cross_entropy() -> None:
    assert_learns(SASRec(**LEARNING, objective="gbce", negatives=20), learnable())


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_contract_with_received_events(check: Check) -> None:
    check(lambda: SASRec(**SMALL, history="both"), "one-mode")


def test_received_events_belong_to_the_history_if_asked_for() -> None:
    stream = EventStream.from_columns(list("abca"), list("bcab"), range(4), kind="one-mode")
    split = cut(stream, 2, 3)
    for history, num_changed in (("sent", 1), ("both", 2)):
        model = SASRec(**SMALL, history=history).fit(split)
        before = model._query.clone()
        model.observe(stream[2:3])  # c, a
        assert (model._query != before).any(dim=1).sum().item() == num_changed
    bipartite = EventStream.from_columns(list("abca"), list("bcab"), range(4))
    with pytest.raises(InputError, match="history=both needs a one-mode graph"):
        SASRec(**SMALL, history="both").fit(cut(bipartite, 2, 3))


@pytest.mark.parametrize(
    ("given_settings", "message"),
    [
        ({"width": 6, "heads": 4}, "4 heads cannot split a width of 6 evenly"),
        ({"objective": "gbce", "negatives": "all"}, "negatives=all does not work"),
        ({"calibration": 0.5}, "no effect with objective=softmax"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(
    given_settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        SASRec(**given_settings)


def test_resuming_gives_the_same_weights_bit_for_bit(tmp_path: Path) -> None:
    split = learnable()
    changed = {**SMALL, "dropout": 0.2, "hidden_share": 0.1, "epochs": 2, "batch_size": 256}
    changed |= {"max_valid_events": 64}

    def stop(update: ProgressUpdate) -> None:
        if (update.epoch, update.batch) == (1, 1):
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        SASRec(**changed).fit(split, run=tmp_path, progress=stop)
    resumed = SASRec(**changed).fit(split, run=tmp_path, resume=True)
    complete = SASRec(**changed).fit(split)
    for name, weight in complete.network.state_dict().items():
        assert torch.equal(weight, resumed.network.state_dict()[name]), name


def test_an_average_of_the_weights_leaves_the_known_targets_known() -> None:
    model = SASRec(**{**SMALL, "batch_size": 256}, ema_decay=0.9, max_valid_events=64).fit(
        learnable()
    )
    assert (model.network.is_known == 1.0).all()
