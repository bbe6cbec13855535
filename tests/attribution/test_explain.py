"""Explanations against the full plan, and against subgraphs that are written out one by one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from cases import EVERY
from explicit import ExplicitBag
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv

import enfa
from enfa.edits import GraphView
from enfa.nn.models.registry import MODELS


class Categories(nn.Module):
    """A user's own model: embeddings of integer columns, PyG's conv, on Rows and on plain tensors alike."""

    def __init__(self, marks: int) -> None:
        super().__init__()
        self.element, self.charge = nn.Embedding(3, 5), nn.Embedding(2, 5)
        self.mark = nn.Linear(marks, 5)
        self.conv, self.mix = SAGEConv(5, 5), SAGEConv(5, 5)
        self.out = nn.Linear(5, 2)

    def forward(self, bag: Any) -> Tensor:
        x = bag.x
        h = self.element(x[:, 0]) + self.charge(x[:, 1]) + self.mark(bag.mark)
        h = bag.propagate(self.conv, h).relu()
        h = h + bag.spread(bag.propagate(self.mix, bag.across(h, "mean")))
        return self.out(bag.pool(bag.pool(h.tanh(), "sum"), "mean"))


def floats(seed: int) -> Data:
    """Seven nodes, some of them without an edge."""
    rng = np.random.default_rng(seed)
    pairs = [(a, b) for a in range(7) for b in range(a + 1, 7) if rng.random() < 0.3]
    both = torch.tensor([p for a, b in pairs for p in ((a, b), (b, a))]).T
    return Data(x=torch.from_numpy(rng.normal(size=(7, 3))).float(), edge_index=both)


def categorical(seed: int) -> Data:
    draws = np.random.default_rng(seed).integers(0, [3, 2], (7, 2))
    draws[0] = 2, 1
    return Data(x=torch.from_numpy(draws), edge_index=floats(seed).edge_index)


class Without(enfa.Policy):
    """The bag of another policy, less some subgraphs."""

    def __init__(self, policy: enfa.Policy, gone: list[int]) -> None:
        self.policy, self.gone = policy, gone
        self.marks, self.edge_marks = policy.marks, policy.edge_marks

    def edits(self, graphs: Any) -> Any:
        edits = self.policy.edits(graphs)
        return edits.subset(graphs, [0], np.setdiff1d(np.arange(edits.num_subgraphs), self.gone))


NODE_POLICIES = [name for name, policy in EVERY.items() if not policy.edge_mark_channels]


@pytest.mark.parametrize("name", NODE_POLICIES)
def test_left_out_is_an_independent_computation(name: str) -> None:
    """Of the model on plain tensors, with the rest of the bag written out."""
    policy, graph = EVERY[name], categorical(3)
    torch.manual_seed(1)
    model = Categories(policy.mark_channels).double().eval()
    found = enfa.explain(model, policy, graph, output=1)
    bag: Any = ExplicitBag([graph], policy)
    assert abs(found.prediction - model(bag)[0, 1].item()) < 1e-12
    if all(not root for root in bag.roots):
        if name != "delete":
            assert found.left_out is None and "which node each subgraph is about" in str(found.why_not)
            return
        bag.roots = [[v] for v in range(graph.num_nodes)]  # the node that each subgraph lacks
    assert found.left_out is not None and len(found.left_out) == graph.num_nodes
    moved = 0
    for v, change in enumerate(found.left_out.tolist()):
        gone = [s for s, root in enumerate(bag.roots) if v in root]
        if len(gone) == len(bag.roots):
            assert math.isnan(change)
            continue
        rest = model(ExplicitBag([graph], Without(policy, gone)))[0, 1].item()
        assert abs(change - (found.prediction - rest)) < 1e-12, (v, change)
        moved += bool(gone) and abs(change) > 1e-9
    assert moved or name in ("central ego",)


@pytest.mark.parametrize("name", NODE_POLICIES)
def test_gradients_are_those_of_every_pair(name: str) -> None:
    """Of categories at the embedded rows, in the model on plain tensors; in all plans the same."""
    policy, graph = EVERY[name], categorical(4)
    torch.manual_seed(2)
    model = Categories(policy.mark_channels).double()
    found = enfa.explain(model, policy, graph, output=0)
    for kind in ("full", "ego"):
        other = enfa.explain(model, policy, graph, output=0, kind=kind)
        assert torch.allclose(found.gradient, other.gradient, rtol=1e-10, atol=1e-14)
    bag: Any = ExplicitBag([graph], policy)
    embedded: list[Tensor] = []

    def keep(module: nn.Module, args: Any, out: Any) -> None:
        out.retain_grad()
        embedded.append(out)

    for embedding in (model.element, model.charge):
        embedding.register_forward_hook(keep)
    model.eval()(bag)[0, 0].backward()
    each = sum((out.grad * out.detach()).as_subclass(Tensor).sum(1) for out in embedded)
    nodes = torch.tensor([v for _, v in bag.pairs])
    expected = torch.zeros(graph.num_nodes, dtype=torch.float64).index_add_(0, nodes, each)
    assert float(expected.abs().max()) > 1e-6
    assert torch.allclose(found.gradient, expected, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("of", [floats, categorical])
@pytest.mark.parametrize("name", MODELS)
def test_every_model_is_explained(name: str, of: Callable[[int], Data]) -> None:
    """By the gradients of the full plan. Models that read every node's own subgraph say why none is left out."""
    graph = of(8)
    torch.manual_seed(5)
    model = MODELS[name](3 if of is floats else [3, 2], 12, 2, 2, mark_channels=1).double()
    model(enfa.make_plan([graph], enfa.NodeMarking(), model))  # statistics that are not zero and one
    before = {n: v.clone() for n, v in model.state_dict().items()}
    found, full = (enfa.explain(model, enfa.NodeMarking(), graph, kind=kind) for kind in ("distinct", "full"))
    assert model.training and all(torch.equal(v, before[n]) for n, v in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())
    assert float(full.gradient.abs().max()) > 0
    assert torch.allclose(found.gradient, full.gradient, rtol=1e-10, atol=1e-14)
    assert (found.left_out is None) == (name in ("sun", "sswl", "subgraphormer", "gnn_ak"))
    if found.left_out is None:
        assert "reads the subgraph of every node" in str(found.why_not)
    if of is floats:
        graph.x = graph.x.double().requires_grad_()
        model.eval()
        model(enfa.make_plan([graph], enfa.NodeMarking(), model, kind="full"))[0, found.output].backward()
        assert torch.allclose(found.gradient, (graph.x.grad * graph.x.detach()).sum(1), rtol=1e-10, atol=1e-14)


