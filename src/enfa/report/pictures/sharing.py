"""Which rows of a graph's bag are the same row, node by node: what the picture shows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from torch_geometric.data import Data

from enfa.edits import DELETE, Edits, Policy
from enfa.edits.check import edits_by
from enfa.graphs import check_graphs
from enfa.plan.classes import step_classes
from enfa.plan.make import step_plan_of
from enfa.plan.reference.expand import expand
from enfa.plan.reference.full import full_step_plan
from enfa.plan.step import Program

__all__ = ["Sharing", "sharing_of"]


@dataclass(frozen=True)
class Sharing:
    """A graph of n nodes and M directed edges with S subgraphs, over tables 0…L.

    Rows are equal if their numbers are, within a table. They are numbered in the order in which one would meet them:
    first those of the unedited graph, node by node, then subgraph by subgraph.
    """

    edges: np.ndarray  # int [2, M]
    base: np.ndarray  # int [L+1, n], rows of the unedited graph
    rows: np.ndarray  # int [L+1, S, n], -1 where a subgraph lacks the node
    node_mark: np.ndarray  # int [S, n]
    edge_value: np.ndarray  # int [S, M]: a mark, 0, or -1 where a subgraph lacks the edge
    conventional: int  # rows of the full plan, in every table
    distinct: list[int]  # rows of the distinct plan, tables 0…L: those of subgraphs, not of the unedited graph alone

    def of(self, subgraphs: np.ndarray) -> Sharing:
        """Some subgraphs only; row numbers and totals stay those of the whole bag."""
        parts = {"node_mark": self.node_mark[subgraphs], "edge_value": self.edge_value[subgraphs]}
        return replace(self, rows=self.rows[:, subgraphs], **parts)


def _renumbered(base: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Number classes in the order in which they are met. -1 stays."""
    flat = np.concatenate([base, rows.reshape(-1)])
    values, first, inverse = np.unique(flat, return_index=True, return_inverse=True)
    rank = np.empty(len(values), np.int64)
    rank[np.argsort(np.where(values < 0, -1, first))] = np.arange(len(values))
    new = (rank - int((values < 0).any()))[inverse.reshape(-1)]
    return new[: len(base)], new[len(base) :].reshape(rows.shape)


def _edge_values(edits: Edits, edges: np.ndarray, present: np.ndarray) -> np.ndarray:
    """int [S, M]. Without an end there is no edge."""
    value = np.zeros((edits.num_subgraphs, edges.shape[1]), np.int64)
    value[np.repeat(np.arange(edits.num_subgraphs), np.diff(edits.edge_ptr)), edits.edge] = edits.edge_value
    return np.where(present[:, edges[0]] & present[:, edges[1]], value, DELETE)


def _with_unedited(edits: Edits) -> Edits:
    """The bag of one graph, and behind it the graph itself."""
    root = edits.root
    return replace(
        edits,
        sub_ptr=np.array([0, edits.num_subgraphs + 1]),
        node_ptr=np.append(edits.node_ptr, edits.node_ptr[-1]),
        edge_ptr=np.append(edits.edge_ptr, edits.edge_ptr[-1]),
        keeps=None if edits.keeps is None else np.append(edits.keeps, False),
        root=None if root is None else np.concatenate([root, np.full((1, root.shape[1]), -1)]),
    )


def sharing_of(graph: Data, policy: Policy, program: Program) -> Sharing:
    """Write out the bag of one graph. Memory: n squared under node marking, so for graphs that one can look at.

    The tables are those of the start and of every round of messages. Subgraphs must not see each other: the unedited graph is
    one more of them here, and would be seen, too.
    """
    for step in program.steps:
        if step.op not in ("start", "propagate", "root", "pool") or step.along != "nodes" or step.kind == "nodes":
            raise ValueError(f"Expected steps that do not mix subgraphs to draw, got '{step}'")
    graphs = check_graphs([graph])
    edits, nodes = edits_by(policy, graphs), graphs.num_nodes
    bag = expand(graphs, edits, edges=False)
    passed = [n for n, step in enumerate(program.steps) if step.kind == "pairs"]
    every = step_classes(full_step_plan(graphs, _with_unedited(edits), program))
    tables = [every[n] for n in passed]  # pairs, and behind them the unedited nodes
    bases, rows = [], []
    for table in tables:
        of_pair = np.full((edits.num_subgraphs, nodes), -1, np.int64)
        of_pair[bag.sub, bag.node] = table[: bag.num_rows]
        base, of_pair = _renumbered(table[bag.num_rows :], of_pair)
        bases.append(base)
        rows.append(of_pair)
    node_mark = np.zeros((edits.num_subgraphs, nodes), np.int64)
    node_mark[bag.sub, bag.node] = bag.mark
    distinct = step_plan_of(graphs, edits, program, "distinct")
    return Sharing(
        edges=np.stack([graphs.src, graphs.dst]),
        base=np.stack(bases),
        rows=np.stack(rows),
        node_mark=node_mark,
        edge_value=_edge_values(edits, np.stack([graphs.src, graphs.dst]), rows[0] >= 0),
        conventional=bag.num_rows,
        distinct=[distinct.num_rows(n) for n in passed],
    )
