"""The conventional model on explicit subgraphs: PyG's convs, torch.nn.BatchNorm1d over all their nodes, plain pools.

Parameters and buffers have the names that the package's models give them, but for those inside convs, so that weights
are copied with ``load_state_dict``, which sees to it that none is left out. No code is shared with the package's plans
or layers.
"""

from __future__ import annotations

import re

import torch
from torch import Tensor, nn

from fuzz_parts.convs import OWN, READS_EDGES, plain_conv, plain_norm, renamed
from fuzz_parts.draw import Case
from fuzz_parts.stack import Stacked


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
                layer.add_module("encoder", nn.ModuleList([self._made(seen), plain_norm(norm, hidden)]))
            layers.append(layer)
        self.layers = nn.ModuleList(layers)
        self.subgraph_mlp = nn.Sequential(nn.Linear(hidden * (depth if o["jk"] == "concat" else 1), hidden), nn.ReLU())
        self.head = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Identity(), nn.Linear(hidden, case.out))
        for part in self.modules():
            if isinstance(part, nn.BatchNorm1d):
                part.eps = next(p.eps for p in model.modules() if isinstance(p, nn.BatchNorm1d))
        self.double().train(model.training)
        given = {self.name_of(name): value for name, value in model.state_dict().items()}
        missing, unexpected = self.load_state_dict(given, strict=False)
        if unexpected or any(not name.endswith(".eps") for name in missing):  # GIN's constant 0
            raise ValueError(f"Expected the same tensors on both sides, got {unexpected} and not {missing}")

    def _made(self, width: int) -> nn.Module:
        case = self.case
        return plain_conv(case.settings["conv"], width, case.hidden, case.edge_dim, case.options["norm"])

    def name_of(self, name: str) -> str:
        """What a tensor of the package's model is called here."""
        inside = re.match(r"(layers\.\d+\.(?:conv|encoder\.0)\.)(.*)", name)
        return inside[1] + renamed(self.case.settings["conv"], inside[2]) if inside else name

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
                seen = self._conv(layer.encoder[0], _pool(h, subs.node, nodes, "mean"), *whole)
                new = torch.relu(new + layer.encoder[1](seen)[subs.node])
            else:
                new = torch.relu(new)
            if kind in ("identity", "mpnn"):
                seen = _pool(new, subs.node, nodes, "sum")
                if kind == "mpnn":
                    seen = layer.encoder[1](self._conv(layer.encoder[0], seen, *whole))
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
