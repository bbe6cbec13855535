"""Packing gives back what it got."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from enfa.batch.file.packing import pack, unpack

DTYPES = st.sampled_from([np.int8, np.int16, np.int32, np.int64, np.uint8, np.float32, np.float64, np.bool_])


SHAPES = st.sampled_from([(0,), (1,), (9,), (4, 3), (0, 2)])


@given(st.data(), st.booleans())
@settings(deadline=None, max_examples=200)
def test_round_trip(data: st.DataObject, delta: bool) -> None:
    array = data.draw(arrays(data.draw(DTYPES), data.draw(SHAPES)))
    found = unpack(*pack(array, delta))
    assert found.dtype == array.dtype and found.shape == array.shape
    np.testing.assert_array_equal(found.view(np.uint8), array.view(np.uint8))  # NaN and -0.0 too


@pytest.mark.parametrize("delta", [False, True])
def test_the_ends_of_int64(delta: bool) -> None:
    array = np.array([0, 2**62 - 1, -(2**62), 5, -1])
    np.testing.assert_array_equal(unpack(*pack(array, delta)), array)


@pytest.mark.parametrize("delta", [False, True])
@pytest.mark.parametrize("size", [2**17 - 1, 2**17, 2**17 + 1, 5 * 2**16])
@pytest.mark.parametrize("limit", [100, 2**15, 2**22, 2**31 - 1])
def test_blocks_are_packed_in_threads_and_unpacked_into_one_half_of_another_array(delta: bool, size: int, limit: int) -> None:
    array = np.random.default_rng(0).integers(-limit, limit, size, np.int32)
    array[-1] = -limit
    with ThreadPoolExecutor() as pool:
        data, how = pack(array, delta, pool.map)
        both = np.full((size, 2), 7, np.int32)
        found = unpack(data, how, both[:, 1], pool.map)
    np.testing.assert_array_equal(found, array)
    np.testing.assert_array_equal(both[:, 1], array)
    assert (both[:, 0] == 7).all()
    assert data.tobytes() == pack(array, delta)[0].tobytes()
    np.testing.assert_array_equal(unpack(data, how), array)


def test_rows_that_lie_close_become_small() -> None:
    rows = np.arange(100_000, dtype=np.int32) * 3 + 2_000_000
    assert len(pack(rows)[0]) < 1000
