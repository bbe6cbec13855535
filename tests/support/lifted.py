"""Models as PyG's tutorials have them, and what a lifted one must give: the model itself on subgraphs that are written out."""

from __future__ import annotations

import copy
import inspect
from typing import Any

import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import MLP, GATConv, GCNConv, GINConv, GINEConv, global_add_pool, global_max_pool, global_mean_pool
from torch_geometric.nn.models.basic_gnn import BasicGNN
from torch_geometric.utils import add_self_loops, degree

from enfa.edits import Policy
from enfa.edits.check import check_edits
from enfa.graphs import check_graphs
from enfa.nn.bag import lift, make_plan
from enfa.plan.reference.full import full_step_plan
from enfa.plan.step import Program, Step

WIDTH = 5


class Tutorial(nn.Module):
    """Three GCN layers, mean pool, dropout, linear."""

    def __init__(self, ins: int, drop: float = 0.0) -> None:
        super().__init__()
        self.conv1, self.conv2, self.lin = GCNConv(ins, WIDTH), GCNConv(WIDTH, WIDTH), nn.Linear(WIDTH, 2)
        self.drop = drop

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        x = self.conv1(x, edge_index).relu()
        x = self.conv2(x, edge_index)
        x = F.dropout(global_mean_pool(x, batch), p=self.drop, training=self.training)
        return self.lin(x)


class OfData(nn.Module):
    """forward(data), BatchNorm, a residual connection, several pools by module name, log_softmax."""

    def __init__(self, ins: int) -> None:
        super().__init__()
        self.embed = nn.Linear(ins, WIDTH)
        self.convs = nn.ModuleList(GINConv(MLP([WIDTH, WIDTH, WIDTH])) for _ in range(2))
        self.norms = nn.ModuleList(pyg.BatchNorm(WIDTH) for _ in range(2))
        self.head = MLP([2 * WIDTH, WIDTH, 2])

    def forward(self, data: Any) -> Tensor:
        x, edge_index, batch = data.x, data.edge_index, data.batch
        x = self.embed(x)
        for conv, norm in zip(self.convs, self.norms):
            x = x + F.relu(norm(conv(x, edge_index)))
        x = torch.cat([pyg.global_add_pool(x, batch), pyg.global_max_pool(x, batch)], dim=1)
        return F.log_softmax(self.head(x), dim=-1)


def readout(x: Tensor, batch: Tensor) -> Tensor:
    return torch.cat([global_mean_pool(x, batch), global_max_pool(x, batch)], 1)


class Attends(nn.Module):
    """Attention with loops, a readout of the author's own, one output without an axis of its own."""

    def __init__(self, ins: int) -> None:
        super().__init__()
        self.conv1, self.conv2 = GATConv(ins, WIDTH, heads=2), GATConv(2 * WIDTH, WIDTH)
        self.head = nn.Linear(2 * WIDTH, 1)

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None = None, batch: Tensor | None = None) -> Tensor:
        x = F.elu(self.conv1(x, edge_index))
        return self.head(readout(self.conv2(x, edge_index), batch)).squeeze(-1)


class VirtualNode(nn.Module):
    """What was pooled comes back to the nodes; a pool that is a module; edge attributes."""

    def __init__(self, ins: int) -> None:
        super().__init__()
        self.embed, self.bond = nn.Linear(ins, WIDTH), nn.Linear(2, WIDTH)
        self.conv1, self.conv2 = GINEConv(MLP([WIDTH, WIDTH, WIDTH])), GINEConv(MLP([WIDTH, WIDTH, WIDTH]))
        self.virtual, self.norm = nn.Linear(WIDTH, WIDTH), nn.BatchNorm1d(WIDTH)
        self.pool = pyg.aggr.AttentionalAggregation(nn.Linear(WIDTH, 1), nn.Linear(WIDTH, WIDTH))
        self.head = nn.Linear(WIDTH, 2)

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor, batch: Tensor) -> Tensor:
        x, edge = self.embed(x), self.bond(edge_attr)
        x = self.conv1(x, edge_index, edge)
        x = x + self.norm(self.virtual(global_add_pool(x, batch)))[batch]
        return self.head(self.pool(self.conv2(x, edge_index, edge).relu(), batch))