def test_gradients_add_up_where_a_model_is_linear_along_its_inputs() -> None:
    """Without biases and norms, a network of ReLUs is f(x) = gradient · x where nothing is marked (Euler)."""
    policy, graph = enfa.NodeDeletion(), floats(2)
    torch.manual_seed(0)
    model = enfa.DSGNN(3, 8, 1, 3, norm=None, mark_channels=0).double()
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            parameter.data.zero_()
    found = enfa.explain(model, policy, graph)
    assert abs(found.prediction) > 1e-3 and abs(float(found.gradient.sum()) - found.prediction) < 1e-12


class Added(nn.Module):
    """Every subgraph adds a number of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(4, 1, bias=False)

    def forward(self, bag: Any) -> Tensor:
        return bag.pool(self.lin(bag.pool(torch.cat([bag.x, bag.mark], 1).relu(), "sum")), "sum")


def test_changes_add_up_where_subgraphs_do() -> None:
    graph = floats(2)
    found = enfa.explain(Added().double(), enfa.NodeMarking(), graph)
    assert found.left_out is not None and abs(float(found.left_out.sum()) - found.prediction) < 1e-12


def test_nodes_have_outputs_of_their_own() -> None:
    graph, policy = floats(6), enfa.EgoNets(2, mark=True)
    for readout in ("node", "root"):
        model = enfa.DSGNN(3, 6, 2, 2, readout=readout).double().eval()
        out = model(enfa.make_plan([graph], policy, model))
        found = enfa.explain(model, policy, graph, node=3)
        assert torch.allclose(found.outputs, out[3].detach()) and found.node == 3
        assert (found.left_out is None) == (readout == "root")
        if found.left_out is not None:
            rest = model(enfa.make_plan([graph], Without(policy, [2]), model))
            assert abs(float(found.left_out[2]) - (out - rest)[3, found.output].item()) < 1e-12
    with pytest.raises(ValueError, match="Expected node, because the model has 7 rows of outputs"):
        enfa.explain(model, policy, graph)
    with pytest.raises(ValueError, match="Expected node to be an integer >= 0 and <= 6, got 7"):
        enfa.explain(model, policy, graph, node=7)


class Both(nn.Module):
    """Floats, and categories beside them."""

    def __init__(self) -> None:
        super().__init__()
        self.kind, self.lin, self.out = nn.Embedding(3, 4), nn.Linear(3, 4, bias=False), nn.Linear(4, 2, bias=False)

    def forward(self, bag: Any) -> Tensor:
        return self.out(bag.pool(bag.pool(self.lin(bag.x) + self.kind(bag.x_cat[:, 0]), "sum"), "mean"))


def test_floats_and_categories_side_by_side() -> None:
    """Every node is in every subgraph, and all is linear: what a node adds is its own."""
    graph = floats(5)
    graph.x_cat = torch.arange(7)[:, None] % 3
    model = Both().double()
    found = enfa.explain(model, enfa.NodeMarking(), graph, output=1)
    own = model.out(model.lin(graph.x.double()) + model.kind(graph.x_cat[:, 0]))[:, 1]
    assert torch.allclose(found.gradient, own.detach(), rtol=1e-10, atol=1e-14)


def test_one_subgraph_cannot_be_left_out() -> None:
    one = Data(x=torch.ones(1, 3), edge_index=torch.zeros(2, 0, dtype=torch.long))
    found = enfa.explain(enfa.DSGNN(3, 4, 1, 2), enfa.NodeMarking(), one)
    assert found.to_dict()["nodes"][0]["left_out"] is None


class ReadsNothing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(2, 1)

    def forward(self, bag: Any) -> Tensor:
        return self.lin(bag.pool(bag.pool(bag.x.to(self.lin.weight.dtype), "sum"), "mean"))


class Many(enfa.Policy):
    def bag(self, graph: GraphView) -> Any:
        yield enfa.Subgraph()


def test_refused_in_one_sentence() -> None:
    graph = categorical(1)
    with pytest.raises(ValueError, match="Expected a model that embeds its integer features by a module"):
        enfa.explain(ReadsNothing(), enfa.NodeMarking(), graph)
    with pytest.raises(ValueError, match="Expected output to be an integer >= 0 and <= 1, got 2"):
        enfa.explain(Categories(1), enfa.NodeMarking(), graph, output=2)
    with pytest.raises(TypeError, match="Expected one graph of PyG to explain, got list"):
        enfa.explain(Categories(1), enfa.NodeMarking(), [graph])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Expected node features column 0 to be below 2, got 2"):
        enfa.explain(enfa.DSGNN([2, 2], 4, 1, 2), enfa.NodeMarking(), graph)
    assert enfa.explain(Categories(1), Many(), graph).left_out is None
