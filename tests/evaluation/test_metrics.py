import numpy as np
import pytest

from tclgraph.evaluation.metrics import METRIC_NAMES, bootstrap_intervals, metrics


def test_metrics_by_hand() -> None:
    values = metrics(np.array([1.0, 2.0, 5.5, 11.0]))
    assert values == {
        "MR": 19.5 / 4,
        "MRR": pytest.approx((1 + 1 / 2 + 1 / 5.5 + 1 / 11) / 4),
        "Hit@1": 25.0,
        "Hit@5": 50.0,
        "Hit@10": 75.0,
        "Hit@20": 100.0,
        "NDCG@10": pytest.approx((1 + 1 / np.log2(3) + 1 / np.log2(6.5)) / 4),
    }
    assert tuple(values) == METRIC_NAMES


def test_intervals_agree_with_resampling_single_events() -> None:
    random = np.random.default_rng(7)
    ranks = random.geometric(0.1, size=400).astype(float)
    intervals = bootstrap_intervals(ranks, seed=0)
    drawn = [metrics(random.choice(ranks, size=len(ranks)))["MR"] for _ in range(4_000)]
    low, high = np.percentile(drawn, [2.5, 97.5])
    width = high - low
    assert intervals["MR"][0] == pytest.approx(low, abs=0.1 * width)
    assert intervals["MR"][1] == pytest.approx(high, abs=0.1 * width)


def test_intervals_contain_the_true_mean_in_about_95_percent() -> None:
    random = np.random.default_rng(3)
    is_covered = []
    for trial in range(200):
        ranks = random.geometric(0.2, size=300).astype(float)  # the mean is 5
        low, high = bootstrap_intervals(ranks, seed=trial)["MR"]
        is_covered.append(low <= 5 <= high)
    assert 0.89 <= np.mean(is_covered) <= 0.99


def test_the_interval_of_a_single_event_has_width_0() -> None:
    assert bootstrap_intervals(np.array([4.0]), seed=0)["MR"] == (4.0, 4.0)
