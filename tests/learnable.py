"""A stream in which there is something to learn, and what it means to have learned it."""

import tclgraph as tg
from tclgraph.events.split import Split
from tclgraph.events.stream import GraphKind
from tclgraph.models.interface import Model


def learnable(kind: GraphKind = "bipartite") -> Split:
    """Five communities whose members seldom leave them; all targets are about equally popular.

    Popularity can but guess among 60. Who knows the communities chooses among 12, and who knows
    what a source came back to, among fewer.
    """
    config = tg.SyntheticConfig(
        events=3_000, sources=40, targets=60, repeat=0.3, habit=0.1, wave=0.0, kind=kind
    )
    return tg.synthesize(config).split(0.7, 0.15)


def assert_learns(model: Model, split: Split) -> None:
    """Fit, and beat popularity by far on test events."""
    report = tg.evaluate(model.fit(split), split, with_heuristics=False)
    popularity = tg.evaluate(tg.build("popularity").fit(split), split, with_heuristics=False)
    told = {name: (report[name], popularity[name]) for name in ("MR", "MRR", "Hit@10")}
    assert report["MR"] < 0.6 * popularity["MR"], told
    assert report["MRR"] > 1.8 * popularity["MRR"], told
    assert report["Hit@10"] > 2 * popularity["Hit@10"], told
