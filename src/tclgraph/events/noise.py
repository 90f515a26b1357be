"""Random interactions among the training events of a split, to test how robust a model is."""

from dataclasses import replace

import numpy as np

from tclgraph.events.split import Split


def with_noise(split: Split, share: float, *, seed: int) -> Split:
    """Return a split whose training part has random interactions among its events.

    `share` is their number as a share of the training events. Sources and targets are drawn
    uniformly among those of the training events, independently of each other, and times uniformly
    between the first and the last training event. In a one-mode graph whose nodes do not interact
    with themselves in training, an interaction of a node with itself goes to the next target.

    The interactions of a smaller share are among those of a larger one with the same seed.
    Validation and test events stay the same.

    The events have no labels, weights, features or segments: random interactions have none.

    >>> from tclgraph.events.synthetic import SyntheticConfig, synthesize
    >>> split = synthesize(SyntheticConfig(events=100)).split(0.6, 0.2)
    >>> noisy = with_noise(split, 0.1, seed=0)
    >>> noisy.sizes
    {'train': 66, 'valid': 20, 'test': 20}
    >>> str(noisy)
    '60/20/20 of rows, train with 10 % random interactions'
    """
    train, rest = split.train, split.events[split.train_end :]
    count = round(share * len(train))
    # A row of draws per interaction, so that a larger share begins with the same interactions.
    # Not the generator of a model with the same seed.
    draws = np.random.default_rng([seed, 1]).random((count, 3))
    sources, targets = np.unique(train.source), np.unique(train.target)
    source = sources[(draws[:, 0] * len(sources)).astype(np.int64)]
    target = targets[(draws[:, 1] * len(targets)).astype(np.int64)]
    if split.events.kind == "one-mode" and not (train.source == train.target).any():
        following = np.searchsorted(targets, target, side="right") % len(targets)
        target = np.where(source == target, targets[following], target)
    # The sum may round to a time after the last training event.
    time = np.minimum(train.time[0] + draws[:, 2] * train.duration, train.time[-1])
    order = np.argsort(np.concatenate([train.time, time]), kind="stable")
    events = replace(
        split.events,
        source=np.concatenate([np.concatenate([train.source, source])[order], rest.source]),
        target=np.concatenate([np.concatenate([train.target, target])[order], rest.target]),
        time=np.concatenate([np.concatenate([train.time, time])[order], rest.time]),
        label=None,
        weight=None,
        features=None,
        segment=None,
        segments=None,
    )
    return replace(
        split,
        events=events,
        train_end=split.train_end + count,
        valid_end=split.valid_end + count,
        remark=f"train with {100 * share:g} % random interactions",
    )
