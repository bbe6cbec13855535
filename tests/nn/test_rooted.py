"""Node-level and link-level outputs."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from cases import modes_of
from torch_geometric.data import Data
from torch_geometric.nn import GATv2Conv

import enfa
from enfa.nn import link_places, root_nodes
from enfa.testing import assert_same_as_full, degenerate_graphs, random_graph, random_graphs

torch.set_num_threads(1)

POLICIES = {
    "marking": enfa.NodeMarking(),
    "distances": enfa.NodeMarking(distances=1),
    "ego": enfa.EgoNets(1, mark=True),
    "ego isolate": enfa.EgoNets(2, isolate=True),
    "edge deletion": enfa.EdgeDeletion(),
    "edge distances": enfa.EdgeMarking("distances"),
    "deletion": enfa.NodeDeletion(),
    "reconstruction": enfa.Reconstruction(3, 8),
}
CONVS = {
    "gin": "gin",
    "gine": "gine",
    "graphconv": "graphconv",
    "gcn": "gcn",
    "gatv2": lambda i, o: GATv2Conv(i, o, edge_dim=3, add_self_loops=False),
}


@cache
def graphs_with_edges() -> list[Data]:
    odd = random_graphs(2, 7, seed=2, edge_channels=2, loops=True, parallel=True, degree=3.5)
    return [*random_graphs(3, 9, seed=1, edge_channels=2), *odd, *degenerate_graphs(edge_channels=2).values()]


def model_for(policy: enfa.Policy, conv: str, **options) -> enfa.DSGNN:
    torch.manual_seed(0)
    if conv == "gatv2" and not policy.edge_mark_channels:
        made = lambda i, o: GATv2Conv(i, o, edge_dim=2, add_self_loops=False)  # noqa: E731
    else:
        made = CONVS[conv]
    if conv in ("gine", "gatv2"):
        options["edge_channels"] = 2
    make = enfa.DSSGNN if "context" in options else enfa.DSGNN
    return make(3, 5, 2, 3, made, mark_channels=policy.mark_channels, edge_mark_channels=policy.edge_mark_channels, **options)


# a marked edge needs a conv that reads edges
PAIRS = [(n, c) for n, p in POLICIES.items() for c in CONVS if not p.edge_mark_channels or c in ("gine", "gatv2")]


@pytest.mark.parametrize(("name", "conv"), PAIRS)
@pytest.mark.parametrize("readout", ["root", "node"])
def test_same_as_full(name, conv, readout):
    policy = POLICIES[name]
    if readout == "root" and name in ("deletion", "reconstruction"):
        with pytest.raises(ValueError, match="does not say which node each subgraph is about"):
            assert_same_as_full(model_for(policy, conv, readout=readout), policy, graphs_with_edges())
        return
    for norm in ("batch", "layer"):
        model = model_for(policy, conv, readout=readout, norm=norm)
        # without statistics of all rows, rows that no root reads are left out
        assert enfa.trace(model, graphs_with_edges(), policy).counted == (norm == "batch")
        assert_same_as_full(model, policy, graphs_with_edges(), modes=modes_of(model))


@pytest.mark.parametrize("readout", ["root", "node"])
@pytest.mark.parametrize(
    "options",
    [
        {"jk": "concat", "norm": None},
        {"jk": "sum", "norm": "layer", "residual": True},
        {"jk": "concat", "norm": "batch", "dropout": 0.4},
        {"jk": "last", "norm": "layer", "dropout": 0.4},
        {"context": "dss", "norm": "layer"},
        {"context": "mpnn", "jk": "concat"},
        {"context": "identity"},
    ],
    ids=str,
)
def test_options(readout, options):
    for policy in (enfa.NodeMarking(), enfa.EgoNets(1)):
        model = model_for(policy, "gin", readout=readout, **options)
        assert_same_as_full(model, policy, graphs_with_edges(), modes=modes_of(model))


def by_hand(model: enfa.DSGNN, graph: Data, root: int) -> torch.Tensor:
    """The root's row from a plan of a single marked graph, with every node's row at hand."""

    class One(enfa.Policy):
        def bag(self, view):
            yield enfa.Subgraph().mark_node(root).rooted_at(root)

    return model(enfa.make_plan([graph], One(), model, "full"))


def test_root_is_the_node_in_its_own_subgraph():
    graphs = [random_graph(6, 3.0, seed=1), random_graph(5, 3.0, seed=2)]
    model = model_for(enfa.NodeMarking(), "gin", readout="root", norm="layer").double().eval()
    plan = enfa.make_plan(graphs, enfa.NodeMarking(), model)
    out = model(plan)
    assert out.shape == (11, 2) and root_nodes(plan).tolist() == list(range(11))
    expected = torch.cat([by_hand(model, g, v) for g in graphs for v in range(g.num_nodes)])
    assert torch.allclose(out, expected, rtol=1e-12)


def test_node_is_the_mean_over_subgraphs():
    graph = random_graph(5, 3.0, seed=3)
    model = model_for(enfa.NodeDeletion(), "gin", readout="node", norm=None).double()
    plan = enfa.make_plan([graph], enfa.NodeDeletion(), model, "full")
    seen: list[enfa.nn.bag.Rows] = []
    model.layers[-1].register_forward_hook(lambda module, args, out: seen.append(out))
    model(plan)
    rows = seen[0].value
    # the rows of subgraph r are the nodes other than r
    node = torch.tensor([v for r in range(5) for v in range(5) if v != r])
    mean = torch.stack([rows[node == v].mean(0) for v in range(5)])
    assert torch.allclose(plan.each(plan.across(seen[0], "mean")), mean, rtol=1e-12)
    assert torch.allclose(model(plan), model.head(model.subgraph_mlp(mean)), rtol=1e-12)


def test_pruned_plans_compute_less():
    graph = random_graph(60, 3.0, seed=1)
    models = [enfa.DSGNN(3, 4, 2, 3, readout="root", norm=norm) for norm in ("batch", "layer")]
    costs = [enfa.make_plan([graph], enfa.NodeMarking(), model).cost() for model in models]
    assert costs[1].rows[2] <= 60 < costs[0].rows[2]
    assert sum(costs[1].rows) < sum(costs[0].rows) / 2


@pytest.mark.parametrize("name", POLICIES)
def test_nothing_but_a_graph_without_nodes(name):
    graph = degenerate_graphs(edge_channels=2)["no nodes"]
    for readout in ("sum", "node", *(["root"] if name not in ("deletion", "reconstruction") else [])):
        model = model_for(POLICIES[name], "gine", readout=readout, norm="layer")
        for kind in ("full", "ego", "distinct"):
            out = model(enfa.make_plan([graph], POLICIES[name], model, kind))
            assert out.shape == (1 if readout == "sum" else 0, 2)


def test_masks_on_one_graph():
    graph = random_graph(30, 3.0, seed=5)
    graph.y = (torch.bincount(graph.edge_index[1], minlength=30) > 2).long()
    mask = torch.rand(30, generator=torch.Generator().manual_seed(1)) < 0.5
    model = model_for(enfa.NodeMarking(), "gin", readout="root", norm="layer")
    plan = enfa.make_plan([graph], enfa.NodeMarking(), model)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _ in range(60):
        optimiser.zero_grad()
        nodes = root_nodes(plan)
        loss = torch.nn.functional.cross_entropy(model(plan)[mask[nodes]], graph.y[nodes][mask[nodes]])
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2


def test_mini_batches_of_nodes_of_one_graph():
    """Each draw of the bag gives the rows of the whole, from less work."""
    graph = random_graph(60, 3.0, seed=5)
    model = model_for(enfa.NodeMarking(), "gin", readout="root", norm="layer").double().eval()
    whole = model(enfa.make_plan([graph], enfa.NodeMarking(), model))
    compiled = enfa.compile([graph], enfa.NodeMarking(), model, progress=False)
    loader, seen = enfa.DataLoader(compiled, 1, draw=enfa.Subsample(enfa.NodeMarking(), count=7)), []
    for _ in range(2):
        for plan in loader:
            nodes = root_nodes(plan)
            assert len(nodes) == 7 and plan.cost().rows[-1] <= 7
            assert torch.allclose(model(plan), whole[nodes], rtol=1e-12)
            seen.append(nodes.tolist())
    assert seen[0] != seen[1]


def test_a_link_is_its_two_ends_in_its_own_subgraph():
    graphs = [random_graph(6, 3.0, seed=s, edge_channels=2) for s in (1, 2)]
    for graph in graphs:  # plans of programs take features as they are
        graph.x, graph.edge_attr = graph.x.double(), graph.edge_attr.double()
    for policy in (enfa.EdgeMarking(), enfa.EdgeDeletion()):
        model = model_for(policy, "gine", readout="root", norm="layer").double().eval()
        plan = enfa.make_plan(graphs, policy, model)
        shift = torch.tensor([0, 6])
        for number, graph in enumerate(graphs):
            for e, link in enumerate(graph.edge_index.T):

                class One(enfa.Policy):
                    marks, edge_marks = policy.marks, policy.edge_marks

                    def bag(self, view, graph=graph, link=link, number=number):
                        one = enfa.Subgraph()
                        if view.position != number:
                            return
                        both = [tuple(link.tolist()), tuple(link.flip(0).tolist())]
                        for i, ends in enumerate(map(tuple, view.edge_index.T.tolist())):
                            if ends in both:
                                one = one.mark_edge(i) if len(self.edge_marks) > 1 else one.delete_edge(i)
                        yield one.rooted_at(*link.tolist())

                expected = model(enfa.make_plan(graphs, One(), plan.program, "full"))
                place = link_places(plan, (link + shift[number])[:, None])
                assert expected.shape == (1, 2), e
                assert torch.allclose(model(plan)[place], expected, rtol=1e-12)


def test_links():
    graph = random_graph(9, 3.0, seed=4, edge_channels=2)
    model = model_for(enfa.EdgeMarking(), "gine", readout="root", norm="layer")
    plan = enfa.make_plan([graph], enfa.EdgeMarking(), model)
    roots = root_nodes(plan)
    places = link_places(plan, graph.edge_index)
    assert len(model(plan)) == graph.num_edges // 2 == len(places.unique())
    assert torch.equal(roots[places].sort(1).values, graph.edge_index.T.sort(1).values)
    missing = next((a, b) for a in range(9) for b in range(a) if [a, b] not in graph.edge_index.T.tolist())
    with pytest.raises(ValueError, match=f"got {missing[0]} - {missing[1]}, which is none"):
        link_places(plan, torch.tensor([missing]).T)
    marking = enfa.make_plan([graph], enfa.NodeMarking(), enfa.DSGNN(3, 4, 2, 1, readout="root"))
    with pytest.raises(ValueError, match="edge-rooted"):
        link_places(marking, graph.edge_index)


def test_errors():
    with pytest.raises(ValueError, match="without roots"):
        root_nodes(enfa.make_plan([random_graph(3)], enfa.NodeMarking(), enfa.DSGNN(3, 4, 2, 1)))
