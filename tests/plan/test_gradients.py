"""Gradients with respect to features, against explicit subgraphs and PyG's convs."""

import copy
from collections.abc import Sequence

import pytest
import torch
from cases import (
    EDGE_CHANNELS,
    EVERY,
    EVERY_FACTORS,
    FACTORS,
    POLICIES,
    READS_EDGES,
    allowed,
    allowed_every,
    live_model,
    model_of,
    modes_of,
)
from covering import covering
from programs import layers
from reference import Reference
from torch_geometric.data import Data

import enfa
from enfa.plan.derived.pack import pack
from enfa.testing import assert_same_as_full, degenerate_graphs, random_graph, random_graphs

FLOATS = {**FACTORS, "nodes": ("float",), "edges": ("none", "float"), "dropout": (0.0,), "share": (None, "graph")}
CASES = covering(FLOATS, allowed)
PLAIN = {
    "conv": "gine", "policy": "mark", "context": "none", "readout": "sum", "jk": "last", "norm": "batch",
    "nodes": "float", "edges": "float", "bag": "mean", "dropout": 0.0, "residual": False, "share": None,
}  # fmt: skip


def _graphs(case: dict, seed: int, loops: bool = True) -> list[Data]:
    """With equal features at many nodes and edges, which a plan without gradients would merge.

    But not under a maximum: where two nodes attain it there is no gradient, and rounding decides what any plan gives.
    """
    edge_channels = EDGE_CHANNELS[case["edges"]]
    options = {"channels": 2, "edge_channels": edge_channels, "loops": loops, "parallel": True}
    graphs = random_graphs(3, 6, seed=seed, **options)
    graphs += [graph for name, graph in degenerate_graphs(2, edge_channels).items() if loops or "loop" not in name]
    generator = torch.Generator().manual_seed(seed)
    for graph in graphs if case["readout"] == "max" else ():
        graph.x += torch.rand(graph.x.shape, generator=generator)
    return graphs


def _with_gradients(graphs: list[Data], names: Sequence[str] = ("x", "edge_attr")) -> list[Data]:
    graphs = copy.deepcopy(graphs)
    for graph in graphs:
        graph.x = graph.x.double()
        graph.edge_attr = None if graph.edge_attr is None else graph.edge_attr.double()
        for name in names:
            if getattr(graph, name) is not None:
                getattr(graph, name).requires_grad_()
    return graphs


def _names(case: dict) -> list[str]:
    """What gradients are compared of. The rows of the two ends of an edge may be equal in spite of different features
    (x_u + x_v in a triangle), so edges have none under a maximum."""
    return ["x"] if case["readout"] == "max" or case["edges"] == "none" else ["x", "edge_attr"]


def _grads(graphs: list[Data], name: str) -> torch.Tensor:
    given = [getattr(graph, name) for graph in graphs]
    return torch.cat([torch.zeros_like(v) if v.grad is None else v.grad for v in given])


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda i: " ".join(map(str, CASES[i].values())))
def test_against_pyg(number: int) -> None:
    """Every node's and every edge's own gradient, on all three plans, in train() and, where that is another thing, eval()."""
    case = CASES[number]
    graphs = _graphs(case, number, loops=case["conv"] != "gcn")  # PyG's GCNConv gives no second loop to a node
    fresh = live_model(case, graphs, layers=2).double()
    weight = torch.linspace(1, 2, 2 * len(graphs)).reshape(-1, 2)
    for train in [mode == "train" for mode in modes_of(fresh)]:
        model = fresh.train(train)
        reference = Reference(case, model, 2, EDGE_CHANNELS[case["edges"]]).train(train)
        expected = _with_gradients(graphs, _names(case))
        (reference(expected).square() * weight).sum().backward()
        for kind in ("full", "ego", "distinct"):
            found = _with_gradients(graphs, _names(case))
            plan = enfa.make_plan(found, POLICIES[case["policy"]], model, kind)
            (copy.deepcopy(model)(plan).square() * weight).sum().backward()
            for name in _names(case) if case["conv"] in READS_EDGES else ["x"]:
                here, there = _grads(found, name), _grads(expected, name)
                assert float(there.abs().max()) > 0
                off = float((here - there).abs().max() / there.abs().max())
                assert off < 1e-10, f"{'train' if train else 'eval'} {kind}: {name}: {off:.2g}"


# what the cases above do not have: all policies, readouts of roots and nodes, dropout
OTHERS = {"conv": ("gin", "gine", "GATv2Conv"), "readout": ("sum", "root", "node")}
EVERY_CASES = covering({**EVERY_FACTORS, **OTHERS, "nodes": ("float",), "edges": ("none", "float")}, allowed_every)


@pytest.mark.parametrize("number", range(len(EVERY_CASES)), ids=lambda i: " ".join(map(str, EVERY_CASES[i].values())))
def test_plans_agree(number: int) -> None:
    """Every policy, readouts of roots and nodes, and dropout: on these the tester compares the plans."""
    case = EVERY_CASES[number]
    graphs = _with_gradients(_graphs(case, number), _names(case))
    model = live_model(case, graphs)
    assert_same_as_full(model, EVERY[case["policy"]], graphs, modes=modes_of(model))


