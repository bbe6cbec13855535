"""Rows are numbered anew for every plan, and keys of any length are gathered."""

import numpy as np
import pytest

from enfa.plan.keys.intern import KeyTable
from enfa.plan.slicing import wanted
from enfa.plan.slicing.wanted import Numbers, Wanted, items_of


def test_items_of_any_length_are_gathered_in_the_given_order() -> None:
    rng = np.random.default_rng(0)
    for longest in (0, 1, 4, 300):
        lengths = rng.integers(0, longest + 1, 40)
        ptr = np.concatenate([[0], np.cumsum(lengths)])
        a, b = rng.integers(0, 2**31, ptr[-1]), rng.integers(-(2**31), 2**31, ptr[-1])
        table = KeyTable.from_arrays(np.arange(40)[::-1], ptr, a, b)
        for rows in (np.arange(40), rng.permutation(40)[:7], np.array([39, 39]), np.zeros(0, np.int64)):
            wanted_rows = Wanted(Numbers(40))
            own, begin = wanted_rows.add_owns(table, rows.astype(np.int32))
            assert wanted_rows.rows[own].tolist() == (39 - rows).tolist()
            found, *halves = items_of(table, rows.astype(np.int32))
            assert found.tolist() == begin.tolist() and np.diff(found).tolist() == lengths[rows].tolist()
            for half, given in zip(halves, (a, b)):
                assert half.tolist() == [item for r in rows for item in given[ptr[r] : ptr[r + 1]].tolist()]


def test_numbers_of_an_earlier_plan_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor when they run out and begin anew."""
    monkeypatch.setattr(wanted, "_LIMIT", 30)
    numbers, begun = Numbers(10), set()
    for turn in range(20):
        rows = Wanted(numbers)
        begun.add(rows.base)
        ids = np.random.default_rng(turn).integers(0, 10, 5)
        new = rows.add(ids)
        assert rows.rows[new].tolist() == ids.tolist() and rows.count == len(set(ids.tolist()))
        more = rows.replace(np.concatenate([ids, np.arange(10)]))[len(ids) :]
        assert rows.rows[more].tolist() == list(range(10)) and rows.count == 10
        assert numbers.number.max() < 30
    assert begun == {0, 10, 20}


def test_a_plan_that_was_broken_off_leaves_nothing_behind() -> None:
    numbers = Numbers(10)
    broken = Wanted(numbers)
    broken.add(np.array([3, 4]))
    assert Wanted(numbers).add(np.array([4, 7])).tolist() == [0, 1]


def test_more_items_than_int32_counts_are_refused() -> None:
    table = KeyTable.from_arrays(np.zeros(1), np.array([0, 0]), np.zeros(0), np.zeros(0))
    table.heads = np.array([0, 1_500_000_000 << 32], np.int64)  # as if it were that long
    rows = np.zeros(3, np.int32)
    for ask in (lambda: items_of(table, rows), lambda: Wanted(Numbers(1)).add_owns(table, rows)):
        with pytest.raises(ValueError, match="4500000000: plan fewer graphs"):
            ask()
