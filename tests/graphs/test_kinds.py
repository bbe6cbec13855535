import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from enfa.graphs.kinds import distinct_rows


@given(
    st.sampled_from([np.int64, np.float32]).flatmap(
        lambda dtype: arrays.arrays(
            dtype,
            arrays.array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=6),
            elements=st.integers(0, 2) if dtype is np.int64 else st.sampled_from([0.0, 0.5, -1.0]),
        )
    )
)
def test_equal_rows_and_only_those_share_a_number(matrix: np.ndarray) -> None:
    kind, rows = distinct_rows(matrix)
    assert np.array_equal(rows[kind], matrix) if len(matrix) else len(kind) == 0
    as_tuples = [tuple(row) for row in matrix.tolist()]
    for i, a in enumerate(as_tuples):
        for j, b in enumerate(as_tuples):
            assert (kind[i] == kind[j]) == (a == b)
    assert len(rows) == len(set(as_tuples))


@pytest.mark.parametrize("columns", [3, 40])
def test_numbers_do_not_overflow(columns: int) -> None:
    """The product of all ranges passes 2^62: the code is numbered anew on the way."""
    draw = np.random.default_rng(0)
    wide = draw.integers(0, 2**40, (50, columns))
    wide[1::2] = wide[::2]
    wide[1, -1] += 1
    kind, rows = distinct_rows(wide)
    assert np.array_equal(rows[kind], wide) and len(rows) == 26


def test_neighbouring_floats_are_different() -> None:
    one = np.float32(1.0)
    kind, rows = distinct_rows(np.array([[one], [np.nextafter(one, np.float32(2))], [one]]))
    assert kind.tolist() == [0, 1, 0] and len(rows) == 2


def test_no_columns() -> None:
    kind, rows = distinct_rows(np.zeros((3, 0)))
    assert kind.tolist() == [0, 0, 0] and rows.shape == (1, 0)
