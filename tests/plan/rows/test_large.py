"""Large graphs: where a model reads roots and counts no rows, what is looked up grows with the graph, not with its square."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from cases import EVERY, POLICIES
from drawn import OWN
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv, GINConv, GINEConv, GraphConv

import enfa
from enfa.graphs import check_graphs
from enfa.nn.bag import make_plan, trace
from enfa.plan.rows import builder, hubs
from enfa.plan.rows._walk import HUB
from enfa.plan.rows.distinct import _depths, step_rows_of
from enfa.plan.step import Program, Step
from enfa.testing import assert_same_as_full, large_graph

torch.set_num_threads(1)
CONVS = {
    "gin": lambda: GINConv(nn.Sequential(nn.Linear(6, 6), nn.ReLU())),
    "gcn": lambda: GCNConv(6, 6),
    "graphconv": lambda: GraphConv(6, 6),
    "gine": lambda: GINEConv(nn.Linear(6, 6), edge_dim=1),
}


class Near(nn.Module):
    """Reads the roots of subgraphs, or pools all of their nodes. Counts no rows, but where it has a BatchNorm."""

    def __init__(
        self, kinds: int = 4, marks: int = 1, layers: int = 3, conv: str = "gin", read: str = "root", norm: bool = False
    ) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.mark, self.read, self.conv = nn.Embedding(kinds, 6), nn.Linear(marks, 6), read, conv
        self.convs = nn.ModuleList(CONVS[conv]() for _ in range(layers))
        self.norms = nn.ModuleList(nn.BatchNorm1d(6) if norm else nn.LayerNorm(6) for _ in range(layers))
        self.head = nn.Linear(6, 3)

    def forward(self, bag: enfa.Bag) -> Tensor:
        h = self.embed(bag.x[:, 0]) + self.mark(bag.mark)
        for conv, norm in zip(self.convs, self.norms):
            h = norm(bag.propagate(conv, h, *([bag.edge_mark] if self.conv == "gine" else []))).relu()
        if self.read == "diagonal":
            return self.head(bag.each(bag.diagonal(h)))
        return self.head(bag.each(bag.root(h) if self.read == "root" else bag.pool(h)))


def _with_hubs(kinds: int = 4, nodes: int = 120, hub: int = 100) -> Data:
    """Node 0 has about 100 edges, node 1 about 80: more than 64, from where keys are told by what changes in them."""
    graph = large_graph(nodes, 2, kinds=kinds, window=30, hub=hub, seed=2)
    other = torch.arange(2, 82)
    more = torch.stack([torch.ones_like(other), other])
    graph.edge_index = torch.unique(torch.cat([graph.edge_index, more, more.flip(0)], 1), dim=1)
    assert int((torch.bincount(graph.edge_index[1]) > HUB).sum()) == 2
    return graph


ROOTED = {name: policy for name, policy in EVERY.items() if name in OWN} | {
    "edge marking": enfa.EdgeMarking(), "ego nets of two hops": enfa.EgoNets(2)
}  # fmt: skip


@pytest.mark.parametrize("conv", ["gin", "gcn", "graphconv"])
def test_exact_on_a_larger_graph(conv: str) -> None:
    assert_same_as_full(Near(conv=conv).eval(), enfa.NodeMarking(), [large_graph(300, 6, window=20, seed=1)])


@pytest.mark.parametrize("read", ["root", "diagonal", "pool"])
@pytest.mark.parametrize("policy", ROOTED)
def test_exact_with_hubs(policy: str, read: str) -> None:
    marks = ROOTED[policy].edge_mark_channels
    if marks and read == "diagonal":
        pytest.skip("rooted at edges")
    model = Near(4, ROOTED[policy].mark_channels, 2, "gine" if marks else "gin", read)
    graph = _with_hubs()
    assert not trace(model, [graph], ROOTED[policy]).counted
    assert_same_as_full(model, ROOTED[policy], [graph])


@pytest.mark.parametrize("kinds", [2, 4])
@pytest.mark.parametrize("policy", POLICIES)
def test_exact_with_hubs_where_rows_are_counted(policy: str, kinds: int) -> None:
    model = Near(kinds, POLICIES[policy].mark_channels, 2, read="pool", norm=True)
    assert_same_as_full(model, POLICIES[policy], [_with_hubs(kinds)])


def test_depths_are_what_later_steps_ask_for() -> None:
    steps = [Step("start", "pairs"), *(Step("propagate", "pairs", (i,)) for i in range(3)), Step("root", "subgraphs", (3,))]
    assert _depths(Program(tuple(steps), counted=False)) == [3, 2, 1, 0, 0]
    assert _depths(Program(tuple(steps))) == [-1] * 5
    steps += [Step("diagonal", "nodes", (1,))]  # asks for less
    assert _depths(Program(tuple(steps), counted=False))[:4] == [3, 2, 1, 0]
    steps += [Step("root", "subgraphs", (6,)), Step("propagate", "pairs", (2,), along="subgraphs")][::-1]  # asks for all
    assert _depths(Program(tuple(steps), counted=False))[:4] == [-1, -1, -1, 0]


def test_cost_is_linear() -> None:
    costs = {}
    for nodes in (2000, 20000):
        bag = make_plan([large_graph(nodes, 6, window=100)], enfa.NodeMarking(), Near())
        costs[nodes] = bag.cost()
        assert bag.num_pairs == nodes**2 and bag.tables[-1].total == nodes
    assert costs[20000].bytes < 11 * costs[2000].bytes
    assert costs[20000].rows[-1] <= 20000


def test_only_what_roots_read_is_looked_up() -> None:
    """In the last table the roots, and every node of the graph; before that, as far around the roots as edges lead."""
    graphs, model = check_graphs([large_graph(1000, 6, channels=3, window=100)]), Near()
    edits, program = enfa.NodeMarking().edits(graphs), trace(model, [large_graph(10, 2)], enfa.NodeMarking())
    found = (step_rows_of(graphs, edits, p, graphs.node_kind) for p in (program, replace(program, counted=True)))
    near, everywhere = ([len(rows.keys) for rows in steps] for steps in found)
    assert near[3] == 2000 < everywhere[3] / 10 and near[2] <= 1000 + 7000 < everywhere[2] / 2


@pytest.mark.parametrize(("policy", "nodes"), [(enfa.NodeMarking(), 20000), (enfa.EgoNets(2), 4000)], ids=repr)
def test_trains_on_a_large_graph(policy: enfa.Policy, nodes: int) -> None:
    model = Near(marks=policy.mark_channels)
    out = model(make_plan([large_graph(nodes, 6)], policy, model))
    out.square().mean().backward()
    assert out.shape == (nodes, 3)
    assert all(bool(p.grad.isfinite().all()) for p in model.parameters() if p.grad is not None)


def test_the_conventional_bag_is_refused() -> None:
    with pytest.raises(ValueError, match=r"pairs to write out, got 2500000000: use the distinct plan"):
        make_plan([large_graph(50000, 2)], enfa.NodeMarking(), Near(), "full")


@pytest.mark.parametrize("limit", ["STORED", "LOOKED_AT"])
def test_hubs_are_bounded(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hubs, limit, 20000)
    with pytest.raises(ValueError, match=r"node 0 of graph 0 has 50\d incoming edges, .* \(Subsample\)"):
        make_plan([large_graph(1000, 2, kinds=1000, hub=500)], enfa.NodeMarking(), Near(1000))


def test_hubs_are_refused_before_anything_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hub has 5,000 neighbours, most of them different: it alone takes 17 million messages, all else 30,000."""
    graph, model = large_graph(6000, 2, kinds=6000, hub=5000), Near(6000)
    monkeypatch.setattr(hubs, "STORED", 2**24)
    with monkeypatch.context() as patch, pytest.raises(ValueError, match=r"got 17\d{6}, which take 0\.1 GiB as keys alone"):
        patch.setattr(builder, "walk", None)
        make_plan([graph], enfa.NodeMarking(), model)
    few = make_plan([large_graph(6000, 2, kinds=2, hub=5000)], enfa.NodeMarking(), model)
    assert few.cost().edges[0] < 2**20


