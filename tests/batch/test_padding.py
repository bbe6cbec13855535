"""A padded plan computes what the plan itself computes."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from cases import EDGE_CHANNELS, FACTORS, NODE_CHANNELS, POLICIES, allowed, live_model
from covering import covering
from torch import Tensor, nn
from torch_geometric.data import Data

import enfa
from enfa.batch.padding import Bucket, Form, pad_plan
from enfa.plan.pack import layout_of
from enfa.plan.prepare import lean, prepare
from enfa.testing import degenerate_graphs, random_graphs

CASES = covering(FACTORS, allowed)


def _graphs(case: dict, seed: int) -> list[Data]:
    channels, edge_channels = NODE_CHANNELS[case["nodes"]], EDGE_CHANNELS[case["edges"]]
    options = {"channels": channels, "edge_channels": edge_channels, "loops": True, "parallel": True}
    return random_graphs(3, 8, seed=seed, **options) + list(degenerate_graphs(channels, edge_channels, seed).values())


def _results(model: nn.Module, plan: enfa.Plan) -> dict[str, Tensor]:
    model = copy.deepcopy(model).train()
    torch.manual_seed(0)  # for the dropout after pooling
    out = model(plan)
    (out.square() + out * torch.linspace(-1, 1, out.numel(), dtype=out.dtype).reshape(out.shape)).sum().backward()
    found = {"output": out.detach()}
    found |= {f"gradient {name}": p.grad for name, p in model.named_parameters() if p.grad is not None}
    return found | {f"buffer {name}": b for name, b in model.named_buffers()}


def _lean(graphs: list[Data], policy: enfa.Policy, model: nn.Module) -> enfa.Plan:
    return lean(prepare(enfa.make_plan(graphs, policy, model.spec), model.needs), model.needs)


def _larger(plan: enfa.Plan, seed: int) -> dict[str, int]:
    form, rng = Form(plan), np.random.default_rng(seed)
    least = form.sizes(plan.tensors())
    return dict(zip(form.names, (least + rng.integers(0, 40, len(least)) * (least > 0)).tolist()))


def _assert_same(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    scale = max(float(v.abs().max()) for k, v in expected.items() if k.startswith("gradient") and v.numel())
    for name, value in expected.items():
        size = scale if name.startswith("gradient") else 1.0
        torch.testing.assert_close(found[name], value, rtol=1e-12, atol=1e-12 * size, msg=lambda m, n=name: f"{n}: {m}")


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda i: " ".join(str(v) for v in CASES[i].values()))
def test_same_as_unpadded(number: int) -> None:
    case = CASES[number]
    graphs, policy = _graphs(case, number), POLICIES[case["policy"]]
    model = live_model(case, graphs).double()
    expected = _results(model, enfa.make_plan(graphs, policy, model.spec))
    plan = _lean(graphs, policy, model)
    _assert_same(_results(model, plan), expected)
    for sizes in (None, _larger(plan, number)):
        _assert_same(_results(model, pad_plan(plan, sizes)), expected)
