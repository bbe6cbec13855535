import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.nn import GATv2Conv, SAGEConv

import enfa
from enfa.plan.derived.maps import lowered
from enfa.plan.links import Sums
from enfa.testing import random_graphs

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


@pytest.mark.parametrize("attention", [False, True])
def test_a_plan_that_was_evaluated_in_inference_mode_is_trained_on(attention: bool) -> None:
    """What was derived there must not be a tensor of that mode, which no pass that records gradients may keep."""

    def conv(ins: int, outs: int) -> torch.nn.Module:
        attends = GATv2Conv((ins, ins), outs, add_self_loops=False)
        return attends if attention else SAGEConv((ins, ins), outs, aggr="max")

    model = enfa.DSSGNN(3, 4, 2, 2, conv)
    plan = enfa.make_plan(random_graphs(3, 6, channels=3), enfa.NodeMarking(), model)
    with torch.inference_mode():
        model.eval()(plan)
    model.train()(plan).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
