"""The bags of a graph under every policy, each subgraph written out as a graph of its own.

From what the policies' documentation says, in numpy and plain Python; the package is asked only which of its subgraphs a
policy that draws at random has drawn, and that answer is checked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch_geometric.data import Data

import enfa
from enfa.edits import DELETE
from enfa.graphs import check_graphs

FAR = 10**6


def _hops(graph: Data) -> np.ndarray:
    """[n, n]: the number of edges on a shortest path from u to v; FAR where there is none."""
    n = graph.num_nodes
    step = np.eye(n, dtype=bool)
    step[tuple(graph.edge_index.numpy())] = True
    found, reached = np.full((n, n), FAR), np.eye(n, dtype=bool)
    for hops in range(n):
        found[reached & (found == FAR)] = hops
        reached = reached @ step
    return found


def undirected_edges(graph: Data) -> list[tuple[int, ...]]:
    """The columns of every undirected edge, the one towards the larger number first; a loop alone. In the order of that
    larger number, then as given."""
    ends = graph.edge_index.T.tolist()
    attr = [None] * len(ends) if graph.edge_attr is None else graph.edge_attr.tolist()
    free = [e for e, (u, v) in enumerate(ends) if u > v]
    found: list[tuple[int, ...]] = []
    for e in sorted((e for e, (u, v) in enumerate(ends) if u <= v), key=lambda e: ends[e][1]):
        u, v = ends[e]
        if u == v:
            found.append((e,))
            continue
        back = [b for b in free if ends[b] == [v, u]]
        mate = next((b for b in back if attr[b] == attr[e]), back[0])  # of parallel ones, those alike
        free.remove(mate)
        found.append((e, mate))
    assert not free
    return found


class Bags:
    """Makes subgraphs of one graph."""

    def __init__(self, graph: Data, policy: enfa.Policy) -> None:
        self.graph, self.policy = graph, policy
        self.n, self.m = graph.num_nodes, graph.edge_index.shape[1]
        self.src, self.dst = graph.edge_index.numpy()

    def piece(
        self,
        nodes: np.ndarray | None = None,
        edges: np.ndarray | None = None,
        mark: np.ndarray | None = None,
        edge_mark: np.ndarray | None = None,
        root: Sequence[int] = (),
    ) -> Data:
        """The nodes and edges whose masks are set, and only edges between such nodes. ``node`` and ``root`` are numbers
        in the graph and in the subgraph."""
        nodes = np.ones(self.n, bool) if nodes is None else nodes
        edges = np.ones(self.m, bool) if edges is None else edges
        edges = np.flatnonzero(edges & nodes[self.src] & nodes[self.dst])
        marks = np.zeros((self.n, self.policy.mark_channels)) if mark is None else mark
        edge_marks = np.zeros((self.m, self.policy.edge_mark_channels)) if edge_mark is None else edge_mark
        number = np.cumsum(nodes) - 1
        kept, at = torch.from_numpy(np.flatnonzero(nodes)), torch.from_numpy(edges)
        return Data(
            x=self.graph.x[kept],
            mark=torch.from_numpy(marks[nodes]),
            node=kept,
            edge_index=torch.from_numpy(number[np.stack([self.src[edges], self.dst[edges]])]),
            edge_attr=None if self.graph.edge_attr is None else self.graph.edge_attr[at],
            edge_mark=torch.from_numpy(edge_marks[edges]),
            root=[int(number[r]) for r in root],
        )

    def unedited(self) -> Data:
        """The graph itself; where distances are marked, everything is far from a root that is not there."""
        mark = np.zeros((self.n, self.policy.mark_channels))
        if self.policy.mark_channels > 1:
            mark[:, -1] = 1.0
        return self.piece(mark=mark)

    def node_marking(self, policy: enfa.NodeMarking) -> Iterator[Data]:
        hops = _hops(self.graph)
        for r in range(self.n):
            mark = np.zeros((self.n, policy.mark_channels))
            if policy.distances is None:
                mark[r] = 1.0
            else:
                mark[np.arange(self.n), np.minimum(hops[:, r], policy.distances + 1)] = 1.0
            yield self.piece(mark=mark, root=[r])

    def node_deletion(self, policy: enfa.NodeDeletion) -> Iterator[Data]:
        for r in range(self.n):
            if policy.isolate:
                yield self.piece(edges=(self.src != r) & (self.dst != r))
            else:
                yield self.piece(np.arange(self.n) != r)

    def edge_deletion(self, policy: enfa.EdgeDeletion) -> Iterator[Data]:
        for columns in undirected_edges(self.graph):
            edges = ~np.isin(np.arange(self.m), columns)
            yield self.piece(edges=edges, root=[self.src[columns[0]], self.dst[columns[0]]])

    def edge_marking(self, policy: enfa.EdgeMarking) -> Iterator[Data]:
        hops, degree = _hops(self.graph), np.bincount(self.dst, minlength=self.n)
        for columns in undirected_edges(self.graph):
            ends = [int(self.src[columns[0]]), int(self.dst[columns[0]])]
            near, far = hops[:, ends].min(1), hops[:, ends].max(1)
            mark, edge_mark = None, np.zeros((self.m, policy.edge_mark_channels))
            edge_mark[list(columns), 0] = 1.0
            if policy.structure == "degrees":
                for v in np.flatnonzero(near <= policy.hops):  # 0, 1, 2-3, 4-7, ...
                    edge_mark[list(columns), 1 + min(int(degree[v]).bit_length(), policy.bins - 1)] += 1.0
            elif policy.structure == "distances":
                mark = np.zeros((self.n, policy.mark_channels))
                place = np.where(near <= policy.hops, 2 * near + (far > near), policy.mark_channels - 1)
                mark[np.arange(self.n), place] = 1.0
            yield self.piece(mark=mark, edge_mark=edge_mark, root=ends)

    def ego_nets(self, policy: enfa.EgoNets) -> Iterator[Data]:
        hops = _hops(self.graph)
        for r in range(self.n):
            inside, mark = hops[:, r] <= policy.hops, np.zeros((self.n, policy.mark_channels))
            if policy.mark == "distances":
                mark[np.arange(self.n), np.minimum(hops[:, r], policy.hops + 1)] = 1.0
            else:
                mark[r] = float(policy.mark)
            if policy.isolate:
                yield self.piece(edges=inside[self.src] & inside[self.dst], mark=mark, root=[r])
            else:
                yield self.piece(inside, mark=mark, root=[r])

    def neighbor_marking(self, policy: enfa.NeighborMarking) -> Iterator[Data]:
        hops = _hops(self.graph)
        for i in range(self.n):
            inside = hops[:, i] <= policy.hops
            near = np.unique(self.src[(self.dst == i) & (self.src != i)]).tolist()
            edges = inside[self.src] & inside[self.dst]
            within = _hops(Data(edge_index=self.graph.edge_index[:, torch.from_numpy(edges)], num_nodes=self.n))
            for j in near or [None]:
                mark = np.zeros((self.n, policy.mark_channels))
                if policy.mark == "distances":
                    away = np.full(self.n, policy.hops + 2) if j is None else np.minimum(within[:, j], policy.hops + 2)
                    mark[np.arange(self.n), np.minimum(hops[:, i], policy.hops)] = 1.0
                    mark[np.arange(self.n), policy.hops + 1 + away] = 1.0
                else:
                    mark[i, 0] = 1.0
                    if j is not None:
                        mark[j, 1] = 1.0
                yield self.piece(inside, mark=mark, root=[i])

    def most_central(self, policy: enfa.MostCentral) -> Iterator[Data]:
        edits = policy.edits(check_graphs([self.graph]))
        assert edits.root is not None
        chosen = set(edits.root[:, 0].tolist()) - {-1}
        adjacency = np.zeros((self.n, self.n))
        np.add.at(adjacency, (self.dst, self.src), 1.0)
        value = torch.linalg.matrix_exp(torch.from_numpy(adjacency)).diagonal().numpy()
        others = [value[v] for v in range(self.n) if v not in chosen]
        least = min((value[v] for v in chosen), default=0.0)
        assert len(chosen) == min(self.n, policy.count) and max(others, default=0.0) <= least * (1 + 1e-8), f"{policy!r}"
        for piece in _whole(self.graph, policy.policy):
            if piece.root and int(piece.node[piece.root[0]]) in chosen:
                yield piece

    def reconstruction(self, policy: enfa.Reconstruction) -> Iterator[Data]:
        k = policy.k if policy.k > 0 else self.n + policy.k
        if not 0 <= k < self.n:
            return
        edits = policy.edits(check_graphs([self.graph]))
        found = set()
        for s in range(edits.num_subgraphs):
            inside = np.full(self.n, not edits.kept[s])
            listed = slice(edits.node_ptr[s], edits.node_ptr[s + 1])
            inside[edits.node[listed]] = edits.node_value[listed] != DELETE
            assert inside.sum() == k, f"subgraph {s} of {policy!r} has {inside.sum()} nodes of {self.n}"
            found.add(inside.tobytes())
            yield self.piece(inside)
        # so many different sets of k nodes are all of them, or as many as may be drawn
        assert len(found) == edits.num_subgraphs == min(math.comb(self.n, k), policy.max_subgraphs), f"{policy!r} drew others"


def _whole(graph: Data, policy: enfa.Policy) -> list[Data]:
    bags = Bags(graph, policy)
    return list(getattr(bags, policy.name())(policy)) or [bags.unedited()]


def bags_of(graphs: Sequence[Data], policy: enfa.Policy, epoch: int = 0) -> list[list[Data]]:
    """The bag of every graph; graphs are counted from 0, on which a draw depends."""
    if not isinstance(policy, enfa.Subsample):
        return [_whole(graph, policy) for graph in graphs]
    bags = [_whole(graph, policy.policy) for graph in graphs]
    ptr = np.cumsum([0, *map(len, bags)])
    found = []
    for g, bag in enumerate(bags):
        drawn = policy.draw(ptr, np.array([g]), epoch) - ptr[g]
        size = len(bag) * policy.fraction if policy.fraction is not None else min(len(bag), policy.count or 0)
        assert len(set(drawn.tolist())) == len(drawn) == math.ceil(size), f"{policy!r} drew {drawn} of {len(bag)}"
        found.append([bag[s] for s in drawn])
    return found
