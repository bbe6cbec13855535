import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from enfa.plan.slicing._slice import coalesce, collect, counting_sort, look_up

Entries = list[tuple[int, int]]


@given(st.lists(st.lists(st.integers(0, 9), max_size=8), max_size=4), st.integers(0, 50))
def test_collect_numbers_in_the_order_of_meeting_and_ignores_older_numbers(lists: list[list[int]], base: int) -> None:
    number, found, count = np.arange(base - 10, base, dtype=np.int32), np.empty(11, np.int32), 0
    met: list[int] = []
    for turn, ids in enumerate(lists):
        result = np.empty(len(ids), np.int64)
        if turn % 2:
            result[:] = ids
            known = look_up(result, number, base)
            assert known == next((k for k, i in enumerate(ids) if i not in met), len(ids))
            count = collect(result[known:], number, base, found, count, result[known:])
        else:
            count = collect(np.array(ids, np.int32), number, base, found, count, result)
        met += [i for k, i in enumerate(ids) if i not in met and i not in ids[:k]]
        assert found[:count].tolist() == met
        assert result.tolist() == [met.index(i) for i in ids]


@given(st.lists(st.integers(0, 5), max_size=20))
def test_counting_sort_is_stable(index: list[int]) -> None:
    ptr, entry = np.zeros(7, np.int64), np.empty(len(index), np.int64)
    counting_sort(np.array(index, np.int64), ptr, entry)
    assert entry.tolist() == sorted(range(len(index)), key=lambda i: index[i])
    assert ptr.tolist() == [sum(i < v for i in index) for v in range(7)]


@given(st.lists(st.lists(st.tuples(st.integers(0, 4), st.integers(-2, 2)), max_size=6), max_size=4))
def test_coalesce_adds_up_equal_rows_and_drops_what_cancels(lists: list[Entries]) -> None:
    flat = [pair for one in lists for pair in one]
    ptr = np.concatenate([[0], np.cumsum([len(one) for one in lists])]).astype(np.int64)
    row, count = (np.array([pair[k] for pair in flat], np.int64) for k in (0, 1))
    new_ptr, new_row, new_count = np.zeros_like(ptr), np.empty_like(row), np.empty_like(count)
    scratch = np.empty(max((len(one) for one in lists), default=0), np.int64)
    end = coalesce(ptr, row, count, scratch, new_ptr, new_row, new_count)
    assert end == new_ptr[-1]
    for n, one in enumerate(lists):
        net = {r: sum(c for q, c in one if q == r) for r, _ in one}
        part = slice(new_ptr[n], new_ptr[n + 1])
        assert list(zip(new_row[part], new_count[part])) == sorted((r, c) for r, c in net.items() if c)
