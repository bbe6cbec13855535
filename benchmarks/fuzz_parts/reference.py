"""The conventional model on explicit subgraphs: PyG's convs, torch.nn.BatchNorm1d over all their nodes, plain pools.

Parameters and buffers have the names that the package's models give them, but for those inside convs, so that weights
are copied with ``load_state_dict``, which sees to it that none is left out. No code is shared with the package's plans
or layers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

from fuzz_parts.convs import OWN, READS_EDGES, plain_conv, plain_norm, renamed
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


class _Embedding(nn.Module):
    """One embedding per categorical column, summed; all in one matrix, one under the other. Floats pass."""

    def __init__(self, channels: int | list[int] | None, hidden: int) -> None:
        super().__init__()
        self.first = None
        if isinstance(channels, list):
            self.weight = nn.Parameter(torch.empty(sum(channels), hidden))
            self.first = torch.tensor([0, *channels[:-1]]).cumsum(0)

    def forward(self, values: Tensor) -> Tensor:
        return values.double() if self.first is None else self.weight[values + self.first].sum(1)


def _module(**parts: nn.Module) -> nn.Module:
    """Modules under names."""
    found = nn.Module()
    for name, part in parts.items():
        found.add_module(name, part)
    return found


class Reference(nn.Module):
    """Made for a case, with the weights of the package's model, before that is run."""

    def __init__(self, case: Case, model: nn.Module) -> None:
        super().__init__()
        self.case, o, hidden = case, case.options, case.hidden
        kind, norm, depth = case.settings["model"], o["norm"], case.settings["depth"]
        self.encoder = _module(embed=_Embedding(case.channels, hidden))
        self.edge_encoder = _module(embed=_Embedding(o["edge_channels"], hidden))
        widths = [(hidden if isinstance(case.channels, list) else case.channels) + o["mark_channels"]]
        widths += [hidden] * (depth - 1)
        layers = []
        for width in widths:
            layer = _module(conv=self._made(width), norm=plain_norm(norm, hidden))
            if kind in ("dss", "mpnn"):
                seen = width if kind == "dss" else hidden
                layer.add_module("context", _module(conv=self._made(seen), norm=plain_norm(norm, hidden)))
            layers.append(layer)
        self.layers = nn.ModuleList(layers)
        self.subgraph_mlp = nn.Sequential(nn.Linear(hidden * (depth if o["jk"] == "concat" else 1), hidden), nn.ReLU())
        self.head = nn.Sequential(
            nn.Linear(hidden, hidden), nn.ReLU(), nn.Identity(), nn.Linear(hidden, case.out)
        )
        for part in self.modules():
            if isinstance(part, nn.BatchNorm1d):
                part.eps = next(p.eps for p in model.modules() if isinstance(p, nn.BatchNorm1d))
        self.double().train(model.training)
        given = {self.name_of(name): value for name, value in model.state_dict().items() if ".dropout." not in name}
        missing, unexpected = self.load_state_dict(given, strict=False)
        if unexpected or any(not name.endswith(".eps") for name in missing):  # GIN's constant 0
            raise ValueError(f"Expected the same tensors on both sides, got {unexpected} and not {missing}")

    def _made(self, width: int) -> nn.Module:
        case = self.case
        return plain_conv(case.settings["conv"], width, case.hidden, case.edge_dim, case.options["norm"])

    def name_of(self, name: str) -> str:
        """What a tensor of the package's model is called here."""
        conv = self.case.settings["conv"]
        before, found, inside = name.partition(".conv.")
        return f"{before}.conv.{renamed(conv, inside)}" if found else name

    def _conv(self, conv: nn.Module, h: Tensor, edge_index: Tensor, attr: Tensor | None, mark: Tensor) -> Tensor:
        name, edge_channels = self.case.settings["conv"], self.case.options["edge_channels"]
        if name == "gcn":
            loops = torch.arange(len(h)).expand(2, -1)
            return conv(h, torch.cat([edge_index, loops], 1))
        source = h if name in OWN else (h, h)
        if name not in READS_EDGES or self.case.edge_dim is None:
            return conv(source, edge_index)
        parts = [mark] if edge_channels is None else [self.edge_encoder.embed(attr), mark]
        return conv(source, edge_index, edge_attr=torch.cat(parts, 1))

    def forward(self, subs: Stacked) -> Tensor:
        case, kind = self.case, self.case.settings["model"]
        unmarked = subs.edge_mark.new_zeros(subs.original.edge_index.shape[1], subs.edge_mark.shape[1])
        whole = subs.original.edge_index, subs.original.edge_attr, unmarked
        edges = subs.edge_index, subs.edge_attr, subs.edge_mark
        nodes = subs.counts[1]
        h = torch.cat([self.encoder.embed(subs.x), subs.mark], 1)
        tables = []
        for layer in self.layers:
            new = layer.norm(self._conv(layer.conv, h, *edges))
            if kind == "dss":
                seen = self._conv(layer.context.conv, _pool(h, subs.node, nodes, "mean"), *whole)
                new = torch.relu(new + layer.context.norm(seen)[subs.node])
            else:
                new = torch.relu(new)
            if kind in ("identity", "mpnn"):
                seen = _pool(new, subs.node, nodes, "sum")
                if kind == "mpnn":
                    seen = layer.context.norm(self._conv(layer.context.conv, seen, *whole))
                new = new + seen[subs.node]
            h = new + h if case.options["residual"] and new.shape == h.shape else new
            tables.append(h)
        jk, readout = case.options["jk"], case.options["readout"]
        h = {"last": lambda: h, "concat": lambda: torch.cat(tables, 1), "sum": lambda: sum(tables)}[jk]()
        if readout == "root":
            h = h[subs.root].sum(1)
        elif readout == "node":
            h = _pool(h, subs.node, nodes, "mean")
        else:
            h = _pool(h, subs.sub, subs.counts[0], readout)
        h = self.subgraph_mlp(h)
        if readout not in ("root", "node"):
            h = _pool(h, subs.graph, subs.counts[2], case.options["bag"])
        return self.head(h)


def _pool(h: Tensor, of: Tensor, count: int, how: str) -> Tensor:
    """[count, C]; zeros where there is nothing to pool."""
    out, index = h.new_zeros(count, h.shape[1]), of[:, None].expand_as(h)
    reduce = {"sum": "sum", "mean": "sum", "max": "amax"}[how]
    out = out.scatter_reduce(0, index, h, reduce, include_self=False)
    return out / torch.bincount(of, minlength=count).clamp(min=1)[:, None] if how == "mean" else out
