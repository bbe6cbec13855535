"""The verbs of a bag, answered the long way: every subgraph is written out, and values are plain tensors.

Of the package only policies are used, and the check of graphs that makes their input. Everything is a loop or one call of
PyG, so that there is nothing to get wrong twice: convs run on the disjoint union of all subgraphs, norms are PyTorch's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

import enfa
from enfa.graphs import check_graphs


class Tagged(Tensor):
    """A plain tensor that remembers what its rows are: under node marking there are as many nodes as subgraphs."""

    kind: str

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kinds = {value.kind for value in _flat([*args, *(kwargs or {}).values()])}
        assert len(kinds) <= 1, f"{func} mixes rows of {kinds}"
        with torch._C.DisableTorchFunctionSubclass():
            out = func(*args, **(kwargs or {}))
        kind = kinds.pop() if kinds else None
        return tagged(out, kind) if isinstance(out, Tensor) and kind is not None and out.ndim else out


def _flat(values: Any) -> list[Tagged]:
    found: list[Tagged] = []
    for value in values:
        if isinstance(value, (list, tuple)):
            found += _flat(value)
        elif isinstance(value, Tagged) and hasattr(value, "kind"):
            found.append(value)
    return found


def tagged(value: Tensor, kind: str) -> Tagged:
    new = value.as_subclass(Tagged)
    new.kind = kind
    return new


def plain(value: Tensor) -> Tensor:
    return value.as_subclass(Tensor)


def _reduce(rows: Tensor, how: str, score: Tensor | None) -> Tensor:
    """One list of rows; nothing gives zero."""
    if not len(rows):
        return rows.sum(0)
    if how == "softmax":
        assert score is not None
        return (rows * torch.softmax(score, 0)).sum(0)
    return {"sum": rows.sum, "mean": rows.mean, "max": rows.amax}[how](0)


def _places(lists: Iterable[list[int]]) -> list[Tensor]:
    return [torch.tensor(one, dtype=torch.long) for one in lists]


class ExplicitBag:
    """``model(ExplicitBag(graphs, policy))`` is the conventional model."""

    def __init__(self, graphs: Sequence[Data], policy: enfa.Policy, dtype: torch.dtype = torch.float64) -> None:
        self.graphs = list(graphs)
        checked = check_graphs(self.graphs)
        edits = policy.edits(checked)
        first_node, first_edge = [0], [0]
        for graph in self.graphs:
            first_node.append(first_node[-1] + graph.num_nodes)
            first_edge.append(first_edge[-1] + graph.edge_index.shape[1])
        self.num_nodes = first_node[-1]
        self.pairs: list[tuple[int, int]] = []  # (subgraph, node), nodes counted through all graphs
        self.of_graph: list[int] = []  # of every subgraph
        self.roots: list[list[int]] = []
        node_marks, src, dst, columns, edge_marks = [], [], [], [], []
        for g, graph in enumerate(self.graphs):
            for s in range(int(edits.sub_ptr[g]), int(edits.sub_ptr[g + 1])):
                changed = slice(edits.node_ptr[s], edits.node_ptr[s + 1])
                value = dict(zip(edits.node[changed].tolist(), edits.node_value[changed].tolist()))
                others = -1 if edits.keeps is not None and edits.keeps[s] else 0
                place = {}
                for v in range(first_node[g], first_node[g + 1]):
                    if value.get(v, others) >= 0:
                        place[v] = len(self.pairs)
                        self.pairs.append((s, v))
                        node_marks.append(value.get(v, others))
                changed = slice(edits.edge_ptr[s], edits.edge_ptr[s + 1])
                # edits number edges by their targets; ``order`` tells their columns
                value = dict(zip(checked.order[edits.edge[changed]].tolist(), edits.edge_value[changed].tolist()))
                for column, (u, v) in enumerate(graph.edge_index.T.tolist(), first_edge[g]):
                    u, v = u + first_node[g], v + first_node[g]
                    if u in place and v in place and value.get(column, 0) >= 0:
                        src.append(place[u])
                        dst.append(place[v])
                        columns.append(column)
                        edge_marks.append(value.get(column, 0))
                self.of_graph.append(g)
                self.roots.append([] if edits.root is None else [r for r in edits.root[s].tolist() if r >= 0])
        self.place = {pair: i for i, pair in enumerate(self.pairs)}
        self.nodes_of = [range(first_node[g], first_node[g + 1]) for g in range(len(self.graphs))]
        ends = [graph.edge_index + first_node[g] for g, graph in enumerate(self.graphs)]
        self.edges = {"pairs": torch.tensor([src, dst], dtype=torch.long).reshape(2, -1), "nodes": torch.cat(ends, 1)}
        of_edges = {"pairs": columns, "nodes": list(range(first_edge[-1]))}
        self.edges["subgraphs"], of_edges["subgraphs"] = self._between()
        # the edges of all subgraphs, of the graphs, and between subgraphs, one behind the other
        ends_at = torch.tensor([0] + [len(of_edges[name]) for name in self.edges]).cumsum(0).tolist()
        self.edge_range = {name: slice(a, b) for name, a, b in zip(self.edges, ends_at, ends_at[1:])}
        column = torch.tensor([c for name in self.edges for c in of_edges[name]], dtype=torch.long)
        edge_marks += [0] * (len(column) - len(edge_marks))

        def features(parts: list[Tensor], index: Tensor) -> Tensor:
            rows = torch.cat([p[:, None] if p.ndim == 1 else p for p in parts])
            return (rows.to(dtype) if rows.is_floating_point() else rows.long())[index]

        node = torch.tensor([v for _, v in self.pairs], dtype=torch.long)
        self.x = tagged(features([graph.x for graph in self.graphs], node), "pairs")
        self.mark = tagged(torch.tensor(edits.marks, dtype=dtype)[node_marks], "pairs")
        self.edge_mark = tagged(torch.tensor(edits.edge_marks, dtype=dtype)[edge_marks], "edges")
        if self.graphs[0].edge_attr is not None:
            self.edge_attr = tagged(features([graph.edge_attr for graph in self.graphs], column), "edges")

    def _own(self) -> dict[int, int]:
        """The subgraph whose one root each node is."""
        return {root[0]: s for s, root in enumerate(self.roots) if len(root) == 1}

    def _between(self) -> tuple[Tensor, list[int]]:
        """(k, v) -> (j, v) for the edges from the root of k to that of j; and the columns of these edges."""
        found, columns, own = [], [], self._own()
        for column, (u, r) in enumerate(self.edges["nodes"].T.tolist()):
            if u in own and r in own:
                for v in self.nodes_of[self.of_graph[own[r]]]:
                    if (own[u], v) in self.place and (own[r], v) in self.place:
                        found.append((self.place[own[u], v], self.place[own[r], v]))
                        columns.append(column)
        return torch.tensor(found, dtype=torch.long).reshape(-1, 2).T, columns

    def propagate(
        self, conv: nn.Module, h: Tagged, edge_attr: Tagged | None = None, *, along: str = "nodes", **more: Any
    ) -> Tagged:
        name = "subgraphs" if along == "subgraphs" else h.kind
        if edge_attr is not None:
            more["edge_attr"] = edge_attr
        for key, value in more.items():
            if isinstance(value, Tagged):
                assert value.kind == "edges"
                more[key] = plain(value)[self.edge_range[name]]
        return tagged(conv(plain(h), self.edges[name], **more), h.kind)

    def _lists(self, h: Tagged, lists: list[Tensor], kind: str | None, how: str, score: Tagged | None = None) -> Any:
        value, weight = plain(h), None if score is None else plain(score)
        found = [_reduce(value[i], how, None if weight is None else weight[i]) for i in lists]
        out = torch.stack(found) if found else value.new_zeros(0, *value.shape[1:])
        return out if kind is None else tagged(out, kind)

    @cached_property
    def _by_node(self) -> list[Tensor]:
        return _places([[i for i, (_, v) in enumerate(self.pairs) if v == node] for node in range(self.num_nodes)])

    @cached_property
    def _by_subgraph(self) -> list[Tensor]:
        return _places([[i for i, (s, _) in enumerate(self.pairs) if s == sub] for sub in range(len(self.of_graph))])

    @cached_property
    def _by_graph(self) -> list[Tensor]:
        return _places([[s for s, of in enumerate(self.of_graph) if of == g] for g in range(len(self.graphs))])

    @cached_property
    def _roots(self) -> list[Tensor]:
        return _places([[self.place[s, r] for r in root] for s, root in enumerate(self.roots)])

    @cached_property
    def _rooted_at(self) -> list[Tensor]:
        return _places([[s for s, root in enumerate(self.roots) if v in root] for v in range(self.num_nodes)])

    def across(self, h: Tagged, how: str = "sum") -> Tagged:
        assert h.kind == "pairs"
        return self._lists(h, self._by_node, "nodes", how)

    def root(self, h: Tagged) -> Tagged:
        assert h.kind == "pairs"
        return self._lists(h, self._roots, "subgraphs", "sum")

    def diagonal(self, h: Tagged) -> Tagged:
        assert h.kind == "pairs"
        own = self._own()
        return tagged(plain(h)[[self.place[own[v], v] for v in range(self.num_nodes)]], "nodes")

    def pool(self, h: Tagged, how: str = "sum", score: Tagged | None = None, *, to: str | None = None) -> Any:
        if to == "nodes":
            assert h.kind == "subgraphs"
            return self._lists(h, self._rooted_at, "nodes", how, score)
        if h.kind == "pairs":
            return self._lists(h, self._by_subgraph, "subgraphs", how, score)
        if h.kind == "nodes":
            return self._lists(h, _places(map(list, self.nodes_of)), None, how, score)
        assert h.kind == "subgraphs"
        return self._lists(h, self._by_graph, None, how, score)

    def spread(self, h: Tagged) -> Tagged:
        index = [s if h.kind == "subgraphs" else v for s, v in self.pairs]
        assert h.kind in ("subgraphs", "nodes")
        return tagged(plain(h)[index], "pairs")

    def each(self, h: Tagged) -> Tensor:
        assert h.kind in ("nodes", "subgraphs")
        return plain(h)
