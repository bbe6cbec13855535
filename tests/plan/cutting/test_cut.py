"""A batch that is joined from runs is the sliced plan, number for number, whatever its graphs share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from bag_models import Net
from cases import POLICIES
from torch_geometric.data import Data

import enfa
from enfa.batch.compile import compile_program
from enfa.edits.check import edits_by
from enfa.graphs import check_graphs
from enfa.graphs.join import join as join_graphs
from enfa.nn.bag import Bag, trace
from enfa.plan.cutting.cut import MOST, Cutter, Join
from enfa.plan.derived.lists import list_sizes
from enfa.plan.derived.maps import merged_map, sums_map
from enfa.plan.derived.order import SparseMap
from enfa.plan.make import sources_of_steps
from enfa.plan.rows.distinct import step_rows_of
from enfa.plan.rows.merge import merge_steps
from enfa.plan.slicing.making import Making
from enfa.plan.slicing.slice import Slicer
from enfa.plan.slicing.sources import Bags
from enfa.plan.step import Program, Step
from enfa.plan.table import Plan
from enfa.testing import degenerate_graphs, random_graphs


def _chain(layers: int, *pooled: int, counted: bool = True, edges: bool = False) -> Program:
    """``pooled``: earlier tables that are pooled, too."""
    steps = (
        Step("start", "pairs"), *(Step("propagate", "pairs", (i,), edges=edges) for i in range(layers)),
        Step("pool", "subgraphs", (layers,)), Step("pool", "graphs", (layers + 1,)),
    )  # fmt: skip
    needs = {(i, "merged") for i in range(1, layers + 1)} | {(layers + 1, "sum"), (layers + 1, "sizes"), (layers + 2, "sum")}
    needs |= {(layers + 1, f"lowered {table}") for table in pooled}
    return Program(steps, counted=counted, needs=frozenset(needs))


PROGRAMS = {"last": _chain(3), "all tables": _chain(3, 1, 2), "one layer, uncounted": _chain(1, 0, counted=False)}
ALL = {**POLICIES, "ego nets": enfa.EgoNets(1), "ego nets, marked": enfa.EgoNets(2, mark=True)}


def _random(count: int) -> list[Data]:
    return random_graphs(count, 12, channels=[5, 3], edge_channels=[4, 3], seed=2)


DATASETS = {
    "few rows shared": lambda: random_graphs(8, 24, channels=[5, 3], edge_channels=[4, 3], seed=1),
    "each graph twice": lambda: [g for g in _random(4) for _ in range(2)],
    "one graph twice": lambda: [*_random(7), _random(7)[2]],
    "nothing but shared rows": lambda: [g for g in _random(2) for _ in range(4)],
    "degenerate ones": lambda: [*degenerate_graphs([5, 3], [4, 3]).values()][:8],
}
BATCHES = [[0, 2, 5, 7], [7, 6, 1, 0], [1, 0, 3, 2], [4, 2, 3, 6], [3], []]


def _slicer(graphs: list[Data], policy: enfa.Policy, program: Program) -> Slicer:
    return compile_program(graphs, policy, program, Bag, progress=False).slicer


def _sliced(slicer: Slicer, graphs: np.ndarray, joins: dict[tuple[int, str], Join], pool: int) -> Plan:
    """The plan of some graphs whose rows are numbered in the order that a cut has given them."""
    bags = Bags(slicer.sources, graphs)
    making = Making(slicer, bags)
    making.wanted[0].add(joins[1, "merged"].rows.rows)
    for number in range(1, pool):
        making.wanted[number].add(joins[number, "merged"].lists.rows)
    making.listing(pool).add(joins[pool, "sum"].lists.rows)
    tables = [making.table(number) for number in reversed(range(len(slicer.rows)))][::-1]
    return slicer.assembled(bags, making.wanted[0].rows, tables)


def _map(plan: Plan, number: int, name: str) -> SparseMap:
    table = plan.tables[number]
    if name == "merged":
        assert table.links is not None
        return merged_map(table.links, plan.num_rows(number - 1))
    if name == "sum":
        assert table.sums is not None
        return sums_map(table.sums, plan.num_rows(number - 1))
    return sums_map(table.cache[name], plan.num_rows(int(name.split()[1])))


def _written(join: Join, like: SparseMap, spare: int) -> list[list[Any]]:
    """A map in arrays that are longer than they must be, forwards and backwards."""
    into = []
    for lists in (like.forward, like.backward):
        held = [lists.ptr, lists.index, lists.weight, lists.other, lists.extra, lists.long]
        arrays = [None if t is None else np.full((*t.shape[:-1], t.shape[-1] + spare), 77, t.numpy().dtype) for t in held]
        into.append([*arrays, 5])
    assert join.write(np.empty(join.entries + 8, np.int32), into[0] + into[1])
    return into


def _check(cutter: Cutter, batches: list[list[int]]) -> list[float]:
    """Returns the parts of the rows of each table that lie in runs."""
    other = Slicer(cutter.slicer.rows, cutter.slicer.sources, Bag)  # a cut needs its own until it is written
    for chosen in batches:
        graphs = np.array(chosen, np.int64)
        cut = cutter.cut(graphs)
        plan = _sliced(other, graphs, cut.joins, cutter.pool)
        for key, join in cut.joins.items():
            expected = _map(plan, *key)
            assert join.entries == len(expected.forward.index) and join.rows.count == len(expected.backward)
            for found, wanted in zip(_written(join, expected, 3), (expected.forward, expected.backward)):
                ptr, index, weight, kind, extra, long, fill = found
                assert ptr.tolist() == [*wanted.ptr.tolist(), *[len(wanted.index)] * 3]
                assert index.tolist() == [*wanted.index.tolist(), *[fill] * 3]
                assert kind is None and (weight is None) == (wanted.weight is None)
                assert weight is None or wanted.weight is None or weight.tolist() == [*wanted.weight.tolist(), 0, 0, 0]
                for pieces, of in ((extra, wanted.extra), (long, wanted.long)):
                    assert pieces.tolist() == [[*line, 0, 0, 0] for line in of.tolist()]
        if (cutter.pool, "sizes") in cutter.needs:
            list_sizes(plan.tables[cutter.pool])
        for found, wanted in zip(_arrays(cut.plan), _arrays(plan), strict=True):  # maps have the same shapes
            assert (found is None) == (wanted is None)
            if found is not None and wanted is not None:
                assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
                assert found.is_meta or found.tolist() == wanted.tolist()
        assert (cut.plan.num_pairs, cut.plan.num_nodes, cut.plan.num_subgraphs) == (
            plan.num_pairs, plan.num_nodes, plan.num_subgraphs,
        )  # fmt: skip
        assert [table.total for table in cut.plan.tables] == [table.total for table in plan.tables]
    return [float((run.owner >= 0).any(axis=0).mean()) for run in cutter.runs.tables]


def _arrays(plan: Plan) -> list[torch.Tensor | None]:
    found = [plan.x_rows, plan.feature, plan.marked, plan.of_graph, plan.graph_ids]
    for table in plan.tables:
        found += [table.copies, table.place]
        found += [getattr(table.links, name) for name in ("self_row", "in_ptr", "in_row", "in_edge")] if table.links else []
        sums = [table.sums, table.parts, *(table.cache.get(f"lowered {i}") for i in range(9))]
        found += [getattr(of, name) for of in sums if of is not None for name in ("ptr", "row", "count")]
        found.append(table.cache.get("sizes"))
    return found


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize("policy", ALL)
def test_cuts_are_slices(policy: str, dataset: str, name: str) -> None:
    program = PROGRAMS[name]
    slicer = _slicer(DATASETS[dataset](), ALL[policy], program)
    assert Cutter.takes(slicer, program.needs)
    cutter = Cutter(slicer, program.needs)
    inside = _check(cutter, BATCHES)
    if name != "one layer, uncounted":
        if dataset in ("few rows shared", "each graph twice"):
            assert inside[-1] > 0.3
        if dataset == "each graph twice":  # both of a pair have runs
            owner = cutter.runs.tables[-1].owner
            assert (owner[0] >= 0).mean() == (owner[1] >= 0).mean() == inside[-1]
    if dataset == "nothing but shared rows":
        assert max(inside) == 0


def test_after_extending() -> None:
    """Rows of a graph do not lie side by side any more."""
    program, policy = PROGRAMS["all tables"], enfa.NodeMarking()
    slicer = _slicer(_random(8), policy, program)
    before = _check(Cutter(slicer, program.needs), BATCHES)
    more = [*_random(3), *random_graphs(5, 12, channels=[5, 3], edge_channels=[4, 3], seed=9)]
    both = join_graphs(check_graphs(_random(8)), check_graphs(more))
    edits = edits_by(policy, both)
    sources, start = sources_of_steps(both, edits, program)
    new = np.arange(8, 16)
    added = step_rows_of(both.subset(new), edits.subset(both, new), program, start[both.node_ptr[8] :])
    merge_steps(slicer.rows, added, program)
    after = _check(Cutter(Slicer(slicer.rows, sources, Bag), program.needs), [*BATCHES, [0, 8, 11, 15], [9, 12, 13, 1]])
    assert 0 < after[-1] < before[-1]


def test_what_is_taken() -> None:
    program = PROGRAMS["all tables"]
    slicer = _slicer(_random(4), enfa.NodeMarking(), program)
    assert Cutter.takes(slicer, program.needs)
    assert Cutter.takes(slicer, program.needs | {(-1, "feature"), (5, "sizes")})
    for more in ((2, "self_row"), (1, "identity"), (4, "written out"), (0, "places")):
        assert not Cutter.takes(slicer, program.needs | {more})
    assert not Cutter.takes(slicer, program.needs - {(2, "merged")})
    for other in (_chain(2, edges=True), replace(program, steps=(*program.steps, Step("pool", "subgraphs", (1,))))):
        assert not Cutter.takes(_slicer(_random(4), enfa.NodeMarking(), other), other.needs)


@pytest.mark.parametrize("table", ["a layer", "lists"])
def test_a_large_dataset_is_sliced(table: str) -> None:
    """All its lists in memory once more would cost more than they save."""
    program = PROGRAMS["last"]
    slicer = _slicer(_random(4), enfa.NodeMarking(), program)
    keys = slicer.rows[2].keys if table == "a layer" else slicer.rows[4].lists
    assert keys is not None
    for items, taken in ((MOST - 10_000, True), (MOST, False)):
        keys.size[1] = items
        assert Cutter.takes(slicer, program.needs) is taken


def test_rows_that_are_numbered_otherwise_are_the_same_rows() -> None:
    """Numbering with and without runs gives equal predictions, and as many rows."""
    graphs = [g for g in random_graphs(4, 12, seed=2) for _ in range(2)]
    model = Net().double().eval()
    program = trace(model, check_graphs(graphs), enfa.NodeMarking())
    slicer = compile_program(graphs, enfa.NodeMarking(), program, Bag, progress=False, dtype=np.float64).slicer
    cutter = Cutter(slicer, program.needs)
    for chosen in ([0, 2, 5, 7], [7, 6, 1, 0]):
        one: Any = slicer.plan(np.array(chosen))
        other: Any = _sliced(slicer, np.array(chosen), cutter.cut(np.array(chosen)).joins, cutter.pool)
        assert one.cost() == other.cost()
        torch.testing.assert_close(model(one), model(other), rtol=1e-10, atol=1e-10)
