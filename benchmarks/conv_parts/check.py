"""Whether a conv is exact: against PyG's own run of it on every subgraph, written out, and between the two plans."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import global_add_pool, global_mean_pool

import enfa
from enfa.edits import Policy
from enfa.edits.check import check_edits
from enfa.graphs import check_graphs
from enfa.nn.bag import make_plan
from enfa.plan.reference.full import full_step_plan
from enfa.plan.step import Program, Step

from .cases import WIDTH, Case

__all__ = ["NEAR", "Stack", "difference", "graphs_without_loops", "verdict"]

POLICIES: list[Policy] = [enfa.NodeMarking(), enfa.NodeDeletion(), enfa.EdgeDeletion(), enfa.EgoNets(1, mark=True)]
NEAR = 1e-10


class Stack(nn.Module):
    """Two layers of a conv, and the two pools: on Rows, and by PyG itself on subgraphs that are written out."""

    def __init__(self, case: Case, marks: int, channels: int = 2) -> None:
        super().__init__()
        self.case = case
        self.embed = nn.Linear(channels + marks, WIDTH)
        self.convs = nn.ModuleList([case.make(), case.make()])
        self.between, self.norm = nn.LazyLinear(WIDTH), nn.BatchNorm1d(WIDTH)
        self.head = nn.LazyLinear(2)

    def _layers(self, h: Any, edge: Any, conv_of: Any) -> Any:
        for i, conv in enumerate(self.convs):
            out = conv_of(conv, h, {} if self.case.more is None else self.case.more(h, edge))
            h = self.norm(self.between(out)).relu() if i == 0 else out
        return h

    def forward(self, bag: Any) -> Tensor:
        h = self.embed(torch.cat([bag.x, bag.mark], 1))
        edge = bag.edge_attr if self.case.reads_edges else None
        h = self._layers(h, edge, lambda conv, h, more: bag.propagate(conv, h, **more))
        return self.head(bag.pool(bag.pool(h, "sum"), "mean"))

    def written_out(self, x: Tensor, edge_index: Tensor, edge: Tensor, sub: Tensor, graph: Tensor, count: int) -> Tensor:
        h = self._layers(self.embed(x), edge, lambda conv, h, more: conv(h, edge_index=edge_index, **more))
        return self.head(global_mean_pool(global_add_pool(h, sub, len(graph)), graph, count))


def graphs_without_loops(seed: int = 0, directed: bool = True) -> list[Data]:
    """A path, a cycle, a star, a complete graph, random directed ones, one without edges; few kinds of nodes and edges."""
    generator = torch.Generator().manual_seed(seed)
    pairs = [
        [(0, 1), (1, 2), (2, 3), (3, 4)], [(i, (i + 1) % 6) for i in range(6)], [(0, i) for i in range(1, 5)],
        [(i, j) for i in range(4) for j in range(i)], [(0, 1), (0, 1), (1, 2)],
    ]  # fmt: skip
    graphs = []
    for listed in pairs:
        one = torch.tensor(listed).T
        graphs.append((int(one.max()) + 1, torch.cat([one, one.flip(0)], 1)))
    for nodes in (5, 6) if directed else ():
        edges = torch.randint(nodes, (2, 3 * nodes), generator=generator)
        graphs.append((nodes, edges[:, edges[0] != edges[1]]))
    graphs.append((2, torch.empty(2, 0, dtype=torch.int64)))
    values = torch.tensor([-0.7, 0.4, 1.3], dtype=torch.float64)
    return [
        Data(
            x=values[torch.randint(2, (n, 2), generator=generator)],
            edge_index=e,
            edge_attr=values[torch.randint(3, (e.shape[1], 2), generator=generator)],
        )
        for n, e in graphs
    ]


def _written_out(graphs: list[Data], policy: Policy) -> dict[str, Any]:
    checked = check_graphs(graphs)
    edits = check_edits(checked, policy.edits(checked), repr(policy))
    program = Program((Step("start", "pairs"), Step("propagate", "pairs", (0,), True), Step("pool", "subgraphs", (1,))))
    plan = full_step_plan(checked, edits, program)
    links, pool = plan.tables[1].links, plan.tables[2].sums
    target = torch.repeat_interleave(torch.arange(links.num_rows), links.in_ptr.diff())
    return {
        "x": torch.cat([plan.x_rows[plan.feature].double(), plan.mark_rows[plan.marked].double()], 1),
        "edge_index": torch.stack([links.in_row.long(), target]),
        "edge": plan.edge_rows[links.in_edge.long()].double(),
        "sub": torch.repeat_interleave(torch.arange(plan.num_subgraphs), pool.ptr.diff()),
        "graph": torch.from_numpy(edits.graph).long(),
        "count": len(graphs),
    }


def _results(model: nn.Module, out: Tensor) -> dict[str, Tensor]:
    (out * torch.linspace(0.5, 1.5, out.numel(), dtype=out.dtype).view_as(out)).sum().backward()
    found = {"output": out.detach()}
    found |= {f"gradient of {n}": p.grad for n, p in model.named_parameters() if p.grad is not None}
    return found | {n: b.clone() for n, b in model.named_buffers() if b.is_floating_point()}


def difference(mine: dict[str, Tensor], other: dict[str, Tensor]) -> float:
    """The largest one, relative to the largest number of its tensor, or of all gradients."""
    assert mine.keys() == other.keys(), mine.keys() ^ other.keys()
    scale = max((float(v.abs().max()) for k, v in mine.items() if k.startswith("gradient") and v.numel()), default=1.0)
    worst = 0.0
    for name, value in mine.items():
        if value.numel():
            size = max(float(value.abs().max()), scale if name.startswith("gradient") else 1e-6)
            worst = max(worst, float((value - other[name]).abs().max()) / size)
    return worst


def _compared(case: Case, graphs: list[Data], policy: Policy, training: bool) -> float:
    torch.manual_seed(1)
    model = Stack(case, policy.mark_channels).double()
    written = _written_out(graphs, policy)
    with torch.no_grad():
        model.eval().written_out(**written)  # lazy layers take shape
        for name, value in model.named_parameters():
            value.add_(0.1 * torch.randn_like(value) if "bias" in name else 0.0)
    results = {}
    for kind in ("PyG", "full", "distinct"):
        here = copy.deepcopy(model).train(training)
        if kind == "PyG":
            out = here.written_out(**written)
        else:
            out = here(make_plan(graphs, policy, here, kind))
        results[kind] = _results(here, out)
    return max(difference(results["PyG"], results[kind]) for kind in ("full", "distinct"))


def _refused(case: Case, graphs: list[Data], policy: Policy, training: bool) -> str | None:
    """The sentence with which the conv is refused, on a plan or when one is made."""
    with torch.random.fork_rng():
        try:
            model = Stack(case, policy.mark_channels).double().train(training)
            model(make_plan(graphs, policy, model))
        except (TypeError, ValueError) as error:
            return str(error)
    return None


def verdict(case: Case, policies: list[Policy] | None = None) -> tuple[bool, str]:
    """(True, the largest difference), or (False, why it is refused). Whatever else goes wrong is raised."""
    worst = 0.0
    for policy in POLICIES if policies is None else policies:
        graphs = graphs_without_loops(directed=not isinstance(policy, enfa.EdgeDeletion))
        for training in (True, False):
            reason = _refused(case, graphs, policy, training)
            if reason is not None:
                return False, reason
            worst = max(worst, _compared(case, graphs, policy, training))
    if worst > NEAR:
        raise AssertionError(f"{case.name} ({case.note}) differs by {worst:.1e}")
    return True, f"{worst:.0e}"
