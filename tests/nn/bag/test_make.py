"""``enfa.make_plan`` for any model."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from bag_models import Context, Molecules, Net
from torch import Tensor, nn
from torch_geometric.data import Batch
from torch_geometric.nn import GCN, GIN, GINConv

import enfa
from enfa.testing import random_graphs

GRAPHS = random_graphs(4, 6, seed=1)


def test_the_design_s_example() -> None:
    torch.manual_seed(0)
    model = Net().eval()
    plan = enfa.make_plan(GRAPHS, enfa.NodeMarking(), model)
    full = enfa.make_plan(GRAPHS, enfa.NodeMarking(), model, "full")
    assert isinstance(plan, enfa.Bag) and (plan.kind, full.kind) == ("distinct", "full")
    assert plan.num_pairs == full.num_pairs == sum(g.num_nodes**2 for g in GRAPHS)
    assert plan.tables[1].num_rows < full.tables[1].num_rows == full.num_pairs
    torch.testing.assert_close(model(plan), model(full))


def test_takes_a_model_or_its_program() -> None:
    for model in (Net(), enfa.DSGNN(3, 4, 2, 2)):
        program = enfa.trace(model, GRAPHS, enfa.NodeMarking())
        assert isinstance(program, enfa.Program)
        for kind in ("full", "ego", "distinct"):
            plans = [enfa.make_plan(GRAPHS, enfa.NodeMarking(), given, kind) for given in (model, program)]
            assert str(plans[0]) == str(plans[1]) and plans[0].kind == kind and plans[0].program == program
    bag = enfa.make_plan(GRAPHS, enfa.NodeMarking(), Net()), "Bag: pass plan.program"
    wrongs = ((Net, "the class Net"), ("gin", "str"), (None, "NoneType"), (enfa.DSGNN, "the class DSGNN"), bag)
    for make in (enfa.make_plan, enfa.compile):
        for wrong, got in wrongs:
            message = rf"^Expected a model \(torch.nn.Module\), or its program \(enfa.trace\), got {got}$"
            with pytest.raises(TypeError, match=message):
                make(GRAPHS, enfa.NodeMarking(), wrong)


class _Marking(enfa.Policy):
    """Marks nodes, and says of no subgraph what it is about."""

    def bag(self, graph: enfa.edits.GraphView) -> list[enfa.Subgraph]:
        return [enfa.Subgraph().mark_node(v) for v in range(graph.num_nodes)]


@pytest.mark.parametrize("make", [enfa.make_plan, enfa.compile])
def test_refuses_policies_and_graphs_that_lack_what_the_model_reads(make: Callable) -> None:
    """Whether the model is given or its program."""
    with_edges = random_graphs(4, 6, seed=1, edge_channels=2)
    root, gine = enfa.DSGNN(3, 4, 2, 2, readout="root"), enfa.DSGNN(3, 4, 2, 2, "gine", edge_channels=2)
    programs = enfa.trace(root, GRAPHS, enfa.NodeMarking()), enfa.trace(gine, with_edges, enfa.NodeMarking())
    for given in (root, programs[0]):
        with pytest.raises(ValueError, match=r"^_Marking\(\) does not say which node .*reads that \(bag.root\): use .*'root'$"):
            make(GRAPHS, _Marking(), given)
    with pytest.raises(ValueError, match=r"^Expected graphs with 'edge_attr', because the model reads it, got none$"):
        make(GRAPHS, enfa.NodeMarking(), gine)
    with pytest.raises(ValueError, match=r"^Expected 'edge_attr' in the graphs, because the model reads .*; graph 0 has none$"):
        make(GRAPHS, enfa.NodeMarking(), programs[1])
    model = enfa.DSGNN(3, 4, 2, 2)
    for given in (model, enfa.trace(model, GRAPHS, enfa.NodeMarking())):
        with pytest.raises(ValueError, match=r"^EdgeMarking\(.*\) marks edges, but the .*edge_mark_channels=1, or pass"):
            make(GRAPHS, enfa.EdgeMarking(), given)


def test_refuses_what_it_cannot_do() -> None:
    with pytest.raises(ValueError, match="kind of plan to be one of full, ego, distinct, got 'fll'"):
        enfa.make_plan([], enfa.NodeMarking(), Net(), "fll")
    with pytest.raises(TypeError, match=r"Expected an enfa.Policy such as enfa.NodeMarking\(\), got 'mark'"):
        enfa.make_plan(GRAPHS, "mark", Net())  # type: ignore[arg-type]
    for wrong, got in ((Net(), "Net"), (enfa.NodeMarking, "the class NodeMarking")):
        for make in (enfa.make_plan, enfa.compile):
            with pytest.raises(TypeError, match=rf"^Expected an enfa.Policy such as enfa.NodeMarking\(\), got {got}$"):
                make(GRAPHS, wrong, enfa.NodeMarking())
    with pytest.raises(ValueError, match="Expected at least one graph"):
        enfa.make_plan([], enfa.NodeMarking(), Net())
    with pytest.raises(ValueError, match=r"Expected graphs with 'edge_attr', because the model reads it, got none"):
        enfa.make_plan(random_graphs(3, 5, channels=[3, 2]), enfa.NodeMarking(), Molecules())


class _Two(nn.Module):
    def forward(self, bag: enfa.Bag, temperature: float) -> Tensor:
        return bag.pool(bag.pool(bag.x)) / temperature


@pytest.mark.parametrize("make", [enfa.make_plan, enfa.compile])
def test_a_model_for_graphs_is_to_be_lifted(make: Callable) -> None:
    policy = enfa.NodeMarking()
    with pytest.raises(TypeError, match=r"^Expected a model with forward\(bag\), got GIN with .*: use enfa.lift\(model\)$"):
        make(GRAPHS, policy, GIN(3, 4, 2))
    with pytest.raises(TypeError, match=r"^Expected a model with forward\(bag\), got _Two with forward\(bag, temperature\)$"):
        make(GRAPHS, policy, _Two())


@pytest.mark.parametrize(
    ("model", "channels"),
    [
        (Net(), 3),
        (enfa.DSGNN(3, 4, 2, 2), 3),
        (enfa.DSGNN([3, 2], 4, 2, 2), [3, 2]),
        (enfa.ESAN([3, 2], 4, 2, 2, conv="gine", edge_channels=[2]), [3, 2]),
        (enfa.lift(GIN(3 + 1, 4, 2), pool="sum"), 3),
    ],
)
@pytest.mark.parametrize("kind", ["full", "distinct"])
def test_model_and_plan_on_different_devices(model: nn.Module, channels: Any, kind: str) -> None:
    """Those without a GPU have the device "meta" to forget it on."""
    graphs = random_graphs(3, 5, seed=1, channels=channels, edge_channels=[2])
    plan = enfa.make_plan(graphs, enfa.NodeMarking(), model, kind)
    away = copy.deepcopy(model).to("meta")
    with pytest.raises(RuntimeError, match=r"^Expected model and plan on one device, got .* on meta and .* plan.to\('meta'\)$"):
        away(plan)
    assert model(plan).isfinite().all()


def test_printed_in_three_lines() -> None:
    lines = repr(enfa.make_plan(GRAPHS, enfa.NodeMarking(), Context())).splitlines()
    assert len(lines) == 3 and lines[0].startswith("Bag(distinct, 4 graphs, ")
    assert lines[1].split("; ")[-1] == "pool 7" and len(lines[2].split()) == 1 + len(lines[1].split(";"))


@pytest.mark.parametrize("kind", ["full", "distinct"])
def test_labels_and_precision(kind: str) -> None:
    graphs = copy.deepcopy(GRAPHS)
    assert enfa.make_plan(graphs, enfa.NodeMarking(), Net(), kind).y is None
    for i, graph in enumerate(graphs):
        graph.y = torch.tensor([i])
    plan = enfa.make_plan(graphs, enfa.NodeMarking(), Net().double(), kind)
    assert plan.y.tolist() == [0, 1, 2, 3] and plan.x.dtype == plan.mark.dtype == torch.float64
    assert enfa.make_plan(graphs, enfa.NodeMarking(), Net(), kind).x.dtype == torch.float32


def test_features_that_need_a_gradient_get_it() -> None:
    graphs = copy.deepcopy(GRAPHS)
    for graph in graphs:
        graph.x = torch.ones_like(graph.x).requires_grad_()  # equal, but each with a gradient of its own
    assert enfa.make_plan(graphs, enfa.NodeMarking(), Net()).tables[0].num_rows > 2
    with torch.no_grad():
        assert enfa.make_plan(graphs, enfa.NodeMarking(), Net()).tables[0].num_rows == 2
    enfa.testing.assert_same_as_full(Net(), enfa.NodeMarking(), graphs)
    plan = enfa.make_plan(graphs, enfa.NodeMarking(), Net())
    with torch.no_grad():
        graphs[0].x.mul_(2)
    with pytest.raises(ValueError, match="Expected features as they were when the plan was made"):
        Net()(plan).sum().backward()


class _Unused(nn.Module):
    """Embeds edges and passes messages without them."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.edge, self.conv = nn.Linear(4, 4), nn.Linear(2, 4), GINConv(nn.Linear(4, 4))

    def forward(self, bag: enfa.Bag) -> Tensor:
        edge = self.edge(bag.edge_attr)
        assert edge.shape[1] == 4 and bag.edge_mark.shape[1] == 0
        return bag.pool(bag.pool(bag.propagate(self.conv, self.embed(torch.cat([bag.x, bag.mark], 1)))))


