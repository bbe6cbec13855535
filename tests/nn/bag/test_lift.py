"""Lifted models give what the model itself gives on every subgraph, pooled."""

from __future__ import annotations

import copy
import threading
from typing import Any

import pytest
import torch
import torch_geometric.nn as pyg
from lifted import (
    MODELS,
    WIDTH,
    Attends,
    OfData,
    Own,
    Tutorial,
    VirtualNode,
    difference,
    lifted_results,
    pyg_results,
    results,
    written_out,
)
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GINConv, global_add_pool, global_max_pool

import enfa
from enfa.nn.bag import lift, make_plan
from enfa.testing import degenerate_graphs, random_graphs

POLICIES = [enfa.NodeMarking(), enfa.NodeDeletion(), enfa.EdgeDeletion(), enfa.EgoNets(1, mark=True)]


def _graphs() -> list[Data]:
    every = random_graphs(4, 6, seed=2, channels=3, edge_channels=2) + list(degenerate_graphs(3, 2).values())
    return [g for g in every if not bool((g.edge_index[0] == g.edge_index[1]).any()) and g.num_nodes]


def _model(cls: type[nn.Module], policy: Any, *args: Any, **options: Any) -> nn.Module:
    torch.manual_seed(4)
    model = cls(3 + policy.mark_channels, *args, **options).double()
    for name, value in model.named_parameters():
        if name.endswith("bias"):  # at a maximum of exactly 0 PyTorch gives half of the gradient to nobody
            nn.init.normal_(value)
    return model


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("cls", MODELS, ids=lambda c: c.__name__)
def test_as_the_model_on_every_subgraph(cls: type[nn.Module], policy: Any, training: bool) -> None:
    model = _model(cls, policy).train(training)
    expected = pyg_results(model, _graphs(), policy)
    for kind in ("full", "distinct"):
        assert difference(expected, lifted_results(model, _graphs(), policy, kind)) < 1e-10


class Doubled(pyg.GINConv):
    """A conv of PyG's, and something behind it."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:  # type: ignore[override]
        return 2 * super().forward(x, edge_index)


class Twice(pyg.GATv2Conv):
    """By way of two parents, of which one names itself."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:  # type: ignore[override]
        return super().forward(x, edge_index).relu()


class Thrice(Twice):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:  # type: ignore[override]
        return super(Thrice, self).forward(x, edge_index) + 1  # noqa: UP008


class Parent(nn.Module):
    def __init__(self, ins: int, *convs: nn.Module) -> None:
        super().__init__()
        self.convs, self.lin = nn.ModuleList(convs), nn.Linear(WIDTH, 2)
        self.pool = pyg.aggr.MultiAggregation(["mean", "max"])

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        for conv in self.convs:
            x = conv(x, edge_index)
        return torch.cat([global_max_pool(x, batch), self.pool(x, batch)], 1)


class Child(Parent):
    def __init__(self, ins: int) -> None:
        super().__init__(ins, Doubled(nn.Linear(ins, WIDTH)), Thrice(WIDTH, WIDTH, heads=2, concat=False))
        self.head = nn.Linear(3 * WIDTH, 2)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return self.head(super().forward(x, edge_index, batch))


def _in_a_row(ins: int, residual: bool = False) -> nn.Module:
    """Whose forward is generated, and belongs to the object; with a function of one's own it is not."""
    middle: Any = (lambda x, y: x + y, "x, y -> x") if residual else (nn.Tanh(), "y -> x")
    layers = [
        (pyg.GCNConv(ins, WIDTH), "x, edge_index -> x"), nn.ReLU(inplace=True),
        (pyg.GCNConv(WIDTH, WIDTH), "x, edge_index -> y"), middle, (pyg.global_mean_pool, "x, batch -> x"), nn.Linear(WIDTH, 2),
    ]  # fmt: skip
    return pyg.Sequential("x, edge_index, batch", layers)


def _with_a_sum(ins: int) -> nn.Module:
    return _in_a_row(ins, residual=True)