@pytest.mark.parametrize("read", ["pool", "root"])
def test_affected_pairs_are_bounded(read: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Next to a hub an edit reaches all of its neighbours in two rounds: 500 squared pairs, though of few different rows."""
    ends = torch.stack([torch.zeros(500).long(), torch.arange(1, 501)])
    star = Data(x=torch.zeros(501, 1).long(), edge_index=torch.cat([ends, ends.flip(0)], 1))
    model = Near(layers=4 if read == "root" else 2, read=read)
    assert make_plan([star], enfa.NodeMarking(), model).cost().rows[-1] < 10
    monkeypatch.setattr(hubs, "STORED", 2**17)
    with pytest.raises(ValueError, match=r"pairs that an edit affects .* node 0 of graph 0 has 500 incoming edges"):
        make_plan([star], enfa.NodeMarking(), model)


@pytest.mark.parametrize("nodes", [50_000, 70_000])  # beyond 2^31 pairs, and beyond 2^32
def test_a_row_may_stand_for_more_pairs_than_int32_counts(nodes: int) -> None:
    """In a cycle of equal nodes nearly all (subgraph, node) pairs are one row."""
    here = torch.arange(nodes)
    ends = torch.stack([here, (here + 1) % nodes])
    cycle = Data(x=torch.zeros(nodes, 1).long(), edge_index=torch.cat([ends, ends.flip(0)], 1))
    model = Near(layers=2, read="pool", norm=True).double()
    compiled = enfa.compile([cycle, cycle], enfa.NodeMarking(), model, progress=False)
    for bag in (make_plan([cycle], enfa.NodeMarking(), model), compiled[[0]], compiled[[1, 0]]):
        for table in bag.tables[:3]:
            assert table.copies is not None and int(table.copies.min()) > 0
            assert int(table.copies.sum()) == table.total == bag.num_graphs * nodes**2
        assert model.train()(bag).isfinite().all()
