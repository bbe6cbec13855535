"""Ego nets written out with PyG alone, in one disjoint union, for references of models that run on them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.utils import k_hop_subgraph

from enfa.nn.models.base import SubgraphLayer
from enfa.nn.ops.norm import CountedBatchNorm


@dataclass
class Nets:
    """Row r is node ``node[r]`` in net ``net[r]``, ``hop[r]`` hops from its root; nodes are counted through all graphs."""

    node: Tensor
    net: Tensor
    hop: Tensor
    edge_index: Tensor  # [2, edges] of rows
    edge: Tensor  # the column of each edge in the edges of all graphs
    root: Tensor  # [nets]: the node
    side: Tensor  # [nets]: the neighbour that is marked, -1 for none
    of_graph: Tensor  # [nodes]
    x: Tensor

    @property
    def at_root(self) -> Tensor:
        """[nets]: the row of each root in its net."""
        return (self.node == self.root[self.net]).nonzero()[:, 0]

    def mean(self, h: Tensor) -> Tensor:
        return mean_by(h, self.net, len(self.root))


def mean_by(h: Tensor, index: Tensor, size: int) -> Tensor:
    total = h.new_zeros(size, h.shape[1]).index_add(0, index, h)
    return total / torch.bincount(index, minlength=size).clamp(min=1)[:, None]


def nets_of(graphs: list[Data], hops: int, neighbors: bool = False) -> Nets:
    node, net, hop, edges, columns, root, side = [], [], [], [], [], [], []
    first = first_edge = rows = 0
    for graph in graphs:
        index, n = graph.edge_index, graph.num_nodes
        for i in range(n):
            near = sorted({int(u) for u, v in index.T if v == i and u != i}) if neighbors else []
            inside, _, _, mask = k_hop_subgraph(i, hops, index, num_nodes=n)
            away = torch.full((n,), hops)
            for h in range(hops, -1, -1):
                away[k_hop_subgraph(i, h, index, num_nodes=n)[0]] = h
            number = torch.full((n,), -1)
            for j in near or [-1]:
                number[inside] = rows + torch.arange(len(inside))
                node.append(inside + first)
                net.append(torch.full_like(inside, len(root)))
                hop.append(away[inside])
                edges.append(number[index[:, mask]])
                columns.append(mask.nonzero()[:, 0] + first_edge)
                root.append(i + first)
                side.append(j + first if j >= 0 else -1)
                rows += len(inside)
        first, first_edge = first + n, first_edge + index.shape[1]
    of_graph = torch.repeat_interleave(torch.arange(len(graphs)), torch.tensor([g.num_nodes for g in graphs]))
    x = torch.cat([g.x for g in graphs]).double()
    joined = (torch.cat(parts) for parts in (node, net, hop))
    return Nets(*joined, torch.cat(edges, 1), torch.cat(columns), torch.tensor(root), torch.tensor(side), of_graph, x)


def plain(module: nn.Module) -> nn.Module:
    """The same module with PyTorch's own BatchNorm in place of counted ones."""
    for name, child in module.named_children():
        if isinstance(child, CountedBatchNorm):
            norm = nn.BatchNorm1d(child.num_features, child.eps, child.momentum).to(child.weight.dtype)
            norm.load_state_dict({k: v for k, v in child.state_dict().items() if k in norm.state_dict()})
            setattr(module, name, norm.train(child.training))
        else:
            plain(child)
    return module


def gin_layer(layer: SubgraphLayer, h: Tensor, nets: Nets) -> Tensor:
    """act(norm(MLP(x_v + sum of x_u))), and a residual connection."""
    src, dst = nets.edge_index
    summed = h + torch.zeros_like(h).index_add(0, dst, h[src])
    out = layer.norm(layer.conv.update(summed)).relu()  # type: ignore[operator]
    return out + h if layer.residual and out.shape == h.shape else out
