import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from tclgraph.evaluation.candidates import Candidates
from tclgraph.evaluation.ranking import Ranks, rank, rank_first_occurrences

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
    columns = np.array(sorted(chosen))
    candidates = Candidates.all(columns, 5, np.zeros(len(rows), np.int64))
    true = np.array([data.draw(st.sampled_from(sorted(chosen))) for _ in rows])
    scores = np.array(rows)
    ranks = rank(scores, true, candidates)
    expected = rank(scores[:, columns], np.searchsorted(columns, true))
    assert_array_equal(ranks.middle, expected.middle)
    assert_array_equal(ranks.pessimistic, expected.pessimistic)


def test_each_row_has_its_own_candidates() -> None:
    # Column 1 is a candidate once 2 events are revealed, column 2 once 5 are.
    candidates = Candidates(np.array([0, 2, 5]), np.array([0, 2, 4, 5]))
    scores = np.tile([1.0, 2.0, 3.0], (4, 1))
    assert_array_equal(candidates.counts(), [1, 2, 2, 3])
    assert_array_equal(rank(scores, np.zeros(4, np.int64), candidates).middle, [1, 2, 2, 3])
    scores[:, 1] = np.nan
    assert_array_equal(rank(scores, np.zeros(4, np.int64), candidates).middle, [1, 2, 2, 3])
    assert_array_equal(candidates.include(np.full(4, 2)), [False, False, False, True])


def test_a_target_that_is_no_candidate_comes_after_all_candidates() -> None:
    candidates = Candidates(np.array([0, 2, 5]), np.array([0, 2, 5]))
    true = np.array([2, 2, 2])
    ranks = rank(np.array([[1.0, 2.0, 9.0]] * 3), true, candidates)
    ranks = rank_first_occurrences(ranks, true, candidates)
    assert_array_equal(ranks.middle, [2, 3, 1])
    assert_array_equal(ranks.optimistic, ranks.pessimistic)
    is_masked = np.array([[True, False, True]] * 3)
    masked = rank_first_occurrences(ranks, true, candidates, is_masked)
    assert_array_equal(masked.middle, [1, 2, 1])


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
