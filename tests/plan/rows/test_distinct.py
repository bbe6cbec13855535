"""Distinct rows of any program: each once, each counted, and keys of rows that exist."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch
from bag_models import MODELS, ROOTED, Egos, Molecules, Net
from cases import EVERY
from drawn import OWN, Drawn
from step_rows import Numbers, check_step_rows, plan_of, written_out
from torch import Tensor, nn
from torch_geometric.data import Data

import enfa
from enfa.datasets import from_npz
from enfa.edits import GraphView
from enfa.edits.check import edits_by
from enfa.graphs import check_graphs
from enfa.nn.bag import make_plan, trace
from enfa.plan.check import KINDS
from enfa.plan.rows import hubs
from enfa.plan.rows.builder import start_kinds
from enfa.plan.rows.distinct import step_rows_of
from enfa.plan.step import Program, Step
from enfa.plan.table import Table
from enfa.testing import degenerate_graphs, random_graphs


def _graphs(channels: int | list[int] = 3, edge_channels: int | list[int] | None = None) -> list[Data]:
    options = {"channels": channels, "edge_channels": edge_channels}
    same = random_graphs(2, 6, seed=3, **options)
    for graph in same:
        graph.x = torch.ones_like(graph.x)
    return random_graphs(3, 7, seed=1, **options) + same + list(degenerate_graphs(channels, edge_channels).values()) + same[:1]


CASES: list[tuple[type[nn.Module] | int, str]] = [
    *((kind, name) for kind in MODELS for name in ("mark", "mixed", "ego mark")),
    *((kind, name) for kind in ROOTED for name in ("mark", "ego", "ego isolate")),
    *((Egos, name) for name in ("ego", "some marked", "edge")),
    *((seed, name) for seed, name in enumerate([*EVERY, *EVERY])),  # drawn models
]
by_case = pytest.mark.parametrize(
    ("kind", "name"), CASES, ids=[f"{kind if isinstance(kind, int) else kind.__name__}-{name}" for kind, name in CASES]
)


def _model(kind: type[nn.Module] | int, name: str) -> tuple[nn.Module, list[Data]]:
    if isinstance(kind, int):
        return Drawn(kind, EVERY[name], 2, 4, name in OWN, name in OWN), _graphs(3, 2)
    return kind(EVERY[name].mark_channels), _graphs([3, 2], [3, 2]) if kind is Molecules else _graphs()


@cache
def _written(kind: type[nn.Module] | int, name: str) -> tuple[list[Data], Program, Numbers, list[list[int]]]:
    """Graphs, the model's steps, and all rows by brute force: once for every plan."""
    model, graphs = _model(kind, name)
    program, numbers = trace(model, graphs, EVERY[name]), Numbers()
    return graphs, program, numbers, written_out(numbers, graphs, EVERY[name], program)


@by_case
@pytest.mark.parametrize("plan", KINDS)
def test_rows_are_those_of_brute_force(plan: str, kind: type[nn.Module] | int, name: str) -> None:
    graphs, program, numbers, expected = _written(kind, name)
    check_step_rows(plan_of(graphs, EVERY[name], program, plan), numbers, expected)


@by_case
def test_so_they_are_where_rows_are_not_counted(kind: type[nn.Module] | int, name: str) -> None:
    """And no pairs are there that nothing reads."""
    graphs, program, numbers, expected = _written(kind, name)
    program = replace(program, counted=False)
    bag = plan_of(graphs, EVERY[name], program)
    check_step_rows(bag, numbers, expected)
    for number, step in enumerate(program.steps):
        if step.kind == "pairs":
            reads = [(later, bag.tables[n]) for n, later in enumerate(program.steps) if number in later.reads]
            named = [t for later, other in reads for t in _named(other, later.reads.index(number))]
            assert torch.cat([torch.zeros(0), *named]).unique().tolist() == list(range(bag.num_rows(number))), step


def _named(table: Table, side: int) -> list[Tensor]:
    """The rows that a table names of the first or second step that it reads."""
    if table.links is not None:
        return [table.links.self_row, table.links.in_row]
    return [table.parents[side]] if table.sums is None else [table.sums.row]


