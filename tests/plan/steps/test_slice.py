"""Plans cut out of the rows of many graphs are those of the graphs alone."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from cases import EVERY
from drawn import OWN, Drawn
from torch import nn

import enfa
from enfa.batch.programs import in_precision
from enfa.edits.check import edits_by
from enfa.graphs import check_graphs
from enfa.nn.bag import Bag, make_plan, trace
from enfa.plan.steps.distinct import step_rows_of
from enfa.plan.steps.make import sources_of_steps
from enfa.plan.steps.slice import StepSlicer
from enfa.testing import degenerate_graphs, random_graphs

GRAPHS = random_graphs(6, 7, seed=1, edge_channels=2) + list(degenerate_graphs(3, 2).values())
# those that draw by the place of a graph in its dataset have other subgraphs in a slice
NAMES = [name for name, policy in EVERY.items() if not isinstance(policy, enfa.Subsample)]


def _slicer(model: nn.Module, policy: enfa.Policy) -> StepSlicer:
    checked = check_graphs(GRAPHS)
    graphs, edits = in_precision(checked, edits_by(policy, checked), np.float64)
    program = trace(model, checked, policy)
    sources, start = sources_of_steps(graphs, edits, program)
    return StepSlicer(step_rows_of(graphs, edits, program, start), sources, Bag)


def _run(model: nn.Module, bag: Bag) -> tuple[torch.Tensor, list[torch.Tensor]]:
    model = copy.deepcopy(model)
    out = model(bag)
    out.square().sum().backward()
    return out.detach(), [p.grad for p in model.parameters() if p.grad is not None]


@pytest.mark.parametrize(("seed", "name"), list(enumerate([*NAMES, *NAMES])))
def test_slices_are_plans_of_their_graphs(seed: int, name: str) -> None:
    """Of random graphs in random order, one after the other out of the same slicer."""
    model = Drawn(100 + seed, EVERY[name], 2, 4, name in OWN, name in OWN).double()
    slicer, rng = _slicer(model, EVERY[name]), np.random.default_rng(seed)
    several = [rng.permutation(len(GRAPHS))[: rng.integers(3, len(GRAPHS) + 1)] for _ in range(4)]
    for chosen in (*several, several[0], np.arange(len(GRAPHS))):
        found = slicer.plan(chosen)
        alone = make_plan([GRAPHS[g] for g in chosen], EVERY[name], model)
        for step, mine, theirs in zip(found.program.steps, found.tables, alone.tables, strict=True):
            assert (mine.num_rows, mine.total) == (theirs.num_rows, theirs.total), step
            assert mine.copies is None or sorted(mine.copies.tolist()) == sorted(theirs.copies.tolist()), step
        assert found.graph_ids is not None and found.graph_ids.tolist() == chosen.tolist()
        assert (found.num_nodes, found.num_subgraphs) == (alone.num_nodes, alone.num_subgraphs)
        torch.testing.assert_close(_run(model, found), _run(model, alone), rtol=1e-10, atol=1e-10)


def test_a_slice_of_one_graph_or_of_none() -> None:
    model = Drawn(3, EVERY["mark"], 2, 4, True, True).double().eval()
    slicer = _slicer(model, EVERY["mark"])
    every = model(slicer.plan(np.arange(len(GRAPHS))))
    for g in range(len(GRAPHS)):
        torch.testing.assert_close(model(slicer.plan(np.array([g]))), every[g : g + 1], rtol=1e-10, atol=1e-10)
    assert model(slicer.plan(np.empty(0, np.int64))).shape == (0, 2)
