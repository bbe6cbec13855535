import torch
from hypothesis import given
from hypothesis import strategies as st

from enfa.plan.derived.maps import lowered
from enfa.plan.links import Sums

OWN = torch.tensor([0, 1, 0, 2, 1])


@given(st.lists(st.lists(st.tuples(st.integers(0, 4), st.integers(-2, 2)), max_size=6), max_size=4))
def test_lowered_lists_add_up_equal_rows_and_drop_what_cancels(lists: list[list[tuple[int, int]]]) -> None:
    flat = torch.tensor([pair for one in lists for pair in one], dtype=torch.int64).reshape(-1, 2)
    ptr = torch.tensor([0, *(len(one) for one in lists)]).cumsum(0)
    found = lowered(Sums(ptr, flat[:, 0], flat[:, 1]), OWN, 3)
    assert int(found.ptr[-1]) == len(found.row) == len(found.count)
    for n, one in enumerate(lists):
        net = {int(OWN[r]): sum(c for q, c in one if OWN[q] == OWN[r]) for r, _ in one}
        part = slice(int(found.ptr[n]), int(found.ptr[n + 1]))
        assert dict(zip(found.row[part].tolist(), found.count[part].tolist())) == {r: c for r, c in net.items() if c}
