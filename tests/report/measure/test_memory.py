import torch

import enfa
from enfa.datasets import from_graphs
from enfa.report.measure.memory import does_not_fit, estimate, peak_bytes
from enfa.report.measure.model import build, make_step
from enfa.testing import random_graph


def test_peak_counts_what_is_alive_at_once() -> None:
    x = torch.zeros(1000)  # 4,000 bytes, there before

    def step() -> None:
        a = x + 1
        b = a + 1
        del a
        c = b + 1
        del b, c

    assert 8000 <= peak_bytes(step, "cpu") < 8100  # a few scalars beside


def test_estimate_is_near_what_a_step_takes() -> None:
    """It decides what is not even tried: too small would end in an error, too large would leave figures out."""
    graph = random_graph(80, seed=3)
    graph.y = torch.tensor([0])
    other = random_graph(80, seed=4)
    other.y = torch.tensor([1])
    data = from_graphs([graph, other])
    for context in (None, "mpnn"):
        model = build(data, 32, 4, "gin", context)
        plan = enfa.make_plan(data.graphs, enfa.NodeMarking(), model, "full")
        plan.y = torch.tensor([0, 1])
        step = make_step(model, plan)
        step()
        ratio = peak_bytes(step, "cpu") / estimate(plan.num_pairs, 32, 4, context is not None)
        assert 0.5 < ratio < 1.5


def test_does_not_fit() -> None:
    assert does_not_fit(MemoryError()) and does_not_fit(RuntimeError("DefaultCPUAllocator: can't allocate memory"))
    assert not does_not_fit(RuntimeError("shapes do not match"))
