"""The scale of the initial input embeddings decides whether few steps are enough to learn."""

import tclgraph as tg

STREAM = tg.SyntheticConfig(events=3_000, sources=20, targets=60)
# Means over two seeds, after three epochs: 16.8 with the default scale, 23.6 with a scale of 1.
HIGHEST_MEAN_RANK = 20.0


def mean_rank(**settings: float) -> float:
    split = tg.synthesize(STREAM).split(0.6, 0.2)
    model = tg.TCL(epochs=3, batch_size=128, **settings).fit(split)
    return tg.evaluate(model, split, part="valid", with_heuristics=False)["MR"]


def test_the_default_scale_learns_in_a_few_epochs() -> None:
    assert mean_rank() < HIGHEST_MEAN_RANK < mean_rank(input_deviation=1.0)
