import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from enfa.plan.slicing._slice import collect, look_up


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