class TutorialConv(pyg.MessagePassing):
    """The GCN layer of PyG's tutorial, but for what it writes into a tensor."""

    def __init__(self, ins: int, outs: int) -> None:
        super().__init__(aggr="add")
        self.lin = nn.Linear(ins, outs)

    def forward(self, x, edge_index):
        edge_index, _ = add_self_loops(edge_index, num_nodes=x.size(0))
        row, col = edge_index
        norm = degree(col, x.size(0), dtype=x.dtype).pow(-0.5)
        return self.propagate(edge_index, x=self.lin(x), norm=norm[row] * norm[col])

    def message(self, x_j, norm):
        return norm.view(-1, 1) * x_j


class Own(nn.Module):
    """Convs of the author's own."""

    def __init__(self, ins: int) -> None:
        super().__init__()
        self.convs = nn.ModuleList([TutorialConv(ins, WIDTH), TutorialConv(WIDTH, 2)])

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return global_add_pool(self.convs[1](self.convs[0](x, edge_index).tanh(), edge_index), batch)


def written_out(graphs: list[Data], policy: Policy) -> tuple[dict[str, Tensor], Tensor]:
    """(the arguments of a model for all subgraphs at once, the graph of each subgraph)."""
    checked = check_graphs(graphs)
    edits = check_edits(checked, policy.edits(checked), repr(policy))
    program = Program((Step("start", "pairs"), Step("propagate", "pairs", (0,), True), Step("pool", "subgraphs", (1,))))
    plan = full_step_plan(checked, edits, program)
    links, pool = plan.tables[1].links, plan.tables[2].sums
    assert links is not None and pool is not None and plan.edge_rows is not None
    target = torch.repeat_interleave(torch.arange(links.num_rows), links.in_ptr.diff())
    given = {
        "x": torch.cat([plan.x_rows[plan.feature].double(), plan.mark_rows[plan.marked].double()], 1),
        "edge_index": torch.stack([links.in_row.long(), target]),
        "edge_attr": plan.edge_rows[links.in_edge.long()].double(),
        "batch": torch.repeat_interleave(torch.arange(plan.num_subgraphs), pool.ptr.diff()),
    }
    return given, torch.from_numpy(edits.graph).long()


def results(model: nn.Module, out: Tensor) -> dict[str, Tensor]:
    (out * torch.linspace(0.5, 1.5, out.numel(), dtype=out.dtype).view_as(out)).sum().backward()
    found = {"output": out.detach()} | {f"gradient of {n}": p.grad for n, p in model.named_parameters() if p.grad is not None}
    return found | {f"buffer {n}": b.clone() for n, b in model.named_buffers() if b.is_floating_point()}


def lifted_results(model: nn.Module, graphs: list[Data], policy: Policy, kind: str, **options: Any) -> dict[str, Tensor]:
    model = copy.deepcopy(model)
    lifted = lift(model, **options)
    return results(model, lifted(make_plan(graphs, policy, lifted, kind)))


def pyg_results(model: nn.Module, graphs: list[Data], policy: Policy, how: str = "mean") -> dict[str, Tensor]:
    """By the model itself, every subgraph a graph of its own."""
    model, (given, graph) = copy.deepcopy(model), written_out(graphs, policy)
    names: Any = inspect.signature(model.forward).parameters
    if isinstance(model, pyg.Sequential):
        names = model.signature.param_dict
    if isinstance(model, BasicGNN):
        given.pop("edge_attr")
    out = model(Data(**given)) if "data" in names else model(**{k: v for k, v in given.items() if k in names})
    pool = {"mean": global_mean_pool, "sum": global_add_pool, "max": global_max_pool}
    if isinstance(model, BasicGNN):
        out = global_add_pool(out, given["batch"], len(graph))
    return results(model, pool[how](out.view(len(graph), -1), graph, len(graphs)).view(len(graphs), *out.shape[1:]))


def difference(mine: dict[str, Tensor], other: dict[str, Tensor]) -> float:
    """The largest one, relative to the largest number of its tensor; of gradients, to the largest of all."""
    assert mine.keys() == other.keys()
    scale = max(float(v.abs().max()) for k, v in mine.items() if k.startswith("gradient"))
    size = {k: scale if k.startswith("gradient") else max(float(v.abs().max()), 1e-6) for k, v in mine.items()}
    assert all(value.shape == other[name].shape for name, value in mine.items())
    return max(float((value - other[name]).abs().max()) / size[name] for name, value in mine.items())


MODELS = [Tutorial, OfData, Attends, VirtualNode, Own]