@pytest.mark.parametrize("make", [*MODELS, Child, _in_a_row])
def test_a_pass_adds_nothing_to_the_model(make: Any) -> None:
    policy = POLICIES[0]
    model = _model(make, policy)
    modules, names = list(model.modules()), list(model.state_dict())
    lifted_results(model, _graphs(), policy, "distinct")
    whole = lift(model).double()
    whole(make_plan(_graphs(), policy, whole))
    assert list(model.modules()) == modules and list(model.state_dict()) == names
    assert not any(part in modules[:k] for k, module in enumerate(modules) for part in module.children())


@pytest.mark.parametrize("policy", [POLICIES[0], POLICIES[3]], ids=repr)
@pytest.mark.parametrize("make", [Child, _in_a_row, _with_a_sum])
def test_methods_of_parents_and_of_objects(make: Any, policy: Any) -> None:
    model = _model(make, policy)
    expected = pyg_results(model, _graphs(), policy)
    for kind in ("full", "distinct"):
        assert difference(expected, lifted_results(model, _graphs(), policy, kind)) < 1e-10


_LAYER = {"norm": "layer", "norm_kwargs": {"mode": "node"}}
_PNA = {"aggregators": ["mean", "max"], "scalers": ["identity", "amplification"], "deg": torch.tensor([1, 3, 2])}


@pytest.mark.parametrize(
    ("cls", "options"),
    [
        (pyg.GIN, {"norm": "batch", "jk": "cat"}), (pyg.GCN, {"jk": "max"}), (pyg.GraphSAGE, _LAYER), (pyg.PNA, _PNA),
        (pyg.GAT, {"heads": 2, "v2": True}), (pyg.GAT, {"add_self_loops": False}), (pyg.EdgeCNN, {"act": "elu"}),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)  # fmt: skip
@pytest.mark.parametrize("training", [True, False])
def test_the_models_of_pyg(cls: type[nn.Module], options: dict[str, Any], training: bool) -> None:
    policy = enfa.NodeMarking()
    model = _model(cls, policy, 4, 3, 2, **options).train(training)
    expected = pyg_results(model, _graphs(), policy)
    for kind in ("full", "distinct"):
        assert difference(expected, lifted_results(model, _graphs(), policy, kind, pool="sum", edges=None)) < 1e-10


def test_distinct_rows_are_fewer_with_degrees_too() -> None:
    path = Data(x=torch.ones(30, 1), edge_index=torch.stack([torch.arange(29), torch.arange(1, 30)]))
    path.edge_index = torch.cat([path.edge_index, path.edge_index.flip(0)], 1)
    model = lift(Tutorial(2))
    rows = {kind: make_plan([path], enfa.NodeMarking(), model, kind).cost().rows for kind in ("full", "distinct")}
    assert rows["full"] == [900, 900] and max(rows["distinct"]) < 30


@pytest.mark.parametrize("where", ["pool", "head"])
def test_dropout_is_the_same_on_both_plans(where: str) -> None:
    policy = enfa.NodeMarking()
    model = _model(Tutorial, policy, 0.5) if where == "head" else _model(pyg.GIN, policy, 4, 3, 2, dropout=0.5)
    options = {} if where == "head" else {"pool": "sum"}
    found = {}
    for kind in ("full", "distinct"):
        torch.manual_seed(9)
        found[kind] = lifted_results(model.train(), _graphs(), policy, kind, **options)
    assert difference(found["full"], found["distinct"]) < 1e-10
    assert difference(found["full"], lifted_results(model.eval(), _graphs(), policy, "full", **options)) > 1e-3


class Squared(nn.Module):
    """The head is no linear function, so where it runs matters."""

    def __init__(self, ins: int) -> None:
        super().__init__()
        self.conv, self.head = GINConv(nn.Linear(ins, WIDTH)), nn.Linear(WIDTH, 2)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return self.head(global_max_pool(self.conv(x, edge_index), batch)).square()


@pytest.mark.parametrize("how", ["sum", "mean", "max"])
def test_the_head_runs_on_subgraphs_or_on_graphs(how: str) -> None:
    policy = enfa.NodeMarking()
    model = _model(Squared, policy)
    expected = pyg_results(model, _graphs(), policy, how)
    assert difference(expected, lifted_results(model, _graphs(), policy, "distinct", bag_pool=how)) < 1e-10

    lifted = lift(model, bag_pool=how, head="graph")
    bag = make_plan(_graphs(), policy, lifted)
    h = bag.propagate(model.conv, torch.cat([bag.x, bag.mark], 1))
    other = model.head(bag.pool(bag.pool(h, "max"), how)).square()
    torch.testing.assert_close(lifted(bag), other)
    assert not torch.allclose(other, lift(model, bag_pool=how)(bag))


def test_marks_are_added_or_left_out() -> None:
    policy, graphs = enfa.NodeMarking(), _graphs()
    torch.manual_seed(0)
    model = Squared(3)
    for marks, mark in (("add", 1.0), (None, 0.0)):
        lifted = lift(model, marks=marks)
        bag = make_plan(graphs, policy, lifted)
        h = bag.propagate(model.conv, bag.x + mark * bag.mark)
        torch.testing.assert_close(lifted(bag), bag.pool(model.head(bag.pool(h, "max")).square(), "mean"))


class Weighted(nn.Module):
    def __init__(self, ins: int) -> None:
        super().__init__()
        self.conv = pyg.GCNConv(ins, 2)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor, batch: Tensor) -> Tensor:
        return global_add_pool(self.conv(x, edge_index, edge_weight), batch)