@pytest.mark.parametrize("kind", ["full", "distinct"])
def test_edges_may_be_embedded_for_nothing(kind: str) -> None:
    graphs = random_graphs(3, 5, edge_channels=2)
    plan = enfa.make_plan(graphs, enfa.NodeMarking(), _Unused(), kind)
    assert _Unused()(plan).shape == (3, 4) and len(plan.edge_rows) == 1


class _To(nn.Module):
    """Pools to what it is told, from pairs or from subgraphs."""

    def __init__(self, to: str, pairs: bool = False) -> None:
        super().__init__()
        self.to, self.pairs, self.lin = to, pairs, nn.Linear(3, 3)

    def forward(self, bag: enfa.Bag) -> Tensor:
        h: Any = self.lin(bag.x)
        return bag.each(bag.pool(h if self.pairs else bag.pool(h), to=self.to))


def test_pools_go_where_they_can() -> None:
    plan = enfa.make_plan(GRAPHS, enfa.NodeMarking(), _To("nodes"))
    assert _To("nodes")(plan).shape == (sum(g.num_nodes for g in GRAPHS), 3)
    with pytest.raises(ValueError, match=r"^Expected Rows of pairs to be pooled to subgraphs, got to='nodes' \(bag.across"):
        enfa.make_plan(GRAPHS, enfa.NodeMarking(), _To("nodes", pairs=True))
    with pytest.raises(ValueError, match=r"^Expected Rows of subgraphs to be pooled to graphs or nodes, got to='pairs'$"):
        enfa.make_plan(GRAPHS, enfa.NodeMarking(), _To("pairs"))
    with pytest.raises(ValueError, match=r"^_Marking\(\) does not say which .*reads that \(bag.pool\(h, to='nodes'\)\): use"):
        enfa.make_plan(GRAPHS, _Marking(), _To("nodes"))


