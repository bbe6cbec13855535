"""Plans of parts of bags are those of the drawn subgraphs: they give what full plans of these give."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from bag_models import ROOTED, Egos, Net
from cases import EVERY
from torch import Tensor, nn
from torch_geometric.nn import MLP, GINConv, GINEConv

import enfa
from enfa.batch.compile import compile_program, in_precision
from enfa.edits import Edits
from enfa.edits.check import edits_by
from enfa.graphs import GraphSet, check_graphs
from enfa.nn.bag import Bag, trace
from enfa.plan.reference.full import full_step_plan
from enfa.plan.slicing.slice import Slicer
from enfa.plan.step import Program
from enfa.plan.table import Plan
from enfa.testing import degenerate_graphs, random_graphs

GRAPHS = random_graphs(6, 8, seed=1, edge_channels=2) + list(degenerate_graphs(3, 2).values())


class Several(nn.Module):
    """Pools of several tables, a subgraph's row for all its nodes, edges, joins."""

    def __init__(self, marks: int, edge_marks: int, norm: type[nn.Module] = nn.BatchNorm1d) -> None:
        super().__init__()
        self.embed, self.edge = nn.Linear(3 + marks, 6), nn.Linear(2 + edge_marks, 6)
        self.convs = nn.ModuleList([GINConv(MLP([6, 6], norm=None)), GINEConv(MLP([6, 6], norm=None))] * 2)
        self.norms = nn.ModuleList(norm(6) for _ in range(5))
        self.head = nn.Linear(12, 2)

    def forward(self, bag: Any) -> Tensor:
        edge = self.edge(torch.cat([bag.edge_attr, bag.edge_mark], 1))
        h = first = self.norms[0](bag.propagate(self.convs[0], self.embed(torch.cat([bag.x, bag.mark], 1)))).relu()
        h = self.norms[1](bag.propagate(self.convs[1], h, edge)).relu()
        h = h + self.norms[2](bag.spread(bag.pool(first, "mean")))
        h = self.norms[3](bag.propagate(self.convs[2], h)).relu()
        pooled = torch.cat([bag.pool(h), self.norms[4](bag.pool(first, "mean"))], 1)
        return self.head(bag.pool(pooled, "mean"))


def _compiled(model: nn.Module, policy: enfa.Policy, **changes: Any) -> tuple[Slicer, Program, GraphSet, Edits]:
    checked = check_graphs(GRAPHS)
    graphs, edits = in_precision(checked, edits_by(policy, checked), np.float64)
    program = replace(trace(model, checked, policy), **changes)
    compiled = compile_program(GRAPHS, policy, program, Bag, progress=False, dtype=np.float64)
    return compiled.slicer, program, graphs, edits


def _draw(rng: np.random.Generator, sub_ptr: np.ndarray, graphs: np.ndarray) -> np.ndarray:
    """None, one or several of each bag; two, for BatchNorm, of all."""
    counts = [2, *rng.integers(0, 4, len(graphs) - 1)]
    return np.concatenate([rng.permutation(np.arange(*sub_ptr[g : g + 2]))[:n] for g, n in zip(graphs, counts)])


def _run(model: nn.Module, plan: Plan) -> tuple[Tensor, list[Tensor]]:
    model = copy.deepcopy(model)
    out = model(plan)
    out.square().sum().backward()
    return out.detach(), [p.grad for p in model.parameters() if p.grad is not None]


@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize("name", EVERY)
def test_parts_of_bags(name: str, counted: bool) -> None:
    policy, rng = EVERY[name], np.random.default_rng(3)
    torch.manual_seed(0)
    model = Several(policy.mark_channels, policy.edge_mark_channels, nn.BatchNorm1d if counted else nn.LayerNorm).double()
    slicer, program, graphs, edits = _compiled(model, policy, counted=counted)
    for chosen in (np.arange(len(GRAPHS)), rng.permutation(len(GRAPHS))[:7], np.array([1, 0])):
        subs = _draw(rng, edits.sub_ptr, chosen)
        found = slicer.plan(chosen, subs)
        full: Any = full_step_plan(graphs.subset(chosen), edits.subset(graphs, chosen, subs), program, Bag)
        assert [table.total for table in found.tables] == [table.total for table in full.tables]
        assert (found.num_subgraphs, found.num_pairs) == (len(subs), full.num_pairs)
        for table in found.tables:
            assert table.copies is None or (int(table.copies.min()) > 0 and int(table.copies.sum()) == table.total)
        torch.testing.assert_close(_run(model, found), _run(model, full), rtol=1e-10, atol=1e-10)
        for pool, lists in ((n, t.sums) for n, t in enumerate(found.tables) if t.parts is not None and t.sums is not None):
            there = set(lists.row.tolist())
            assert len(there) == found.tables[program.steps[pool].reads[0]].num_rows  # all that are there, and no others
    bags = np.concatenate([np.arange(*edits.sub_ptr[g : g + 2]) for g in chosen])
    assert slicer.plan(chosen).cost().rows == slicer.plan(chosen, bags).cost().rows


def test_lists_over_earlier_tables_are_those_of_the_part() -> None:
    model, needs = Net().double().eval(), frozenset((5, f"lowered {table}") for table in (1, 2, 3))
    slicer, _, _, edits = _compiled(model, enfa.NodeMarking(), needs=needs)
    plan = slicer.plan(np.array([2, 0]), np.array([edits.sub_ptr[2], edits.sub_ptr[0] + 1, edits.sub_ptr[0] + 2]))
    lists = [*(plan.tables[5].cache[f"lowered {table}"] for table in (1, 2, 3)), plan.tables[5].sums]
    for number, sums in enumerate(lists, 1):
        assert sorted(set(sums.row.tolist())) == list(range(plan.tables[number].num_rows)), number


def test_draws_are_checked() -> None:
    slicer, _, _, edits = _compiled(Net(), enfa.NodeMarking())
    for subs in ([0, 0], [int(edits.sub_ptr[-1])], [int(edits.sub_ptr[1])]):
        with pytest.raises(ValueError, match="Expected"):
            slicer.plan(np.array([0]), np.array(subs))


class _Root(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = GINConv(MLP([4, 6])), nn.BatchNorm1d(6)

    def forward(self, bag: Any) -> Tensor:
        return bag.pool(bag.root(self.norm(bag.propagate(self.conv, torch.cat([bag.x, bag.mark], 1)))))


def test_models_that_mix_subgraphs_are_refused() -> None:
    for kind in (*ROOTED, Egos):
        slicer = _compiled(kind(), enfa.NodeMarking())[0]
        steps = slicer.sources.program.steps
        if any(step.kind == "nodes" or step.along == "subgraphs" for step in steps):
            with pytest.raises(ValueError, match=r"Expected whole bags, because step \d+ .* ahead=False"):
                slicer.plan(np.array([0]), np.array([0]))
    slicer = _compiled(_Root(), enfa.NodeMarking())[0]
    with pytest.raises(ValueError, match=r"counts the rows of step 1 \(propagate 0\).* ahead=False"):
        slicer.plan(np.array([0]), np.array([0]))
    uncounted = _compiled(_Root(), enfa.NodeMarking(), counted=False)[0].plan(np.array([0]), np.array([0]))
    assert uncounted.tables[1].num_rows == 1  # what the root of one subgraph is
