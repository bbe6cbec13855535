"""What every row of a program is computed from, as nested tuples: written in plain Python, twice.

:func:`written_out` starts from explicit subgraphs, :func:`of_plan` from a plan's arrays. Both number their tuples in one
dictionary, where Python compares them exactly; so two rows get one number if and only if they are the same row.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import torch
from explicit import ExplicitBag, plain
from torch import Tensor
from torch_geometric.data import Data

import enfa
from enfa.edits.check import edits_by
from enfa.graphs import check_graphs
from enfa.nn.bag import Bag
from enfa.plan.links import Sums
from enfa.plan.make import step_plan_of
from enfa.plan.step import Program
from enfa.plan.table import Plan


class Numbers:
    """Tuple -> number."""

    def __init__(self) -> None:
        self.of: dict[Any, int] = {}

    def __call__(self, *key: Any) -> int:
        return self.of.setdefault(key, len(self.of))

    def messages(self, own: int, incoming: list[tuple[int, Any]]) -> int:
        return self("messages", own, tuple(sorted(incoming)))

    def listed(self, rows: Counter) -> int:
        return self("listed", tuple(sorted((+rows).items())))


def _tuples(rows: Tensor | None, count: int) -> list[tuple]:
    return [()] * count if rows is None else list(map(tuple, plain(rows).tolist()))


def written_out(number: Numbers, graphs: list[Data], policy: enfa.Policy, program: Program) -> list[list[int]]:
    """For every step the rows of all pairs, nodes, subgraphs or graphs."""
    bag: Any = ExplicitBag(graphs, policy, torch.float32)
    graph_of = {v: g for g, nodes in enumerate(bag.nodes_of) for v in nodes}
    kinds = list(zip(_tuples(getattr(bag, "edge_attr", None), len(bag.edge_mark)), _tuples(bag.edge_mark, 0)))
    found: list[list[int]] = []
    for step in program.steps:
        read, kind = [found[r] for r in step.reads], program.steps[step.reads[0]].kind if step.reads else None
        if step.op == "start":
            degree = torch.bincount(bag.edges["pairs"][1], minlength=len(bag.pairs)).tolist()
            graph = [graph_of[v] if program.share == "graph" else 0 for _, v in bag.pairs]
            more = [(d if step.degrees else 0, g) for d, g in zip(degree, graph)]
            rows = [number("start", *key) for key in zip(_tuples(bag.x, 0), _tuples(bag.mark, 0), more)]
        elif step.op == "propagate":
            name = "subgraphs" if step.along == "subgraphs" else step.kind
            into: list[list] = [[] for _ in read[0]]
            for (u, v), of_edge in zip(bag.edges[name].T.tolist(), kinds[bag.edge_range[name]]):
                into[v].append((read[0][u], of_edge if step.edges else ()))
            rows = [number.messages(own, incoming) for own, incoming in zip(read[0], into)]
        elif step.op == "join":
            rows = [number("join", *both) for both in zip(*read)]
        elif step.op == "diagonal":
            rows = [number("read", read[0][bag.place[s, v]]) for v, s in sorted(bag._own().items())]
        elif step.op == "spread":
            rows = [number("read", read[0][{"nodes": v, "subgraphs": s}.get(kind, graph_of[v])]) for s, v in bag.pairs]
        else:
            counts = {"nodes": bag.num_nodes, "subgraphs": len(bag.of_graph), "graphs": len(graphs)}
            lists: list[Counter] = [Counter() for _ in range(counts[step.kind])]
            for i, row in enumerate(read[0]):
                if (kind, step.kind) == ("subgraphs", "nodes"):
                    for v in set(bag.roots[i]):
                        lists[v][row] += 1
                elif kind == "pairs":
                    s, v = bag.pairs[i]
                    often = bag.roots[s].count(v) if step.op == "root" else 1  # a loop has its node at both ends
                    if often:
                        lists[v if step.op == "across" else s][row] += often
                else:
                    lists[bag.of_graph[i] if kind == "subgraphs" else graph_of[i]][row] += 1
            rows = list(map(number.listed, lists))
        found.append(rows)
    return found


def _lists(sums: Sums, read: list[Counter]) -> list[Counter]:
    found, entries = [], list(zip(sums.row.tolist(), sums.count.tolist()))
    for begin, end in pairwise(sums.ptr.tolist()):
        one: Counter = Counter()
        for row, count in entries[begin:end]:
            for name, often in read[row].items():
                one[name] += count * often
        found.append(one)
    return found


def of_plan(number: Numbers, plan: Plan) -> list[list[int]]:
    """The number of every row of every table."""
    kinds = list(zip(_tuples(plan.edge_rows, len(plan.edge_mark_rows)), _tuples(plan.edge_mark_rows, 0)))
    found: list[list[int]] = []
    for step, table in zip(plan.program.steps, plan.tables):
        read = [found[r] for r in step.reads]
        if step.op == "start":
            zero = torch.zeros_like(plan.feature)
            more = torch.stack([zero if t is None else t for t in (plan.degrees, plan.of_graph)], 1)
            keys = zip(_tuples(plan.x_rows[plan.feature], 0), _tuples(plan.mark_rows[plan.marked], 0), _tuples(more, 0))
            rows = [number("start", *key) for key in keys]
        elif table.links is not None:
            links = table.links
            messages = zip(links.in_row.tolist(), links.in_edge.tolist())
            entries = [(read[0][r], kinds[k] if step.edges else ()) for r, k in messages]
            ends = pairwise(links.in_ptr.tolist())
            rows = [number.messages(read[0][own], entries[a:b]) for own, (a, b) in zip(links.self_row.tolist(), ends)]
        elif table.sums is not None:
            lists = _lists(table.sums, [Counter([name]) for name in read[0]])
            rows = list(map(number.listed, lists if table.parts is None else _lists(table.parts, lists)))
        else:
            of = [[names[i] for i in index.tolist()] for names, index in zip(read, table.parents)]
            rows = [number("join" if step.op == "join" else "read", *key) for key in zip(*of)]
        found.append(rows)
    return found


def plan_of(graphs: list[Data], policy: enfa.Policy, program: Program, kind: str = "distinct") -> Bag:
    """As make_plan, but also where a policy marks edges that the program does not read."""
    checked = check_graphs(graphs)
    plan = step_plan_of(checked, edits_by(policy, checked), program, kind, Bag)
    assert isinstance(plan, Bag)
    return plan


def check_step_rows(plan: Plan, numbers: Numbers, expected: list[list[int]]) -> None:
    """No two different rows merged; in a distinct plan, no two equal rows kept apart; all counts and places right.

    ``expected``: what is :func:`written_out` with these numbers, of the plan's graphs, policy and steps.
    """
    found = of_plan(numbers, plan)
    split = False  # behind a pool of pairs, which other changes of another graph's pool may make: rows may be equal
    for number, (step, table, rows, right) in enumerate(zip(plan.program.steps, plan.tables, found, expected, strict=True)):
        assert plan.num_rows(number) == len(rows) and table.total == len(right), step
        split |= table.parts is not None
        if step.kind == "graphs":
            assert rows == right, step
            continue
        if table.place is not None:
            assert [rows[i] for i in table.place.tolist()] == right, step
        assert set(rows) <= set(right), step
        if plan.program.counted:
            assert table.copies is not None and bool((table.copies > 0).all()), f"{step}: a row stands for nothing"
            counts: Counter = Counter()
            for row, copies in zip(rows, table.copies.tolist(), strict=True):
                counts[row] += copies
            assert counts == Counter(right), f"{step}: copies"
        if plan.kind == "distinct" and not split:
            assert len(set(rows)) == len(rows), f"{step}: equal rows kept apart"