@pytest.mark.parametrize("make", [lambda: enfa.DSGNN(3, 8, 2, 2), lambda: enfa.lift(GCN(4, 8, 2, 2), pool="sum")])
def test_a_model_in_another_precision_than_its_plan(make: Any) -> None:
    model, graphs = make(), random_graphs(3, 5)
    plan, compiled = enfa.make_plan(graphs, enfa.NodeMarking(), model), enfa.compile(graphs, enfa.NodeMarking(), model)
    for given in (plan, compiled[:2]):
        with pytest.raises(RuntimeError, match=r"model and plan in one precision, .*float64 .*float32: make the plan"):
            model.double()(given)


def test_plans_are_not_joined_as_graphs_are() -> None:
    compiled = enfa.compile(GRAPHS, enfa.NodeMarking(), Net(), progress=False)
    for plans in ([compiled[0], compiled[1]], compiled):
        with pytest.raises(TypeError, match=r"^Expected graphs for .*Batch, got plans: enfa.make_plan .* enfa.DataLoader one"):
            Batch.from_data_list(plans)


def test_two_precisions_in_a_model_are_told_in_pytorchs_words() -> None:
    class Slip(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(3, 2))

        def forward(self, bag: Any) -> Any:
            return bag.pool(bag.pool(bag.x @ self.weight.double()), "mean")

    with pytest.raises(RuntimeError, match="same dtype"):
        enfa.make_plan(random_graphs(2, 5), enfa.NodeDeletion(), Slip())
