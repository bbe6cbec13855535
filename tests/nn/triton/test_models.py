"""Whole training steps with our kernels against the same by plain operators."""

import copy

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GINConv

import enfa
from enfa.testing import degenerate_graphs, random_graphs


def _step(model: nn.Module, kind: str, device: str) -> list[Tensor]:
    """Outputs, gradients and running statistics."""
    graphs = random_graphs(2, 5, seed=1, channels=[5, 3], edge_channels=[8, 3])
    graphs += list(degenerate_graphs([5, 3], [8, 3], 2).values())[:3]
    model = copy.deepcopy(model).to(device).train()
    out = model(enfa.make_plan(graphs, enfa.NodeMarking(), model, kind).to(device))
    (out * torch.linspace(-1, 1, out.numel(), dtype=out.dtype, device=device).view_as(out)).sum().backward()
    return [out, *(p.grad for p in model.parameters()), *model.buffers()]  # type: ignore[list-item]


def _wide(i: int, o: int) -> nn.Module:
    """Linears that are wide enough to normalise what they read, and norms of PyTorch's own."""
    first, second = nn.Linear(i, 72), nn.Linear(72, 72)
    return GINConv(nn.Sequential(
        first, nn.BatchNorm1d(72), nn.ReLU(), second, nn.BatchNorm1d(72), nn.ReLU(inplace=True), nn.Linear(72, o)
    ))  # fmt: skip


MODELS = {
    "ds, wide linears of PyG": lambda: enfa.DSGNN([5, 3], 6, 2, 1, _wide),
    "ds, wide": lambda: enfa.DSGNN([5, 3], 72, 2, 1, "gin"),
    "ds, gine": lambda: enfa.DSGNN([5, 3], 8, 2, 2, "gine", edge_channels=[8, 3], norm="batch"),
    "dss, gin": lambda: enfa.DSSGNN([5, 3], 8, 2, 2, "gin"),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_step_is_the_plain_one(check, name: str) -> None:
    model = MODELS[name]().double()
    with check.plainly():
        exact = _step(model, "full", "cpu")
    check.near(_step(model, "distinct", check.device), exact, 1e-10)
    check.near(_step(model.float(), "distinct", check.device), exact, 2e-5)


MANY_TERMS = {
    "sswl": lambda: enfa.SSWLGNN([5], 8, 2, 2, "gine", edge_channels=[4], mark_channels=3),
    "sun": lambda: enfa.SUN([5], 8, 2, 2, "gine", edge_channels=[4], mark_channels=3),
}


@pytest.mark.parametrize(("name", "unshared"), [("sswl", None), ("sswl", 2), ("sun", 2)])
def test_terms_are_added_up_as_plainly(check, name: str, unshared: int | None) -> None:
    """From a step on no row is shared: then rows of nodes and subgraphs are added to pairs in one pass."""
    model, policy = MANY_TERMS[name]().double(), enfa.NodeMarking(distances=1)
    graphs = random_graphs(2, 4, seed=1, channels=[5], edge_channels=[4])
    compiled = enfa.compile(graphs, policy, model, progress=False, unshared=unshared)

    def step(model: nn.Module, plan: enfa.Bag, device: str) -> list[Tensor]:
        model = copy.deepcopy(model).to(device).train()
        out = model(plan.to(device))
        out.square().sum().backward()
        return [out, *(p.grad for p in model.parameters()), *model.buffers()]  # type: ignore[list-item]

    with check.plainly():
        exact = step(model, enfa.make_plan(graphs, policy, model, "full"), "cpu")
    check.near(step(model, compiled[:], check.device), exact, 1e-10)
