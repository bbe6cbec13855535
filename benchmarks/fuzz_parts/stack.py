"""The explicit subgraphs of a batch side by side, as one PyG batch."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from fuzz_parts.draw import Case
from fuzz_parts.subgraphs import bags_of


@dataclass(frozen=True)
class Stacked:
    """All subgraphs of a batch side by side; P pairs (subgraph, node), S subgraphs, N nodes of the original graphs."""

    x: Tensor  # [P, channels]
    mark: Tensor  # [P, mark channels]
    node: Tensor  # [P], of N
    sub: Tensor  # [P], of S
    edge_index: Tensor  # [2, edges], of P
    edge_attr: Tensor | None
    edge_mark: Tensor
    root: Tensor  # [rooted subgraphs, 1 or 2], of P
    root_node: Tensor  # [rooted subgraphs] or [rooted subgraphs, 2], of N
    graph: Tensor  # [S], of G
    counts: tuple[int, int, int]  # S, N, G
    original: Data  # the unedited graphs

    def shuffled(self, rng: np.random.Generator) -> Stacked:
        """The same with pairs and edges in another order: nothing changes but rounding."""
        order, edges = (torch.from_numpy(rng.permutation(len(v))) for v in (self.x, self.edge_mark))
        place = torch.empty_like(order)
        place[order] = torch.arange(len(order))
        return replace(
            self, x=self.x[order], mark=self.mark[order], node=self.node[order], sub=self.sub[order],
            edge_index=place[self.edge_index[:, edges]], edge_mark=self.edge_mark[edges], root=place[self.root],
            edge_attr=None if self.edge_attr is None else self.edge_attr[edges],
        )  # fmt: skip

    def noisy(self, rng: np.random.Generator, level: float) -> Stacked:
        """Float features off by a little; equal ones stay equal, so that rows that are one row stay one."""
        if not self.x.is_floating_point() or not self.x.numel():
            return self
        values, kind = torch.unique(self.x.double(), return_inverse=True)
        off = 1 + level * torch.from_numpy(rng.standard_normal(len(values)))
        return replace(self, x=(values * off)[kind])


def stacked(case: Case) -> Stacked:
    every = bags_of(case.graphs, case.policy)
    if case.draw is not None:
        every = bags_of(case.graphs, case.draw, case.epoch)
    bags, graphs = [every[g] for g in case.chosen], [case.graphs[g] for g in case.chosen]
    subs = [one for bag in bags for one in bag]
    batch = Batch.from_data_list(subs, exclude_keys=["root"])
    sizes, first_node = [len(bag) for bag in bags], np.cumsum([0, *(g.num_nodes for g in graphs)])
    graph = torch.repeat_interleave(torch.tensor(sizes))
    rooted = [(s, one.root) for s, one in enumerate(subs) if one.root]
    width = 2 if case.undirected else 1  # policies that edit edges have both ends as roots
    root = torch.tensor([[int(batch.ptr[s]) + r for r in roots] for s, roots in rooted], dtype=torch.long)
    node = batch.node + torch.from_numpy(first_node)[graph][batch.batch]
    original = Batch.from_data_list(
        [Data(edge_index=g.edge_index, edge_attr=g.edge_attr, num_nodes=g.num_nodes) for g in graphs]
    )
    root = root.reshape(-1, width)
    return Stacked(
        batch.x, batch.mark, node, batch.batch, batch.edge_index, batch.edge_attr, batch.edge_mark, root,
        node[root] if width == 2 else node[root[:, 0]],
        graph, (len(subs), int(first_node[-1]), len(graphs)), original,
    )  # fmt: skip
