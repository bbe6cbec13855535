"""The full plan of any program: every pair, node and subgraph is a row of its own. The reference for everything else."""

from typing import Any

import numpy as np
import torch

from enfa.edits import Edits
from enfa.graphs import GraphSet
from enfa.graphs.graphset import ranges
from enfa.plan.arrays import tensor
from enfa.plan.kinds_read import edge_rows_read
from enfa.plan.links import Links, Sums
from enfa.plan.reference.expand import Expanded, edge_tables, expand, largest_value
from enfa.plan.reference.loops import check_loops
from enfa.plan.reference.roots import about_nodes, own_subgraphs, rooted, single_roots
from enfa.plan.step import Program, Step
from enfa.plan.table import Plan, Table

__all__ = ["Written", "edge_tables_of", "full_step_plan", "full_table"]


def _lists(ptr: np.ndarray, row: np.ndarray) -> Sums:
    return Sums(tensor(ptr), tensor(row), torch.ones(len(row), dtype=torch.int32))


class Written:
    """All subgraphs of some graphs, written out, and whatever steps ask of them."""

    def __init__(self, graphs: GraphSet, edits: Edits, edges: bool, counts: torch.dtype = torch.int64) -> None:
        """``edges``: with the kinds of edges; ``counts``: the type of copies."""
        self.counts = counts
        self.tables: dict[tuple[Any, ...], Table] = {}
        self._links: dict[tuple[str, str, bool], Links] = {}
        self._ones: dict[str, torch.Tensor] = {}
        self.graphs, self.edits, self.edges = graphs, edits, edges
        self.bag: Expanded = expand(graphs, edits, edges)

    def rows_of(self, kind: str) -> int:
        counts = {"pairs": self.bag.num_rows, "nodes": self.graphs.num_nodes, "subgraphs": self.edits.num_subgraphs}
        return counts.get(kind, self.graphs.num_graphs)

    def ones(self, kind: str) -> torch.Tensor:
        """Every row counts once; the same for all tables of a kind."""
        return self._ones.setdefault(kind, torch.ones(self.rows_of(kind), dtype=self.counts))

    def pairs(self, sub: np.ndarray, node: np.ndarray) -> np.ndarray:
        """The row of node ``node`` in subgraph ``sub``, -1 where it is not there."""
        first = self.graphs.node_ptr[self.edits.graph[sub]]
        return self.bag.place[self.bag.pair_ptr[sub] + node - first]

    def links(self, step: Step, kind: str) -> Links:
        """The same for all steps that read alike: there are as many rows as pairs."""
        key = kind, step.along, step.edges
        if key not in self._links:
            self._links[key] = self._linked(step, kind)
        return self._links[key]

    def _linked(self, step: Step, kind: str) -> Links:
        bag, rows = self.bag, np.arange(self.bag.num_rows)
        if kind == "nodes":
            g, rows = self.graphs, np.arange(self.graphs.num_nodes)
            edge = g.edge_kind * len(self.edits.edge_marks) if self.edges else np.zeros(g.num_edges, np.int64)
            links = Links(tensor(rows), tensor(g.in_ptr), tensor(g.src), tensor(edge))
        elif step.along == "nodes":
            degree = np.bincount(bag.dst, minlength=len(rows))
            links = Links(tensor(rows), tensor(np.concatenate([[0], np.cumsum(degree)])), tensor(bag.src), tensor(bag.kind))
        else:
            links = self._between_subgraphs()
        if not step.edges:
            links = Links(links.self_row, links.in_ptr, links.in_row, torch.zeros_like(links.in_edge))
        return links

    def _between_subgraphs(self) -> Links:
        """(j, v) reads (k, v) for the edges from the root of k to the root of j."""
        g, bag = self.graphs, self.bag
        root, own = single_roots(g, self.edits), own_subgraphs(g, self.edits)
        target = root[bag.sub]
        counts = np.diff(g.in_ptr)[target]
        edge, to = ranges(g.in_ptr[target], counts), np.repeat(np.arange(bag.num_rows), counts)
        source = self.pairs(own[g.src[edge]], bag.node[to])
        there = source >= 0
        kind = g.edge_kind[edge] * len(self.edits.edge_marks) if self.edges else 0 * edge
        ptr = np.concatenate([[0], np.cumsum(np.bincount(to[there], minlength=bag.num_rows))])
        return Links(tensor(np.arange(bag.num_rows)), tensor(ptr), tensor(source[there]), tensor(kind[there]))

    def spread(self, kind: str) -> np.ndarray:
        """Of every pair the subgraph, node or graph."""
        bag = self.bag
        return {"subgraphs": bag.sub, "nodes": bag.node}.get(kind, self.graphs.graph[bag.node])


