import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from tclgraph.evaluation.ranking import Ranks, rank

few_values = st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 2.0, np.inf])


@given(st.lists(st.lists(few_values, min_size=4, max_size=4), min_size=1), st.data())
def test_ranks_agree_with_sorting(rows: list[list[float]], data: st.DataObject) -> None:
    true = [data.draw(st.integers(0, 3)) for _ in rows]
    ranks = rank(np.array(rows), np.array(true))
    for row, scores in enumerate(rows):
        ordered = sorted(scores, reverse=True)
        places = [n + 1 for n, score in enumerate(ordered) if score == scores[true[row]]]
        assert ranks.optimistic[row] == places[0]
        assert ranks.pessimistic[row] == places[-1]
        assert ranks.middle[row] == sum(places) / len(places)


@given(st.lists(st.lists(few_values, min_size=5, max_size=5), min_size=1), st.data())
def test_ranks_among_some_columns_are_those_of_a_smaller_table(
    rows: list[list[float]], data: st.DataObject
) -> None:
    chosen = data.draw(st.sets(st.integers(0, 4), min_size=1))
    candidates = np.array(sorted(chosen))
    true = np.array([data.draw(st.sampled_from(sorted(chosen))) for _ in rows])
    scores = np.array(rows)
    ranks = rank(scores, true, candidates)
    expected = rank(scores[:, candidates], np.searchsorted(candidates, true))
    assert_array_equal(ranks.middle, expected.middle)
    assert_array_equal(ranks.pessimistic, expected.pessimistic)


def test_a_nan_anywhere_in_the_row_gets_the_last_rank() -> None:
    scores = np.array([[3.0, 1.0, 2.0], [3.0, np.nan, 2.0], [np.nan, 1.0, 0.0]])
    ranks = rank(scores, np.array([0, 0, 0]))
    assert_array_equal(ranks.middle, [1, 3, 3])
    assert_array_equal(ranks.is_nan, [False, True, True])


def test_equal_float32_scores_are_a_tie() -> None:
    scores = np.array([[1.0, 1.0 + 1e-9]], dtype=np.float32)
    assert rank(scores, np.array([0])).middle[0] == 1.5


def test_blocks_are_concatenated() -> None:
    block = rank(np.array([[1.0, 2.0]]), np.array([0]))
    ranks = Ranks.concatenate([block, block])
    assert_array_equal(ranks.middle, [2, 2])
    assert len(ranks) == 2
