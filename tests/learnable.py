"""A synthetic stream that a model can learn from, and a check that a model has learned from it."""

import tclgraph as tg
from tclgraph.events.split import Split
from tclgraph.events.stream import GraphKind
from tclgraph.models.interface import Model


def learnable(kind: GraphKind = "bipartite") -> Split:
    """Return a stream of five communities whose members seldom leave them.

    All targets are about equally popular, so popularity can only guess among 60. A model that
    learns the communities chooses among 12, and among fewer if it also learns repeats.
    """
    config = tg.SyntheticConfig(
        events=3_000, sources=40, targets=60, repeat=0.3, habit=0.1, wave=0.0, kind=kind
    )
    return tg.synthesize(config).split(0.7, 0.15)


def assert_learns(model: Model, split: Split) -> None:
    """Fit a model, and assert that it beats popularity by far on test events."""
    report = tg.evaluate(model.fit(split), split, with_heuristics=False)
    popularity = tg.evaluate(tg.build("popularity").fit(split), split, with_heuristics=False)
    figures = {name: (report[name], popularity[name]) for name in ("MR", "MRR", "Hit@10")}
    assert report["MR"] < 0.6 * popularity["MR"], figures
    assert report["MRR"] > 1.8 * popularity["MRR"], figures
    assert report["Hit@10"] > 2 * popularity["Hit@10"], figures