def test_edge_weights() -> None:
    graphs, policy = _graphs(), enfa.NodeDeletion()
    for graph in graphs:
        graph.edge_attr = graph.edge_attr[:, :1].abs() + 0.1
    model = _model(Weighted, policy)
    given, graph_of = written_out(graphs, policy)
    other = copy.deepcopy(model)
    rows = other.conv(given["x"], given["edge_index"], given["edge_attr"][:, 0])
    out = global_add_pool(rows, given["batch"], len(graph_of))  # some subgraphs have no nodes
    expected = results(other, pyg.global_mean_pool(out, graph_of, len(graphs)))
    assert difference(expected, lifted_results(model, graphs, policy, "distinct", edges="edge_weight")) < 1e-10
    with pytest.raises(TypeError, match="Weighted needs 'edge_weight'"):
        make_plan(graphs, policy, lift(model))


class Counting(nn.Module):
    def __init__(self, ins: int) -> None:
        super().__init__()
        self.conv = GINConv(nn.Linear(ins, 2))

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return global_add_pool(self.conv(x, edge_index), batch) / edge_index.size(1)


class Unpooled(Counting):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:  # type: ignore[override]
        return self.conv(x, edge_index)


class Norms(Counting):
    def __init__(self, ins: int) -> None:
        super().__init__(ins)
        self.norm = pyg.GraphNorm(2)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return global_add_pool(self.norm(self.conv(x, edge_index), batch), batch)


class Sorts(Counting):
    def __init__(self, ins: int) -> None:
        super().__init__(ins)
        self.pool = pyg.SortAggregation(2)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return self.pool(self.conv(x, edge_index), batch)


class Sized(Counting):
    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return pyg.global_mean_pool(self.conv(x, edge_index), batch, size=1000)


@pytest.mark.parametrize("make", [pyg.GIN, pyg.GCN, pyg.GraphSAGE, pyg.GAT])
def test_a_model_without_columns_for_the_mark(make: Any) -> None:
    with pytest.raises(ValueError, match=r"^Expected G\w+ to take 4 columns, .*, got one that takes 3: .* 3 \+ 1 wide$"):
        make_plan(_graphs(), enfa.NodeMarking(), lift(make(3, 8, 2, 1), pool="sum"))
    with pytest.raises(RuntimeError, match="cannot be multiplied"):  # wrong in another way
        make_plan(_graphs(), enfa.NodeMarking(), lift(make(7, 8, 2, 1), pool="sum"))


