import numpy as np
import pytest

from enfa.plan.keys._intern import sort_items


@pytest.mark.parametrize("count", [0, 1, 2, 64, 65, 1000, 5000])
@pytest.mark.parametrize("swaps", [0, 1, 3, None])
def test_sorts_few_many_and_nearly_sorted_items(count, swaps):
    rng = np.random.default_rng(count)
    items = np.sort(rng.integers(0, max(count // 2, 1), count))
    if swaps is None:
        rng.shuffle(items)
    elif count:
        items[rng.integers(0, count, swaps)] = rng.integers(0, count, swaps)
    padded = np.concatenate([items, [7, -1]])
    sort_items(padded, count)
    assert np.array_equal(padded, [*np.sort(items), 7, -1])
