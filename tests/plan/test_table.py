"""The worked example of the plan's own page, number by number, and how tables hang together."""

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pytest
import torch
from bag_models import Context, Net
from torch import Tensor
from torch_geometric.data import Data

import enfa
from enfa.plan.links import Links, Sums
from enfa.plan.step import Program, Step
from enfa.testing import random_graphs

ONE_LAYER = Program((
    Step("start", "pairs"), Step("propagate", "pairs", (0,)), Step("pool", "subgraphs", (1,)), Step("pool", "graphs", (2,)),
))  # fmt: skip


def _lists(sums: Sums) -> list[list[tuple[int, int]]]:
    ptr, pairs = sums.ptr.tolist(), list(zip(sums.row.tolist(), sums.count.tolist()))
    return [pairs[a:b] for a, b in pairwise(ptr)]


def _added(entries: Iterable[tuple[Any, int]]) -> dict[Any, int]:
    found: Counter = Counter()
    for key, count in entries:
        found[key] += count
    return dict(found)


def test_worked_example() -> None:
    """Rows may be numbered in another order than the docstring's: they are told apart by their keys."""
    path = Data(x=torch.zeros(3, 1), edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
    plan = enfa.make_plan([path], enfa.NodeMarking(), ONE_LAYER)
    start = [plan.mark_rows[m].item() for m in plan.marked.tolist()]
    assert sorted(start) == [0.0, 1.0] and plan.x_rows[plan.feature].tolist() == [[0.0], [0.0]]
    _, rows, pool, graphs = plan.tables
    links = rows.links
    assert links is not None and rows.copies is not None and pool.sums is not None and pool.parts is not None
    ptr, incoming = links.in_ptr.tolist(), [start[r] for r in links.in_row.tolist()]
    keys = [(start[own], *sorted(incoming[ptr[r] : ptr[r + 1]])) for r, own in enumerate(links.self_row.tolist())]
    end, end_marked, middle, other_end, middle_marked = (0.0, 0.0), (1.0, 0.0), (0.0, 0.0, 1.0), (0.0, 1.0), (1.0, 0.0, 0.0)
    counted = {end: 2, end_marked: 2, middle: 2, other_end: 2, middle_marked: 1}
    assert dict(zip(keys, rows.copies.tolist())) == counted and len(keys) == 5
    assert (plan.num_pairs, len(links.in_row)) == (9, 7)
    lists = [_added((keys[row], count) for row, count in entries) for entries in _lists(pool.sums)]
    base, of_ends, of_middle = {end: 2}, {end: -1, end_marked: 1, middle: 1}, {end: -2, other_end: 2, middle_marked: 1}
    assert len(lists) == 3 and all(entry in lists for entry in (base, of_ends, of_middle))
    added = [_added(entry for n, _ in entries for entry in lists[n].items()) for entries in _lists(pool.parts)]
    assert pool.place is not None and pool.place.tolist()[0] == pool.place.tolist()[2] != pool.place.tolist()[1]
    assert +Counter(added[pool.place[0]]) == {end: 1, end_marked: 1, middle: 1}
    assert +Counter(added[pool.place[1]]) == {other_end: 2, middle_marked: 1}
    assert graphs.sums is not None and _added(_lists(graphs.sums)[0]) == {int(pool.place[0]): 2, int(pool.place[1]): 1}


@pytest.mark.parametrize("kind", ["full", "ego", "distinct"])
@pytest.mark.parametrize("model", [Net, Context])
def test_copies_add_up_to_the_conventional_rows(kind: str, model: type) -> None:
    """And the copies of a table are those of the tables that have its rows as own rows, summed."""
    graphs = random_graphs(4, 7, seed=2)
    plan = enfa.make_plan(graphs, enfa.NodeMarking(), model(), kind)
    totals = {"pairs": sum(g.num_nodes**2 for g in graphs), "nodes": sum(g.num_nodes for g in graphs)}
    totals["subgraphs"] = totals["nodes"]
    assert plan.num_pairs == totals["pairs"]
    for step, table in zip(plan.program.steps, plan.tables):
        if step.kind == "graphs":
            continue
        assert table.total == totals[step.kind]
        if table.copies is None:
            continue
        assert int(table.copies.sum()) == totals[step.kind] and int(table.copies.min()) >= 1
        for read, index in zip(step.reads, table.parents):
            below = plan.tables[read].copies
            if step.op in ("propagate", "join") and below is not None:
                summed = torch.zeros_like(below).index_add_(0, index.long(), table.copies.to(below.dtype))
                assert torch.equal(summed, below)


def test_numbers_beyond_32_bits_are_refused() -> None:
    long: Tensor = torch.tensor([0, 2**31])
    with pytest.raises(ValueError, match=r"Expected fewer than 2\^31 rows and messages in a plan, got 2147483648 in 'row'"):
        Sums(torch.tensor([0, 2]), long, torch.ones(2))
    with pytest.raises(ValueError, match="in 'in_row' of its Links: plan fewer graphs at a time"):
        Links(torch.zeros(1), torch.tensor([0, 2]), long, torch.zeros(2))
