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
from enfa.batch.static.padding import Bucket, Form, pad_plan
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


def test_sizes_that_do_not_exist_or_do_not_suffice() -> None:
    case = {**CASES[0], "context": "none", "conv": "gin", "edges": "none"}
    graphs = _graphs(case, 0)
    model = live_model(case, graphs)
    plan = _lean(graphs, POLICIES[case["policy"]], model)
    with pytest.raises(ValueError, match="Expected sizes that the plan has, got rowz"):
        pad_plan(plan, {"rowz": 3})
    with pytest.raises(ValueError, match=r"Expected rows 1 >= .* to pad a plan, got less"):
        pad_plan(plan, {"rows 1": 1})
    with pytest.raises(ValueError, match="Expected a prepared plan"):
        pad_plan(enfa.make_plan(graphs, POLICIES[case["policy"]], model.spec))


def test_a_bucket_gives_every_batch_the_same_layout() -> None:
    graphs = random_graphs(20, 8, seed=1, channels=2)
    model = enfa.DSGNN(2, 6, 2, 3)
    plans = [_lean(graphs[i : i + 4], enfa.NodeMarking(), model) for i in range(0, 20, 4)]
    form = Form(plans[0])
    bucket = Bucket(form, np.max([form.sizes(plan.tensors()) for plan in plans], 0))
    layouts = set()
    for plan in plans:
        block = torch.empty(bucket.nbytes, dtype=torch.uint8)
        bucket.write(plan.tensors(), bucket.arrays(block.numpy()))
        layouts.add(layout_of(bucket.view(block)))
        torch.testing.assert_close(model.eval()(bucket.view(block)), model(plan))
    assert len(layouts) == 1 and len({layout_of(plan) for plan in plans}) > 1


def test_a_single_pair_is_not_padded() -> None:
    """BatchNorm refuses it, and must get to see it."""
    lonely = degenerate_graphs(2)["one node"]
    model = enfa.DSGNN(2, 6, 2, 2)
    with pytest.raises(ValueError, match="at least two nodes"):
        pad_plan(_lean([lonely], enfa.NodeMarking(), model))
