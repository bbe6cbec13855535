"""The conventional model, written with PyG's convs, torch.nn.BatchNorm1d and PyG's pools on explicit subgraphs.

Takes its weights from a model of the package, and shares no code with it.
"""

from collections.abc import Callable, Iterator

import torch
from cases import HIDDEN, conv_of
from subgraphs import bag
from torch import Tensor, nn
from torch_geometric import nn as pyg
from torch_geometric.data import Batch, Data

import enfa

Pairs = list[tuple[str, list[Tensor], Tensor]]  # name, tensors here (stacked), tensor there

POOLS: dict[str, Callable] = {"sum": pyg.global_add_pool, "mean": pyg.global_mean_pool, "max": pyg.global_max_pool}


class Embeddings(nn.Module):
    """One nn.Embedding per categorical column, summed; floats pass."""

    def __init__(self, channels: int | list[int] | None) -> None:
        super().__init__()
        columns = channels if isinstance(channels, list) else []
        self.columns = nn.ModuleList(nn.Embedding(c, HIDDEN) for c in columns)

    def forward(self, values: Tensor) -> Tensor:
        if not self.columns:
            return values.double()
        return torch.stack([embed(values[:, c]) for c, embed in enumerate(self.columns)]).sum(0)


def _mlp(i: int, o: int, norm: str) -> nn.Sequential:
    return nn.Sequential(nn.Linear(i, o), _norm(norm, o), nn.ReLU(), nn.Linear(o, o))


def _norm(norm: str, channels: int) -> nn.Module:
    return {"batch": nn.BatchNorm1d, "layer": nn.LayerNorm, "none": nn.Identity}[norm](channels)


def _conv(name: str, i: int, o: int, edge_dim: int | None, norm: str) -> nn.Module:
    if name == "gin":
        return pyg.GINConv(_mlp(i, o, norm))
    if name == "gine":
        return pyg.GINEConv(_mlp(i, o, norm), edge_dim=edge_dim)
    if name == "graphconv":
        return pyg.GraphConv(i, o)
    if name == "gcn":
        return pyg.GCNConv(i, o)
    maker = conv_of(name, edge_dim)
    assert not isinstance(maker, str)
    return maker(i, o)


def _tensors(module: nn.Module) -> dict[str, Tensor]:
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def _conv_pairs(name: str, here: nn.Module, there: nn.Module) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Which tensor of a PyG conv is which of the package's."""
    prefixes = {
        "gin": {"nn": "update"},
        "gine": {"nn": "update", "lin": "edge"},
        "graphconv": {"lin_rel": "incoming", "lin_root": "own"},
        "gcn": {"lin": "update", "bias": "update.bias"},
    }.get(name)
    theirs = _tensors(there)
    for key, tensor in _tensors(here).items():
        if key == "eps" and not isinstance(tensor, nn.Parameter):  # a constant 0
            continue
        if prefixes is None:
            yield key, tensor, theirs[key]
        else:
            prefix = next(p for p in prefixes if key.startswith(p))
            yield key, tensor, theirs[prefixes[prefix] + key.removeprefix(prefix)]


