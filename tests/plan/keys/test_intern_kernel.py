import numpy as np
import pytest

from enfa.plan.keys._intern import sort_items


@pytest.mark.parametrize("count", [0, 1, 2, 3, 63, 64, 65, 66, 200])
def test_sorts_few_by_insertion_and_many_as_a_heap(count: int) -> None:
    draw = np.random.default_rng(count)
    for values in (draw.integers(-5, 5, count), draw.integers(-(2**62), 2**62, count), np.arange(count)[::-1]):
        items = np.concatenate([values, [99, -99]]).astype(np.int64)
        sort_items(items, count)
        assert items[:count].tolist() == sorted(values.tolist())
        assert items[count:].tolist() == [99, -99]  # what lies behind is not touched
