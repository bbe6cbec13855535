"""Key tables, and above all: a collision of hashes never merges two keys."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from enfa.plan.keys.intern import KeyTable, packed

Key = tuple[int, list[int]]

_A, _B, _MASK = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 2**64 - 1


def _add(table: KeyTable, keys: list[Key]) -> list[int]:
    own = np.array([k[0] for k in keys], np.int64)
    ptr = np.concatenate([[0], np.cumsum([len(k[1]) for k in keys])]).astype(np.int64)
    return table.add(own, ptr, np.array([i for k in keys for i in k[1]], np.int64)).tolist()


def _step(state: int, item: int) -> int:
    """One round of the table's hash, in Python's integers."""
    state = ((state ^ (item & _MASK)) * _B) & _MASK
    return state ^ (state >> 29)


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


def _first(own: int, count: int) -> int:
    return (own * _A + count) & _MASK


def _items_differ(draw: np.random.Generator) -> tuple[Key, Key]:
    """Own and length agree; two items in each, chosen so that the state after both is one."""
    own = int(draw.integers(0, 100))
    one, other, last = (int(v) for v in draw.integers(-(2**62), 2**62, 3))
    crafted = last ^ _signed(_step(_first(own, 2), one)) ^ _signed(_step(_first(own, 2), other))
    return (own, [one, last]), (own, [other, crafted])


def _own_differs(draw: np.random.Generator) -> tuple[Key, Key]:
    own, item = int(draw.integers(0, 100)), int(draw.integers(-(2**62), 2**62))
    return (own, [item]), (own + 1, [_signed((item & _MASK) ^ _first(own, 1) ^ _first(own + 1, 1))])


def _one_begins_the_other(draw: np.random.Generator) -> tuple[Key, Key]:
    """The shorter key has the longer one's first item, so that their lengths alone tell them apart."""
    own, item = (int(v) for v in draw.integers(0, 2**31 - 1, 2))
    crafted = _signed(_step(_first(own, 2), item) ^ _first(own, 1) ^ item)
    return (own, [item, crafted]), (own, [item])


@pytest.mark.parametrize("make", [_items_differ, _own_differs, _one_begins_the_other])
def test_a_collision_never_merges(make) -> None:
    """Keys are crafted to have one 64-bit hash, which the table itself confirms."""
    draw, table, keys = np.random.default_rng(0), KeyTable(), []
    while len(keys) < 40:
        pair = make(draw)
        if all(items == sorted(items) for _, items in pair):  # the table sorts items before it hashes them
            keys += pair
    rows = _add(table, keys)
    assert rows == list(range(len(keys)))
    hashes = table.hashes[: len(table)]
    assert np.array_equal(hashes[::2], hashes[1::2]), "the keys were meant to collide"
    assert _add(table, keys[::-1]) == rows[::-1]  # and each is found again
    assert len(table) == len(keys)


_ITEM = st.tuples(st.integers(0, 3), st.integers(-2, 2))


@given(
    st.lists(st.tuples(st.integers(0, 3), st.lists(_ITEM, max_size=3)), max_size=30),
    st.integers(0, 30),
)
def test_equal_keys_and_only_those_share_a_row(keys: list, cut: int) -> None:
    """As a dictionary of (own, sorted items) would number them, whether added at once or in two parts."""
    table, expected, numbers = KeyTable(0, 0), [], {}
    for own, items in keys:
        expected.append(numbers.setdefault((own, tuple(sorted(items))), len(numbers)))
    plain = [(own, [int(packed(np.array([a]), np.array([b]))[0]) for a, b in items]) for own, items in keys]
    assert _add(table, plain[:cut]) + _add(table, plain[cut:]) == expected
    assert len(table) == len(numbers)
    for (own, items), row in numbers.items():
        part = slice(table.item_ptr[row], table.item_ptr[row + 1])
        assert table.own[row] == own
        assert sorted(zip(table.a[part].tolist(), table.b[part].tolist())) == sorted(items)


def test_grows_without_losing_rows() -> None:
    """From room for one row to 5000, with every table doubled and hashed anew on the way."""
    table = KeyTable(1, 1)
    keys = [(k % 7, [k, k * k, -k]) for k in range(5000)]
    rows = [row for k in range(0, 5000, 100) for row in _add(table, keys[k : k + 100])]
    assert rows == list(range(5000)) == _add(table, keys)
    assert len(table.slots) >= 2 * len(table)


def test_absorb_translates_numbers_first() -> None:
    """Rows 0 and 1 of the table before are rows 5 and 4 here."""
    here, there = KeyTable(), KeyTable()
    pair = lambda a, b: int(packed(np.array([a]), np.array([b]))[0])  # noqa: E731
    _add(here, [(4, [pair(4, 2), pair(5, 2)])])
    _add(there, [(0, [pair(0, 1)]), (1, [pair(0, 2), pair(1, 2)])])
    translated = np.array([5, 4])
    assert here.absorb(there, translated, translated).tolist() == [1, 0]
    assert here.own.tolist() == [4, 5] and here.a.tolist() == [4, 5, 5] and here.b.tolist() == [2, 2, 1]


def test_from_arrays_is_the_same_table() -> None:
    table = KeyTable()
    keys = [(3, [10, -20]), (3, []), (0, [10])]
    _add(table, keys)
    stored = KeyTable.from_arrays(table.own, table.item_ptr, table.a, table.b)
    assert len(stored) == 3 and stored.own.tolist() == [3, 3, 0]
    assert _add(stored, [*keys, (9, [])]) == [0, 1, 2, 3]


def test_packing_keeps_both_halves() -> None:
    a, b = np.array([0, 2**31 - 1, 7]), np.array([-1, -(2**31), 2**31 - 1])
    items = packed(a, b)
    assert (items >> 32).tolist() == a.tolist() and items.astype(np.int32).tolist() == b.tolist()