class Reference(nn.Module):
    """``case`` is one of the exactness tester's, without dropout."""

    def __init__(self, case: dict, model: enfa.DSGNN | enfa.DSSGNN, node_channels, edge_channels) -> None:
        super().__init__()
        self.case = case
        self.embed, self.embed_edges = Embeddings(node_channels), Embeddings(edge_channels)
        edge_dim = HIDDEN if isinstance(edge_channels, list) else edge_channels
        width = (HIDDEN if isinstance(node_channels, list) else node_channels) + 1
        layers, name, norm = len(model.layers), case["conv"], case["norm"]
        widths = [width] + [HIDDEN] * (layers - 1)
        self.convs = nn.ModuleList(_conv(name, i, HIDDEN, edge_dim, norm) for i in widths)
        self.norms = nn.ModuleList(_norm(norm, HIDDEN) for _ in widths)
        encoded = case["context"] in ("dss", "mpnn")
        context_widths = (widths if case["context"] == "dss" else [HIDDEN] * layers) if encoded else []
        self.context_convs = nn.ModuleList(_conv(name, i, HIDDEN, edge_dim, norm) for i in context_widths)
        self.context_norms = nn.ModuleList(_norm(norm, HIDDEN) for _ in context_widths)
        pooled = HIDDEN * layers if case["jk"] == "concat" else HIDDEN
        self.per_subgraph = nn.Linear(pooled, HIDDEN)
        self.first, self.last = nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, 2)
        self.double()
        self.pairs = self._pairs(model)
        with torch.no_grad():
            for _, here, there in self.pairs:
                torch.cat([h.flatten() for h in here]).copy_(there.flatten())  # checks the sizes
                for h, part in zip(here, there.split([len(h) for h in here]) if there.ndim else [there]):
                    h.copy_(part)

    def _pairs(self, model: enfa.DSGNN | enfa.DSSGNN) -> Pairs:
        found: Pairs = []
        if self.embed.columns:
            found.append(("nodes", [e.weight for e in self.embed.columns], model.encoder.embed.weight))
        if self.embed_edges.columns and model.edge_encoder is not None:
            found.append(("edges", [e.weight for e in self.embed_edges.columns], model.edge_encoder.embed.weight))
        for i, layer in enumerate(model.layers):
            modules = [(f"conv {i}", self.convs[i], layer.conv), (f"norm {i}", self.norms[i], layer.norm)]
            if self.context_convs:
                modules += [
                    (f"context conv {i}", self.context_convs[i], layer.encoder[0]),
                    (f"context norm {i}", self.context_norms[i], layer.encoder[1]),
                ]
            for what, here, there in modules:
                if "conv" in what:
                    found += [(f"{what} {k}", [h], t) for k, h, t in _conv_pairs(self.case["conv"], here, there)]
                else:
                    found += [(f"{what} {k}", [h], _tensors(there)[k]) for k, h in _tensors(here).items()]
        for here, there in (
            (self.per_subgraph, model.subgraph_mlp[0]), (self.first, model.head[0]), (self.last, model.head[3]),
        ):  # fmt: skip
            found += [("head", [here.weight], there.weight), ("head", [here.bias], there.bias)]
        return found

    def forward(self, graphs: list[Data]) -> Tensor:
        bags = [bag(graph, self.case["policy"]) for graph in graphs]
        subs = Batch.from_data_list([one for each in bags for one in each])
        original = Batch.from_data_list([Data(edge_index=g.edge_index, edge_attr=g.edge_attr, num_nodes=g.num_nodes)
                                         for g in graphs])  # fmt: skip
        h = torch.cat([self.embed(subs.x), subs.mark.double()], 1)
        tables = []
        for i, conv in enumerate(self.convs):
            z = self.norms[i](self._conv(conv, h, subs))
            if self.case["context"] == "dss":
                seen = self._dense(h, bags, mean=True)
                seen = self.context_norms[i](self._conv(self.context_convs[i], seen, original))
                new = torch.relu(z + self._back(seen, bags))
            else:
                new = torch.relu(z)
                if self.case["context"] != "none":
                    seen = self._dense(new, bags, mean=False)
                    if self.case["context"] == "mpnn":
                        seen = self.context_norms[i](self._conv(self.context_convs[i], seen, original))
                    new = new + self._back(seen, bags)
            if self.case["residual"] and new.shape == h.shape:
                new = new + h
            h = new
            tables.append(h)
        pool = POOLS[self.case["readout"]]
        count = sum(len(each) for each in bags)
        if self.case["jk"] == "concat":
            pooled = torch.cat([pool(table, subs.batch, size=count) for table in tables], 1)
        else:
            pooled = pool(sum(tables) if self.case["jk"] == "sum" else h, subs.batch, size=count)
        of_graph = torch.repeat_interleave(torch.tensor([len(each) for each in bags]))
        pooled = POOLS[self.case["bag"]](torch.relu(self.per_subgraph(pooled)), of_graph, size=len(graphs))
        return self.last(torch.relu(self.first(pooled)))

    def _conv(self, conv: nn.Module, h: Tensor, data: Data) -> Tensor:
        if self.case["conv"] in ("gine", "GINEConv", "GATv2Conv", "TransformerConv") and data.edge_attr is not None:
            return conv(h, data.edge_index, edge_attr=self.embed_edges(data.edge_attr))
        return conv(h, data.edge_index)

    @staticmethod
    def _dense(h: Tensor, bags: list[list[Data]], mean: bool) -> Tensor:
        """[all nodes, C]: per graph a dense [subgraphs, nodes, C] array, summed over the bag."""
        found, rows = [], iter(h.split([one.num_nodes for each in bags for one in each]))
        for each in bags:
            n = max((int(one.node.max()) + 1 for one in each if len(one.node)), default=0)
            n = max(n, each[0].nodes_before)
            dense, there = h.new_zeros(len(each), n, h.shape[1]), h.new_zeros(len(each), n, 1)
            for s, one in enumerate(each):
                dense[s, one.node], there[s, one.node] = next(rows), 1.0
            found.append(dense.sum(0) / (there.sum(0).clamp(min=1) if mean else 1.0))
        return torch.cat(found)

    @staticmethod
    def _back(seen: Tensor, bags: list[list[Data]]) -> Tensor:
        """[all pairs, C]: to every subgraph what its nodes see."""
        parts = seen.split([each[0].nodes_before for each in bags])
        return torch.cat([part[one.node] for part, each in zip(parts, bags) for one in each])