def test_equal_nodes_have_gradients_of_their_own() -> None:
    """Two nodes with equal features, in one graph and in another, matter differently to the output."""
    path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    graphs = [Data(x=torch.ones(3, 2, dtype=torch.double, requires_grad=True), edge_index=path) for _ in range(2)]
    model = model_of({**PLAIN, "conv": "gin", "norm": "none"}, 2).double()
    out = model(enfa.make_plan(graphs, enfa.NodeMarking(), model))
    (out[0].sum() + 3 * out[1].sum()).backward()
    first, second = (graph.x.grad for graph in graphs)
    assert not torch.allclose(first[0], first[1]) and torch.allclose(first[0], first[2])
    torch.testing.assert_close(second, 3 * first, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", ["full", "ego", "distinct"])
def test_outputs_are_those_without_gradients(kind: str) -> None:
    graphs = _graphs(PLAIN, 1)
    graphs[0].x[0, 0] = -0.0
    model = model_of({**PLAIN, "dropout": 0.4}, 2).double().train()
    out = []
    for given in (graphs, _with_gradients(graphs)):
        plan = enfa.make_plan(given, enfa.NodeMarking(), model, kind)
        torch.manual_seed(0)
        out.append(copy.deepcopy(model)(plan).detach())
    torch.testing.assert_close(*out, rtol=1e-12, atol=1e-12)


def test_features_may_be_computed() -> None:
    """Learned embeddings; float32 and flat; one graph's alone."""
    embed = torch.nn.Embedding(4, 1)
    graphs = random_graphs(3, 5, seed=1, channels=1)
    graphs[1].x = embed(torch.arange(graphs[1].num_nodes) % 4)[:, 0]
    graphs[0].x, graphs[2].x = graphs[0].x[:, 0].bfloat16().float(), graphs[2].x[:, 0]
    model = enfa.DSGNN(1, 4, 2, 2).eval()
    model(enfa.make_plan(graphs, enfa.NodeMarking(), model)).square().sum().backward()
    assert embed.weight.grad is not None and bool(embed.weight.grad.any())


def test_rows_are_still_shared_between_subgraphs() -> None:
    graphs = _with_gradients([random_graph(30, 2.2, channels=2, seed=1)])
    full, distinct = (enfa.make_plan(graphs, enfa.NodeMarking(), layers(3), kind) for kind in ("full", "distinct"))
    assert sum(distinct.cost().rows) < 0.5 * sum(full.cost().rows)


def test_where_no_gradients_are_recorded_rows_are_shared_as_ever() -> None:
    graphs = _graphs(PLAIN, 1)
    with torch.no_grad():
        plan = enfa.make_plan(_with_gradients(graphs), enfa.NodeMarking(), layers(2))
    shared = enfa.make_plan(graphs, enfa.NodeMarking(), layers(2))
    assert not plan.x_rows.requires_grad and plan.cost().rows == shared.cost().rows


@pytest.mark.parametrize("kind", ["full", "ego", "distinct"])
def test_a_plan_is_of_the_features_as_they_were(kind: str) -> None:
    graphs = _with_gradients(_graphs(PLAIN, 1))
    model = model_of(PLAIN, 2).double().eval()
    plan = enfa.make_plan(graphs, enfa.NodeMarking(), model, kind)
    model(plan).sum().backward(retain_graph=True)
    model(plan).sum().backward()
    with pytest.raises(RuntimeError, match="a second time"):
        model(plan).sum().backward()
    plan = enfa.make_plan(graphs, enfa.NodeMarking(), model, kind)
    with torch.no_grad():
        graphs[2].x.add_(1.0)
    with pytest.raises(ValueError, match="Expected features as they were when the plan was made, got changed ones"):
        model(plan).sum().backward()


def test_no_edges_at_all() -> None:
    graph = Data(x=torch.ones(2, 2), edge_index=torch.zeros(2, 0, dtype=torch.long), edge_attr=torch.ones(0, 2))
    graphs = _with_gradients([graph])
    model = model_of(PLAIN, 1)
    for kind in ("full", "ego", "distinct"):
        model(enfa.make_plan(graphs, enfa.NodeMarking(), model, kind)).sum().backward()
    assert bool(graphs[0].x.grad.isfinite().all())


@pytest.mark.parametrize("name", ["x", "edge_attr"])
def test_compiling_is_refused(name: str) -> None:
    graphs = _graphs(PLAIN, 1)
    spec = layers(1, edges=True)
    compiled = enfa.compile(graphs, enfa.NodeMarking(), spec, progress=False)
    getattr(graphs[2], name).requires_grad_()
    message = rf"^graph 2: Expected '{name}' without a gradient to compile, .*: use enfa.make_plan, .*, or {name}.detach\(\)$"
    for refused in (lambda: enfa.compile(graphs, enfa.NodeMarking(), spec, progress=False), lambda: compiled.extend(graphs)):
        with pytest.raises(ValueError, match=message):
            refused()
    with torch.no_grad():
        enfa.compile(graphs, enfa.NodeMarking(), spec, progress=False)


def test_packing_is_refused() -> None:
    """A block of bytes has no gradient."""
    plan = enfa.make_plan(_with_gradients(_graphs(PLAIN, 1)), enfa.NodeMarking(), layers(1))
    with pytest.raises(ValueError, match="Expected a plan without gradients to pack, got 'x_rows' with requires_grad=True"):
        pack(plan)