@pytest.mark.parametrize(
    ("make", "options", "sentence"),
    [
        (Counting, {}, r"reads the edge list by itself \(size\)"),
        (Unpooled, {}, "Expected a model that pools its nodes, got Unpooled"),
        (Norms, {}, "Expected no norm with statistics per graph on Rows, .*, got GraphNorm: use torch.nn.BatchNorm1d"),
        (Sorts, {}, "Expected a sum, mean, maximum.* got SortAggregation"),
        (Sized, {}, "Expected a pool of the graphs that there are, got size=1000: leave size away"),
        (Squared, {"pool": "sum"}, "Expected a row for every node from Squared"),
        (lambda ins: pyg.GIN(ins, 4, 2, 2, jk="lstm"), {"pool": "sum"}, "lstm is not known to act on each row by itself"),
        (lambda ins: pyg.GIN(ins, 4, 2, 2, norm="instance"), {"pool": "sum"}, "by itself|statistics"),
        (lambda ins: pyg.GAT(ins, 4, 2, 2, dropout=0.5), {"pool": "sum"}, "dropout=0.5 inside"),
    ],
)  # fmt: skip
def test_what_cannot_be_exact_is_refused(make: Any, options: dict[str, Any], sentence: str) -> None:
    policy = enfa.NodeMarking()
    with pytest.raises((TypeError, ValueError), match=sentence):
        make_plan(_graphs(), policy, lift(make(4), **options))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"marks": "concatenate"}, r"marks.*did you mean 'concat'"), ({"pool": "softmax"}, "Expected pool"),
        ({"bag_pool": None}, "Expected bag_pool"),
        ({"head": "graphs"}, "did you mean 'graph'"), ({"edges": "weights"}, "Expected edges"),
    ],
)  # fmt: skip
def test_unknown_options(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        lift(Squared(3), **options)


def test_a_module_that_is_no_model_of_graphs() -> None:
    with pytest.raises(TypeError, match=r"Expected a model with forward\(x, edge_index, ...\)"):
        lift(nn.Linear(2, 2))


def test_graphs_with_loops_are_refused_where_the_model_replaces_them() -> None:
    graphs = [*_graphs(), degenerate_graphs(3, 2)["loops"]]
    place = len(graphs) - 1
    for kind in ("full", "distinct"):
        with pytest.raises(ValueError, match=f"Expected graphs without self-loops.* node 0 of graph {place}"):
            make_plan(graphs, enfa.NodeMarking(), lift(Tutorial(4)), kind)
    model = _model(OfData, enfa.NodeMarking())
    expected = pyg_results(model.eval(), graphs, enfa.NodeMarking())
    assert difference(expected, lifted_results(model, graphs, enfa.NodeMarking(), "distinct")) < 1e-10


def test_a_plan_for_another_model_says_so() -> None:
    bag = make_plan(_graphs(), enfa.NodeMarking(), lift(Squared(4)))
    with pytest.raises(ValueError, match="Make a plan with this model"):
        lift(Tutorial(4))(bag)


def test_the_model_is_left_as_it_was() -> None:
    model = _model(VirtualNode, enfa.NodeMarking())
    before = {id(m): set(vars(m)) for m in model.modules()}
    lifted = lift(model)
    lifted(make_plan(_graphs(), enfa.NodeMarking(), lifted))
    assert {id(m): set(vars(m)) for m in model.modules()} == before
    assert [id(p) for p in lifted.parameters()] == [id(p) for p in model.parameters()]


def test_weights_of_a_lifted_model_are_kept_by_other_means() -> None:
    with pytest.raises(AttributeError, match=r"for save_pretrained, got a lifted one: .*torch.save\(model.state_dict"):
        lift(Squared(4)).save_pretrained("x")
    with pytest.raises(AttributeError, match="'Lifted' object has no attribute 'save'"):
        lift(Squared(4)).save("x")


def test_threads_run_one_model() -> None:
    policy = enfa.NodeMarking()
    model = _model(Attends, policy).eval()
    lifted = lift(model)
    bags = [make_plan(_graphs()[i:], policy, lifted) for i in range(4)]
    expected, found = [lifted(bag).detach() for bag in bags], [None] * 4
    given = [torch.randn(3, 4, dtype=torch.float64), torch.tensor([[0, 1], [1, 2]])]
    plain = model(*given, batch=torch.zeros(3, dtype=torch.long)).detach()

    def work(i: int) -> None:
        for _ in range(5):
            found[i] = lifted(bags[i]).detach()
            torch.testing.assert_close(model(*given, batch=torch.zeros(3, dtype=torch.long)).detach(), plain)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for mine, other in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, other)


def test_own_conv_counts_degrees_of_the_subgraph() -> None:
    model = lift(_model(Own, enfa.NodeDeletion()))
    assert "start with degrees" in str(make_plan(_graphs(), enfa.NodeDeletion(), model).program)