def _ds(layers: int) -> Program:
    """A DS-GNN, with a BatchNorm."""
    steps = [Step("start", "pairs"), *(Step("propagate", "pairs", (i,)) for i in range(layers))]
    return Program((*steps, Step("pool", "subgraphs", (layers,)), Step("pool", "graphs", (layers + 1,))))


@pytest.mark.parametrize(
    ("file", "policy", "rows"),
    [
        ("PROTEINS.npz", enfa.NodeMarking(), [1196, 231350, 556880, 820579]),
        ("CEXP.npz", enfa.EdgeDeletion(), [18, 957, 48239, 205365]),
    ],
)
def test_counts_on_real_data(shared_data: Path, file: str, policy: enfa.Policy, rows: list[int]) -> None:
    """The node label is the one categorical feature. More rows would be a defect; so would fewer: a wrong merge."""
    graphs = from_npz(shared_data / file).graphs
    assert graphs[0].x.shape[1] == 1
    assert make_plan(graphs, policy, _ds(4)).cost().rows == rows


@by_case
def test_keys_name_rows_that_exist(kind: type[nn.Module] | int, name: str) -> None:
    """Also those of rows that no plan will have: merging translates them all."""
    model, graphs = _model(kind, name)
    checked = check_graphs(graphs[-3:])
    program = trace(model, checked, EVERY[name])
    rows = step_rows_of(checked, edits_by(EVERY[name], checked), program, start_kinds(checked, program.share)[0])
    for step, found in zip(program.steps[1:], rows[1:]):
        assert step.item is not None
        item = len(rows[step.item].keys)
        tables = [(found.keys.own, 1 if step.own is None else len(rows[step.own].keys))]
        tables.append((found.keys.a, item if found.lists is None else len(found.lists)))
        if found.lists is not None:
            tables.append((found.lists.a, item))
        for numbers, limit in tables:
            assert not len(numbers) or 0 <= numbers.min() <= numbers.max() < limit, step


def _ring(nodes: int) -> Data:
    there = torch.stack([torch.arange(nodes), (torch.arange(nodes) + 1) % nodes])
    return Data(x=torch.zeros(nodes, 3), edge_index=torch.cat([there, there.flip(0)], 1))


def test_ego_rows_are_those_within_some_hops_of_an_edit_and_those_of_the_graph() -> None:
    """Eq. 3-5: on a ring of 20, 2 i + 1 rows of every subgraph after i rounds, and one for each node."""
    bag = make_plan([_ring(20)], enfa.NodeMarking(), Net(), "ego")
    for i, table in enumerate(bag.tables[:5]):
        assert table.num_rows == 20 * (2 * i + 1) + 20 and table.copies is not None and table.total == 20 * 20
        assert sorted(table.copies.tolist()) == [1] * (20 * (2 * i + 1)) + [20 - (2 * i + 1)] * 20
    assert bag.kind == "ego" and bag.cost().edges == [2 * rows for rows in bag.cost().rows]


class _Twice(enfa.Policy):
    """Two subgraphs that are the same."""

    def bag(self, graph: GraphView) -> list[enfa.Subgraph]:
        return [enfa.Subgraph().delete_node(1), enfa.Subgraph().delete_node(1)]


def test_ego_rows_of_hubs_are_not_shared() -> None:
    """Though they are changed in the same way."""
    leaves = torch.arange(1, 101)
    there = torch.stack([leaves, torch.zeros_like(leaves)])
    star = Data(x=torch.zeros(101, 3), edge_index=torch.cat([there, there.flip(0)], 1))
    ego, distinct = (make_plan([star], _Twice(), Net(), kind) for kind in ("ego", "distinct"))
    assert (ego.tables[1].num_rows, distinct.tables[1].num_rows) == (99 + 2, 1 + 1)


def test_too_many_pairs_are_refused_before_they_are_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hubs, "STORED", 30)
    model = next(kind for kind in ROOTED if kind.__name__ == "Rooted")()
    with pytest.raises(ValueError, match=r"^Expected at most 30 \(subgraph, node\) pairs to write out .*, got 36: "):
        make_plan([enfa.testing.random_graph(6, 0)], enfa.NodeMarking(), model)