def full_table(written: Written, step: Step, read: list[Step]) -> Table:
    """One table; ``read`` are the steps that it reads. Steps that read alike share it."""
    key = step.op, step.kind, step.along, step.edges, *(of.kind for of in read)
    if key not in written.tables:
        written.tables[key] = _table(written, step, read)
    return written.tables[key]


def _table(written: Written, step: Step, read: list[Step]) -> Table:
    bag, graphs, edits = written.bag, written.graphs, written.edits
    rows = written.rows_of(step.kind)
    table = Table(written.ones(step.kind) if step.kind != "graphs" else None, rows)
    if step.kind in ("nodes", "subgraphs"):
        table.place = torch.arange(rows)
    if step.op == "propagate":
        table.links = written.links(step, read[0].kind)
    elif step.op == "across":
        ptr = np.concatenate([[0], np.cumsum(np.bincount(bag.node, minlength=rows))])
        table.sums = _lists(ptr, np.argsort(bag.node, kind="stable"))
    elif step.op == "root":
        sub, root = rooted(edits)
        ptr = np.concatenate([[0], np.cumsum(np.bincount(sub, minlength=rows))])
        table.sums = _lists(ptr, written.pairs(sub, root))
    elif step.op == "diagonal":
        table.own = tensor(written.pairs(own_subgraphs(graphs, edits), np.arange(rows)))
    elif step.op == "pool" and step.kind == "nodes":
        table.sums = _lists(*about_nodes(graphs, edits))
    elif step.op == "pool":
        table.sums = {
            "pairs": lambda: _lists(bag.sub_ptr, np.arange(bag.num_rows)),
            "subgraphs": lambda: _lists(edits.sub_ptr, np.arange(edits.num_subgraphs)),
            "nodes": lambda: _lists(graphs.node_ptr, np.arange(graphs.num_nodes)),
        }[read[0].kind]()
    elif step.op == "spread":
        table.own = tensor(written.spread(read[0].kind))
    elif step.op == "join":
        table.own = table.other = torch.arange(rows)
    return table


def edge_tables_of(
    program: Program, edge_attr: np.ndarray | None, edge_marks: np.ndarray
) -> tuple[np.ndarray | None, np.ndarray]:
    """``(edge_attr, edge_mark)`` by edge kind. Where no step reads edges all are of one kind, of which nothing that is computed
    from it gets any further."""
    if not any(step.edges for step in program.steps):
        edge_attr, edge_marks = None if edge_attr is None else edge_attr[:1], edge_marks[:1]
    return edge_tables(edge_attr, edge_marks)


def full_step_plan(
    graphs: GraphSet, edits: Edits, program: Program, cls: type[Plan] = Plan, written: Written | None = None
) -> Plan:
    check_loops(graphs, program)
    written = Written(graphs, edits, any(step.edges for step in program.steps)) if written is None else written
    attr, edge_mark = edge_tables_of(program, graphs.edge_attr, edits.edge_marks)
    tables = [full_table(written, step, [program.steps[r] for r in step.reads]) for step in program.steps]
    edge_rows, edge_mark_rows = edge_rows_read(program, tables, attr, edge_mark)
    bag = written.bag
    degree = np.bincount(bag.dst, minlength=bag.num_rows)
    return cls(
        kind="full", program=program, num_graphs=graphs.num_graphs,
        x_rows=tensor(graphs.x), feature=tensor(graphs.node_kind[bag.node]),
        mark_rows=tensor(edits.marks), marked=tensor(bag.mark),
        of_graph=tensor(graphs.graph[bag.node]) if program.share == "graph" else None,
        edge_rows=edge_rows, edge_mark_rows=edge_mark_rows, tables=tables,
        num_nodes=graphs.num_nodes, num_subgraphs=edits.num_subgraphs,
        degrees=tensor(degree) if program.steps[0].degrees else None,
        limits=(largest_value(graphs.x), largest_value(graphs.edge_attr)),
        categories=tuple(graphs.categories.tolist()),
        root_nodes=tensor(edits.root) if edits.root is not None and any(s.op == "root" for s in program.steps) else None,
        unshared=0,
    )  # fmt: skip
