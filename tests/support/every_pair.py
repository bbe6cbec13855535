"""All pairs (j, v) of nodes of a few graphs, as node marking has them, written out: for formulas of papers.

Of the package nothing is used but the model's weights. Messages are loops over index arrays, norms PyTorch's own.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

import enfa
from enfa.testing.results import distance, results_in_place, scales_of


class Pairs:
    """Pair (j, v) of a graph of n nodes has the number j n + v behind those of the graphs before."""

    def __init__(self, graphs: Sequence[Data]) -> None:
        first = nodes = 0
        lists: dict[str, list[Tensor]] = {name: [] for name in ("x", "graph", "sub", "node", "root", "own", "hop")}
        edges: dict[str, list[Tensor]] = {name: [] for name in ("within", "between", "plain", "attr", "plain_attr")}
        for number, graph in enumerate(graphs):
            n = int(graph.num_nodes)  # type: ignore[arg-type]
            j, v = (index.flatten() for index in torch.meshgrid(torch.arange(n), torch.arange(n), indexing="ij"))
            found = {
                "x": graph.x[v], "graph": torch.full_like(j, number), "sub": nodes + j, "node": nodes + v,
                "root": first + j * n + j, "own": first + v * n + v, "hop": _hops(graph)[j, v],
            }  # fmt: skip
            for name, value in found.items():
                lists[name].append(value)
            source, target = graph.edge_index
            each = torch.arange(n)
            edges["within"].append(first + torch.stack([(each[:, None] * n + end).flatten() for end in (source, target)]))
            edges["between"].append(first + torch.stack([(each[:, None] + end * n).flatten() for end in (source, target)]))
            edges["plain"].append(nodes + graph.edge_index)
            edges["attr"].append(graph.edge_attr.repeat(n, 1))
            edges["plain_attr"].append(graph.edge_attr)
            first, nodes = first + n * n, nodes + n
        self.x, self.graph, self.sub, self.node, self.root, self.own, self.hop = (torch.cat(v) for v in lists.values())
        self.within, self.between, self.plain = (torch.cat(edges[name], 1) for name in ("within", "between", "plain"))
        self.attr, self.plain_attr = torch.cat(edges["attr"]), torch.cat(edges["plain_attr"])
        self.num_graphs, self.num_nodes = len(graphs), nodes

    def gine(self, conv: Any, h: Tensor, edges: Tensor, edge: Tensor) -> Tensor:
        """MLP((1 + eps) h + sum of relu(h_u + e))."""
        message = (h[edges[0]] + edge).relu()
        eps = 0.0 if conv.eps is None else conv.eps
        return conv.update((1 + eps) * h + torch.zeros_like(h).index_add(0, edges[1], message))


def mean(h: Tensor, index: Tensor, count: int) -> Tensor:
    """Of all rows with the same index; zero where there is none."""
    return total(h, index, count) / torch.bincount(index, minlength=count).clamp(min=1)[:, None]


def total(h: Tensor, index: Tensor, count: int) -> Tensor:
    return h.new_zeros(count, h.shape[1]).index_add(0, index, h)


def _hops(graph: Data) -> Tensor:
    """[n, n]: the number of edges between two nodes; n where there is no way."""
    n = int(graph.num_nodes)  # type: ignore[arg-type]
    hops = torch.full((n, n), n)
    hops[tuple(graph.edge_index)] = 1
    hops.fill_diagonal_(0)
    for k in range(n):
        hops = torch.minimum(hops, hops[:, k : k + 1] + hops[k : k + 1])
    return hops.clamp(max=n)


class Formula(nn.Module):
    """A model's weights in a formula: ``forward(pairs)`` gives what the model gives for the plan."""

    def __init__(self, model: nn.Module, formula: Callable[[Any, Pairs], Tensor]) -> None:
        super().__init__()
        self.model, self.formula = model, formula

    def forward(self, pairs: Pairs) -> Tensor:
        return self.formula(self.model, pairs)


def assert_formula(
    model: nn.Module, policy: enfa.Policy, graphs: Sequence[Data], formula: Callable[[Any, Pairs], Tensor]
) -> None:
    """Outputs, gradients and buffers of the model on distinct rows, against a formula over all pairs."""
    model = copy.deepcopy(model).double()
    plan: Any = enfa.make_plan(graphs, policy, model)
    for train in (False, True):
        expected = results_in_place(Formula(copy.deepcopy(model), formula), Pairs(graphs), train, 0)  # type: ignore[arg-type]
        expected = {name.replace("model.", "", 1): value for name, value in expected.items()}
        found, scales = results_in_place(copy.deepcopy(model), plan, train, 0), scales_of(expected)
        assert found.keys() == expected.keys()
        off = {name: distance(found[name], value) / scales[name] for name, value in expected.items()}
        assert max(off.values()) < 1e-10, ("train" if train else "eval", {n: o for n, o in off.items() if not o < 1e-10})
