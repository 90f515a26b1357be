import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tclgraph.arrays import IntArray
from tclgraph.events.pair_table import PairTable

# Small integers repeat; large and negative ones reach every bit of the hash.
_INTEGERS = st.integers(0, 5) | st.integers(-(2**63), 2**63 - 1)
_PAIRS = st.lists(st.tuples(_INTEGERS, _INTEGERS), max_size=60)


def _columns(pairs: list[tuple[int, int]]) -> tuple[IntArray, IntArray]:
    table = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


@given(_PAIRS, _PAIRS, _PAIRS)
def test_entries_agree_with_a_dictionary(
    earlier: list[tuple[int, int]], later: list[tuple[int, int]], others: list[tuple[int, int]]
) -> None:
    table, entry_of = PairTable(), dict[tuple[int, int], int]()
    for pairs in (earlier, later):
        expected = [entry_of.setdefault(pair, len(entry_of)) for pair in pairs]
        assert table.add(*_columns(pairs)).tolist() == expected
    assert len(table) == len(entry_of)
    assert list(zip(table.first.tolist(), table.second.tolist(), strict=True)) == list(entry_of)
    queries = earlier + later + others
    assert table.find(*_columns(queries)).tolist() == [entry_of.get(pair, -1) for pair in queries]
    assert len(table) == len(entry_of), "find adds no pair"


@pytest.mark.parametrize("step", [1, 2**20, 2**40])
def test_many_pairs_of_a_grid(step: int) -> None:
    first, second = (step * column.ravel() for column in np.mgrid[:300, :70])
    order = np.random.default_rng(0).permutation(len(first))
    table = PairTable()
    assert table.add(first[order], second[order]).tolist() == list(range(len(first)))
    entry = table.find(first, second)
    assert order[entry].tolist() == list(range(len(first)))


def test_a_pair_is_ordered() -> None:
    table = PairTable()
    assert table.add(np.array([1, 2]), np.array([2, 1])).tolist() == [0, 1]
