"""The full plan is the reference of every other plan; here it is compared with one from outside."""

import pytest
import torch
from cases import EDGE_CHANNELS, FACTORS, NODE_CHANNELS, POLICIES, allowed, live_model
from covering import covering
from reference import Reference
from torch import Tensor

import enfa
from enfa.testing import degenerate_graphs, random_graphs

CASES = covering({**FACTORS, "dropout": (0.0,), "share": (None,)}, allowed)


def _close(what: str, here: Tensor, there: Tensor, scale: float) -> None:
    assert here.shape == there.shape, what
    off = float((here - there).detach().abs().max()) if here.numel() else 0.0
    assert off <= 1e-10 * scale, f"{what}: {off / scale:.2g}"


@pytest.mark.parametrize("train", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda i: " ".join(map(str, CASES[i].values())))
def test_against_pyg(number: int, train: bool) -> None:
    """Explicit subgraphs, PyG's convs, BatchNorm1d and pools: outputs, gradients and running statistics."""
    case = CASES[number]
    channels, edge_channels = NODE_CHANNELS[case["nodes"]], EDGE_CHANNELS[case["edges"]]
    # PyG's GCNConv gives no second loop to a node that has one; ours does
    loops = case["conv"] != "gcn"
    options = {"channels": channels, "edge_channels": edge_channels, "loops": loops, "parallel": True}
    graphs = random_graphs(3, 6, seed=number, **options)
    odd = degenerate_graphs(channels, edge_channels)
    graphs += [graph for name, graph in odd.items() if loops or "loop" not in name]

    model = live_model(case, graphs, layers=2).double().train(train)
    reference = Reference(case, model, channels, edge_channels).train(train)
    expected = reference(graphs)
    out = model(enfa.make_plan(graphs, POLICIES[case["policy"]], model.spec, "full"))
    _close("output", out, expected, float(expected.detach().abs().max()))
    for result in (out, expected):
        (result.square() * torch.linspace(1, 2, result.numel()).reshape(result.shape)).sum().backward()
    compared = 0
    for name, here, there in reference.pairs:
        if not isinstance(there, torch.nn.Parameter):
            for h in here:
                _close(name, there.double(), h.double(), float(h.abs().max()) + 1.0)
        elif there.grad is not None:
            grads = torch.cat([torch.zeros_like(h) if h.grad is None else h.grad for h in here])
            _close(name, there.grad, grads, max(float(grads.abs().max()), _largest(reference) / 100))
            compared += 1
    assert compared == sum(p.grad is not None for p in model.parameters())


def _largest(module: torch.nn.Module) -> float:
    return max(float(p.grad.abs().max()) for p in module.parameters() if p.grad is not None)
