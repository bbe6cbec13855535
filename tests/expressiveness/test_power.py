"""Which graphs a model class can tell apart."""

from __future__ import annotations

from collections import Counter
from functools import reduce
from math import gcd
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cases import EVERY
from drawn import OWN, Drawn
from known_graphs import relabelled, ring, rook_and_shrikhande, triangles_and_hexagon
from step_rows import Numbers, plan_of, written_out
from torch import Tensor, nn
from torch_geometric.nn import MLP, GINConv

import enfa
from enfa.datasets import load_brec
from enfa.datasets.own import graphs_from_npz
from enfa.nn.bag.trace import in_precision_of
from enfa.testing import degenerate_graphs, random_graphs


class Plain(nn.Module):
    """Message passing that does not look at marks, on whatever bag."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.convs = nn.ModuleList(GINConv(MLP([1, 1, 1], norm=None)) for _ in range(layers))

    def forward(self, bag: Any) -> Tensor:
        h = bag.x
        for conv in self.convs:
            h = bag.propagate(conv, h)
        return bag.pool(bag.pool(h))


def test_two_triangles_and_a_hexagon() -> None:
    """A marked node sees its second neighbours, of which a triangle has none; plain messages never do."""
    graphs = triangles_and_hexagon()
    assert enfa.power(graphs, enfa.NodeMarking(), "ds", 4).first == [2]
    assert enfa.power(graphs, enfa.NodeDeletion(), "ds", 4).first == [2]
    assert enfa.power(graphs, enfa.EgoNets(1), "ds", 4).first == [1]
    for policy in (enfa.NodeMarking(), enfa.NodeMarking(distances=2)):
        plain = enfa.power(graphs, policy, Plain, 8)
        assert plain.first == [None] and plain.model == "Plain"


def test_a_graph_and_itself() -> None:
    for graph in (ring(7), *random_graphs(4, 8), degenerate_graphs()["no nodes"]):
        for model in ("ds", "dss"):
            assert enfa.power([graph, relabelled(graph)], enfa.EdgeDeletion(), model, 5).first == [None]


def test_circular_skip_links() -> None:
    """CSL: 4-regular rings that plain messages cannot tell apart; marking a node tells all ten from each other."""
    graphs = [ring(41, skip) for skip in (2, 3, 4, 5, 6, 9, 11, 12, 13, 16)]
    copies = [relabelled(graph, seed) for seed, graph in enumerate(graphs)]
    found = enfa.power([*graphs, *copies], enfa.NodeMarking(), "ds", 6, pairs=False)
    assert found.counts()["all"][-1] == 10 and found.counts()["all"] == sorted(found.counts()["all"])
    assert (found.classes[:, :10] == found.classes[:, 10:]).all()
    assert enfa.power(graphs, enfa.NodeMarking(), Plain, 6, pairs=False).counts() == {"all": [1] * 6}


def test_rook_and_shrikhande() -> None:
    """Node marking is at most 3-WL and fails; without an edge, and with two marked ends of one, they differ."""
    graphs = rook_and_shrikhande()
    assert enfa.power(graphs, enfa.NodeMarking(), "ds", 8).first == [None]
    assert enfa.power(graphs, enfa.NodeMarking(), "dss", 8).first == [None]
    assert enfa.power(graphs, enfa.EdgeDeletion(), "ds", 4).first == [3]


@pytest.mark.parametrize("how", ["sum", "mean", "max"])
def test_pools_keep_multisets_proportions_or_sets(how: str) -> None:
    """Two copies of a triangle, three triangles, a triangle with a loose node beside it."""

    class Net(Plain):
        def forward(self, bag: Any) -> Tensor:
            return bag.pool(bag.pool(bag.propagate(self.convs[0], bag.x), how), "mean")

    triangle = ring(3)
    two, three, loose = ring(3), ring(3), ring(3)
    for graph, copies, more in ((two, 2, 0), (three, 3, 0), (loose, 1, 1)):
        graph.edge_index = torch.cat([triangle.edge_index + 3 * i for i in range(copies)], 1)
        graph.x = torch.ones(3 * copies + more, 1)
    classes = enfa.power([triangle, two, three, loose, loose], enfa.NodeMarking(), Net(1), pairs=False).classes[0].tolist()
    assert classes == {"sum": [0, 1, 2, 3, 3], "mean": [0, 0, 0, 1, 1], "max": [0, 0, 0, 1, 1]}[how]
    half = ring(3)
    half.x = torch.tensor([[1.0], [1.0], [2.0]])
    other = ring(3)
    other.x = torch.tensor([[1.0], [2.0], [2.0]])

    class Start(nn.Module):
        def forward(self, bag: Any) -> Tensor:
            return bag.pool(bag.pool(bag.x, how), "max")

    assert enfa.power([half, other], enfa.NodeMarking(), Start()).first == [None if how == "max" else 0]


class Kept(Numbers):
    """Lists as a mean or a maximum keeps them."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how

    def listed(self, rows: Counter) -> int:
        rows = +rows
        most = reduce(gcd, rows.values(), 0) or 1
        kept = {"sum": rows, "mean": {r: n // most for r, n in rows.items()}, "max": dict.fromkeys(rows, 1)}[self.how]
        return self("listed", tuple(sorted(kept.items())))


@pytest.mark.parametrize(("readout", "told"), [("sum", True), ("max", False)])
def test_how_many_nodes_a_norm_counts_is_no_pool(readout: str, told: bool) -> None:
    """GNN-SSWL+ weighs subgraphs by their nodes in a norm: no function of a row, and so it tells no rings apart."""
    graphs = [ring(10), ring(11)]
    model = enfa.SSWLGNN(graphs[0].x.shape[1], 4, 1, 2, "gin", readout=readout)
    assert bool(enfa.power(graphs, enfa.NodeMarking(), model).apart.any()) == told


@pytest.mark.parametrize(("seed", "name"), list(enumerate(EVERY)))
def test_any_model_by_hand(seed: int, name: str) -> None:
    """Against rows that are written out in plain Python from explicit subgraphs; and what is not told apart has one output."""
    how = ("sum", "mean", "max")[seed % 3]
    graphs = random_graphs(8, 4, seed=seed, edge_channels=1, degree=1.5)
    for graph in graphs:
        graph.x, graph.edge_attr = torch.ones_like(graph.x), torch.ones_like(graph.edge_attr)
    graphs += [*degenerate_graphs(3, 1).values(), graphs[0]]
    model = Drawn(seed, EVERY[name], 1, 3, name in OWN, name in OWN).double().eval()
    model.pools = [(how, how)] * len(model.pools)
    model.steps = [(verb, read, how if verb in ("across", "pool") else h, join) for verb, read, h, join in model.steps]
    model.reads_edges = True
    found = enfa.power(graphs, EVERY[name], model, pairs=False).classes[0]
    program = enfa.trace(model, graphs, EVERY[name])
    rows = written_out(Kept(how), graphs, EVERY[name], program)
    right = list(zip(*(rows[n] for n, step in enumerate(program.steps) if step.kind == "graphs")))
    assert len({*zip(found.tolist(), right)}) == len({*found.tolist()}) == len({*right})
    out = model(in_precision_of(model, plan_of(graphs, EVERY[name], program, "full"))).detach()
    for one in np.unique(found):
        same = out[torch.from_numpy(found == one)]
        assert torch.allclose(same, same[:1].expand_as(same), rtol=1e-10, atol=1e-12)


def test_chunks_and_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = [
        relabelled(graph, seed)
        for seed in range(3)
        for graph in (*random_graphs(6, 6, seed=1, channels=1), ring(6), ring(5, 2))
    ]
    whole = [enfa.power(graphs, enfa.NodeMarking(), "dss", 3, pairs=pairs) for pairs in (False, True)]
    monkeypatch.setattr("enfa.expressiveness.compare.PAIRS", 40)
    parts = [enfa.power(graphs, enfa.NodeMarking(), "dss", 3, pairs=pairs, threads=2) for pairs in (False, True)]
    for one, other in zip(whole, parts):
        assert (one.classes == other.classes).all()
    apart = whole[0].classes[:, 0::2] != whole[0].classes[:, 1::2]
    assert (whole[1].apart == apart).all()


def test_json_and_categories() -> None:
    graphs = [*triangles_and_hexagon(), ring(7), ring(7)]
    found = enfa.power(graphs, enfa.NodeMarking(), "ds", [2, 5], category=["one", "two"])
    assert found.counts() == {"one": [1, 1], "two": [0, 0], "all": [1, 1]} and found.sizes == {"one": 1, "two": 1, "all": 2}
    assert found.to_dict()["first"] == [2, None] and found.to_dict()["layers"] == [2, 5]
    assert "NodeMarking" in str(found) and str(found).splitlines()[2].split() == ["one", "1", "1", "1"]


def test_wrong_input() -> None:
    graphs, marking = triangles_and_hexagon(), enfa.NodeMarking()
    for match, arguments, options in (
        ("Expected pairs of graphs, got 1 graphs", (graphs[:1], marking, "ds"), {}),
        ("did you mean 'dss'", (graphs, marking, "dsss"), {}),
        ("no number of layers beside a model", (graphs, marking, enfa.DSGNN(1, 2, 2, 2), 3), {}),
        (r"Expected model\(1\) to be a torch.nn.Module", (graphs, marking, lambda layers: layers), {}),
        ("pools to graphs", (graphs, marking, enfa.DSGNN(1, 2, 2, 2, readout="node")), {}),
        ("Expected a category for each of 1 pairs, got 2", (graphs, marking, "ds", 1), {"category": ["a", "b"]}),
    ):
        with pytest.raises((TypeError, ValueError), match=match):
            enfa.power(*arguments, **options)


@pytest.mark.parametrize(("policy", "model", "layers", "right"), [
    (enfa.NodeMarking(), "ds", 3, (60, 50, 97, 0)), (enfa.NodeMarking(), "ds", 6, (60, 50, 100, 11)),
    (enfa.NodeMarking(), "dss", 6, (60, 50, 100, 15)), (enfa.EgoNets(2, mark=True), "ds", 6, (60, 50, 100, 0)),
])  # fmt: skip
def test_most_of_brec(shared_data: Path, policy: enfa.Policy, model: str, layers: int, right: tuple[int, ...]) -> None:
    """All pairs but the largest, of which these policies tell none apart: the counts of all 400."""
    data = load_brec(shared_data)
    assert [data.tabled.count(name) for name in ("Basic", "Regular", "Extension", "CFI")] == [60, 140, 100, 100]
    pairs = [*range(110), *range(160, 320)]
    chosen = [data.graphs[2 * p + i] for p in pairs for i in range(2)]
    found = enfa.power(chosen, policy, model, [layers], category=[data.tabled[p] for p in pairs])
    assert tuple(row[0] for row in found.counts().values()) == (*right, sum(right))


def test_edge_deletion_tells_strongly_regular_graphs_apart(shared_data: Path) -> None:
    data = load_brec(shared_data)
    found = enfa.power(data.graphs[220:240], enfa.EdgeDeletion(), "ds", 3)
    assert found.counts()["all"] == [0, 0, 10]
    graphs = graphs_from_npz(shared_data / "SR25.npz")
    assert enfa.power(graphs, enfa.EdgeDeletion(), "ds", 3, pairs=False).counts()["all"] == [1, 1, 15]
    assert enfa.power(graphs, enfa.NodeMarking(), "dss", 6, pairs=False).counts()["all"] == [1] * 6
