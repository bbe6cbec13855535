"""Distinct rows of any program: each once, each counted, and keys of rows that exist."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
import torch
from bag_models import MODELS, ROOTED, Molecules, Net
from cases import EVERY
from drawn import OWN, Drawn
from torch import Tensor, nn
from torch_geometric.data import Data

import enfa
from enfa.edits import GraphView
from enfa.edits.check import edits_by
from enfa.graphs import check_graphs
from enfa.nn.bag import Bag, make_plan, trace
from enfa.nn.bag.pools import _written_out
from enfa.plan import hubs
from enfa.plan.steps.builder import start_kinds
from enfa.plan.steps.distinct import step_rows_of
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
    *((seed, name) for seed, name in enumerate([*EVERY, *EVERY])),  # drawn models
]
by_case = pytest.mark.parametrize(
    ("kind", "name"), CASES, ids=[f"{kind if isinstance(kind, int) else kind.__name__}-{name}" for kind, name in CASES]
)


def _model(kind: type[nn.Module] | int, name: str) -> tuple[nn.Module, list[Data]]:
    if isinstance(kind, int):
        return Drawn(kind, EVERY[name], 2, 4, name in OWN, name in OWN), _graphs(3, 2)
    return kind(EVERY[name].mark_channels), _graphs([3, 2], [3, 2]) if kind is Molecules else _graphs()


def _lists(ptr: Tensor, *columns: list) -> list[tuple]:
    """Of every list its entries, sorted."""
    entries = list(zip(*columns))
    return [tuple(sorted(entries[a:b])) for a, b in pairwise(ptr.tolist())]


def _keys(bag: Bag, number: int, names: list[list[int]]) -> list:
    """What every row of a step reads; ``names[r]``: the names of the rows of step r."""
    step, table = bag.program.steps[number], bag.tables[number]
    read = [names[r] for r in step.reads]
    if step.op == "start":
        graph = torch.zeros_like(bag.feature) if bag.of_graph is None else bag.of_graph
        degree = torch.zeros_like(bag.feature) if bag.degrees is None else bag.degrees
        return list(zip(map(tuple, bag.x_rows[bag.feature].tolist()), bag.marked.tolist(), graph.tolist(), degree.tolist()))
    if table.links is not None:
        links = table.links
        into = _lists(links.in_ptr, [read[0][r] for r in links.in_row.tolist()], links.in_edge.tolist())
        return [(read[0][own], items) for own, items in zip(links.self_row.tolist(), into)]
    if table.sums is not None:
        sums = _written_out(table, len(read[0]))
        named = [name for row, count in zip(sums.row.tolist(), sums.count.tolist()) for name in [read[0][row]] * count]
        ends = torch.cat([sums.count.new_zeros(1), sums.count.cumsum(0)])[sums.ptr]
        return _lists(ends, named)
    return list(zip(*([of[i] for i in index.tolist()] for of, index in zip(read, table.parents))))


@by_case
def test_rows_count_each_and_are_no_two_the_same(kind: type[nn.Module] | int, name: str) -> None:
    model, graphs = _model(kind, name)
    full, bag = (make_plan(graphs, EVERY[name], model, plan) for plan in ("full", "distinct"))
    edits = edits_by(EVERY[name], check_graphs(graphs))
    rows = [list(range(table.num_rows)) for table in bag.tables]
    classes: list[list[int]] = []  # by brute force: rows that read the same classes are of one class
    split = False  # whether a pool of pairs came before
    for number, (step, table) in enumerate(zip(bag.program.steps, bag.tables)):
        seen: dict = {}
        classes.append([seen.setdefault(key, len(seen)) for key in _keys(full, number, classes)])
        if step.kind == "graphs":
            continue
        assert table.copies is not None and len(table.copies) == table.num_rows
        assert bool((table.copies > 0).all()), f"{step}: a row stands for nothing"
        assert int(table.copies.sum()) == table.total == full.tables[number].total == len(classes[-1])
        keys = _keys(bag, number, rows)
        if table.parts is not None:
            # told apart within a graph alone: in another the same pool may be another base with another change of it
            assert table.place is not None
            split, graph = True, dict(zip(table.place.tolist(), edits.graph.tolist()))
            keys = [(key, graph[row]) for row, key in enumerate(keys)]
        assert len(set(keys)) == table.num_rows, f"{step}: a row is there twice"
        if not split:
            assert sorted(Counter(classes[-1]).values()) == sorted(table.copies.tolist()), step


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
