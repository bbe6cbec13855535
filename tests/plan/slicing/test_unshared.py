"""From whatever step on rows are not shared, a plan computes the same."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from cases import EVERY
from drawn import OWN, Drawn
from torch import nn

import enfa
from enfa.graphs import check_graphs
from enfa.nn.bag import Bag
from enfa.nn.bag.make import program_of
from enfa.plan.derived.pack import pack
from enfa.plan.derived.prepare import lean, prepare
from enfa.testing import degenerate_graphs, random_graphs

GRAPHS = random_graphs(4, 7, seed=1, edge_channels=2) + list(degenerate_graphs(3, 2).values())


def _results(model: nn.Module, bag: Bag) -> dict[str, torch.Tensor]:
    model = copy.deepcopy(model).train()
    torch.manual_seed(0)
    out = model(bag)
    (out.square() + out * torch.linspace(-1, 1, out.numel(), dtype=out.dtype).reshape(out.shape)).sum().backward()
    found = {"output": out.detach()} | {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
    return found | {f"buffer {n}": b for n, b in model.named_buffers()}


@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize(("seed", "name"), list(enumerate(EVERY)))
def test_any_step_may_be_the_first(seed: int, name: str, dropout: float) -> None:
    policy = EVERY[name]
    own, checked = name in OWN, check_graphs(GRAPHS)
    drawn = (Drawn(300 + seed + more, policy, 2, 5, own, own, dropout).double() for more in range(0, 1000, 50))
    tried = ((model, program_of(model, checked, policy, {})) for model in drawn)
    # marks of edges must be read
    model, program = next(t for t in tried if not policy.edge_mark_channels or any(s.edges for s in t[1].steps))
    expected = _results(model, enfa.make_plan(GRAPHS, policy, model, "full"))
    steps = np.random.default_rng(seed).permutation(np.arange(1, len(program.steps)))[:3]
    for step in steps.tolist():
        plan = enfa.make_plan(GRAPHS, policy, replace(program, unshared=step))
        plan = plan.map(lambda t: t.double() if t.is_floating_point() else t)
        for number, (of, table) in enumerate(zip(program.steps, plan.tables)):
            assert number < step or of.kind == "graphs" or plan.num_rows(number) == table.total
        for made in (plan, lean(prepare(plan, program.needs), program.needs)):
            torch.testing.assert_close(_results(model, made), expected, rtol=1e-10, atol=1e-10)


class Layers(nn.Module):
    """Convs of which each meets what it read: tables of pairs that are joined in every layer."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.embed = nn.Linear(4, 4)
        self.convs = nn.ModuleList(nn.Linear(4, 4) for _ in range(count))
        self.norms = nn.ModuleList(nn.BatchNorm1d(4) for _ in range(count))

    def forward(self, bag: Bag) -> torch.Tensor:
        h = self.embed(torch.cat([bag.x, bag.mark], 1))
        for linear, norm in zip(self.convs, self.norms):
            around = bag.spread(bag.diagonal(h))
            h = norm(linear(bag.propagate(SUM, h, along="subgraphs")) + bag.propagate(SUM, h) + around).relu()
        return bag.pool(bag.pool(h), "mean")


SUM = enfa.nn.convs.make_conv("gin", 4, 4, 0, None).double()


def test_more_steps_without_shared_rows_take_no_more_bytes() -> None:
    """Steps that read alike share their arrays; where rows are numbered alike, nothing is gathered."""
    sizes = []
    for count in (2, 5):
        model = Layers(count).double()
        program = replace(program_of(model, check_graphs(GRAPHS), EVERY["mark"], {}), unshared=1)
        plan = prepare(enfa.make_plan(GRAPHS, EVERY["mark"], program), program.needs)
        sizes.append(len(pack(lean(plan, program.needs))))
    assert sizes[0] == sizes[1]
