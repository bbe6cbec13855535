"""Plans cut out of the rows of many graphs are those of the graphs alone."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
import torch
from cases import EVERY
from drawn import OWN, Drawn
from torch import nn

import enfa
from enfa.batch.compile import in_precision
from enfa.edits.check import edits_by
from enfa.graphs import check_graphs
from enfa.nn.bag import Bag, trace
from enfa.plan.arrays import Arrays
from enfa.plan.make import sources_of_steps
from enfa.plan.rows.distinct import step_rows_of
from enfa.plan.slicing.slice import Slicer
from enfa.testing import degenerate_graphs, random_graphs

GRAPHS = random_graphs(6, 7, seed=1, edge_channels=2) + list(degenerate_graphs(3, 2).values())
GRAPHS.append(GRAPHS[0])
# those that draw by the place of a graph in its dataset have other subgraphs in a slice
NAMES = [name for name, policy in EVERY.items() if not isinstance(policy, enfa.Subsample)]


def _slicer(model: nn.Module, policy: enfa.Policy, chosen: Sequence[int] = range(len(GRAPHS)), **changes: Any) -> Slicer:
    checked = check_graphs([GRAPHS[g] for g in chosen])
    graphs, edits = in_precision(checked, edits_by(policy, checked), np.float64)
    program = replace(trace(model, checked, policy), **changes)
    sources, start = sources_of_steps(graphs, edits, program)
    return Slicer(step_rows_of(graphs, edits, program, start), sources, Bag)


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
        found: Any = slicer.plan(chosen)
        alone: Any = _slicer(model, EVERY[name], chosen).plan(np.arange(len(chosen)))
        for number, (mine, theirs) in enumerate(zip(found.tables, alone.tables, strict=True)):
            step = found.program.steps[number]
            assert (found.num_rows(number), mine.total) == (alone.num_rows(number), theirs.total), step
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


@pytest.mark.parametrize(("seed", "name"), list(enumerate(["mark", "delete", "mixed", "ego mark", "ego"])))
def test_what_is_not_counted_is_as_exact(seed: int, name: str) -> None:
    """No table has copies, and totals are known all the same."""
    model = Drawn(200 + seed, EVERY[name], 2, 4, name in OWN, name in OWN).double().eval()
    counting, slicer = (_slicer(model, EVERY[name], counted=counted) for counted in (True, False))
    for chosen in (np.arange(len(GRAPHS)), np.array([5, 2, 11]), np.array([0])):
        expected, found = counting.plan(chosen), slicer.plan(chosen)
        assert all(table.copies is None for table in found.tables)
        assert [table.total for table in found.tables] == [table.total for table in expected.tables]
        assert found.num_pairs == expected.num_pairs == int(expected.tables[0].copies.sum())
        for number in range(len(found.tables)):
            assert found.num_rows(number) <= expected.num_rows(number)
        torch.testing.assert_close(_run(model, found), _run(model, expected), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("counted", [True, False])
def test_plans_of_a_dataset_differ_in_nothing_but_sizes(counted: bool) -> None:
    """Which is why they can be padded into the same arrays. Equal graphs are rows of their own."""
    model = Drawn(5, EVERY["mark"], 2, 6, True, True).double()
    slicer = _slicer(model, EVERY["mark"], counted=counted)

    def shape(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.dtype, value.shape[1:]
        if isinstance(value, Arrays):
            return {f.name: shape(getattr(value, f.name)) for f in fields(value)}
        if isinstance(value, (list, dict)):
            return [shape(v) for v in value] if isinstance(value, list) else {k: shape(v) for k, v in value.items()}
        return type(value)

    every = [slicer.plan(np.array(chosen, np.int64)) for chosen in ([], [0], [7, 3], range(len(GRAPHS)))]
    assert all(shape(plan) == shape(every[-1]) for plan in every)
    for plan in every:
        for step, table in zip(plan.program.steps, plan.tables):
            assert (table.place is None) == (step.kind in ("pairs", "graphs"))
            assert step.kind != "graphs" or table.num_rows == plan.num_graphs
