"""Tracing: what a model asks for, and what running it once must not change."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest
import torch
import torch_geometric.nn as pyg
from bag_models import Between, Context, Knowledge, Net
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GINConv

import enfa
from enfa.edits.policy import GraphView
from enfa.nn.bag import trace
from enfa.testing import assert_same_as_full, large_graph, random_graph, random_graphs


def test_a_program_is_a_line_a_step() -> None:
    assert str(trace(Context(), random_graphs(3, 5, seed=1), enfa.NodeMarking())) == "\n".join(
        [
            " 0  pairs      start",
            " 1  pairs      propagate 0",
            " 2  nodes      across 1",
            " 3  nodes      propagate 2",
            " 4  pairs      propagate 1",
            " 5  pairs      spread 3",
            " 6  pairs      join 4 5",
            " 7  subgraphs  pool 6",
            " 8  graphs     pool 7",
        ]
    )


@pytest.mark.parametrize("kind", [Net, Context, Between, Knowledge])
def test_depends_on_no_graph(kind: type[nn.Module]) -> None:
    """Also where the smallest lacks what others have, and where all are large."""
    expected = trace(kind(), random_graphs(5, 7, seed=1), enfa.NodeMarking())
    empty = torch.zeros(2, 0, dtype=torch.long)
    for graphs in (
        [Data(x=torch.zeros(0, 3), edge_index=empty)],
        [Data(x=torch.zeros(1, 3), edge_index=empty), random_graph(5)],
        [Data(x=torch.zeros(300, 3), edge_index=empty)],
        [Data(x=torch.zeros(1, 3), edge_index=torch.zeros(2, 1, dtype=torch.long))],
        [large_graph(3000, channels=3)],
    ):
        assert trace(kind(), graphs, enfa.NodeMarking()) == expected


class _Triangles(enfa.Policy):
    """A subgraph for every node of a triangle, rooted there."""

    def bag(self, graph: GraphView) -> Iterator[enfa.Subgraph]:
        if graph.edge_index.shape[1] == 6 and graph.num_nodes == 3:
            for v in range(3):
                yield enfa.Subgraph().mark_node(v).rooted_at(v)


def test_roots_may_be_in_other_graphs_than_the_smallest() -> None:
    """A policy that finds nothing to edit in one graph says nothing of its roots there."""
    path = Data(x=torch.ones(2, 3), edge_index=torch.tensor([[0, 1], [1, 0]]))
    triangle = Data(x=torch.ones(3, 3), edge_index=torch.tensor([[0, 1, 2, 1, 2, 0], [1, 2, 0, 0, 1, 2]]))
    expected = trace(enfa.DSGNN(3, 4, 2, 2, readout="root"), [triangle], enfa.NodeMarking())
    for graphs in ([path, triangle], [triangle, path]):
        assert trace(enfa.DSGNN(3, 4, 2, 2, readout="root"), graphs, _Triangles()) == expected
        assert_same_as_full(enfa.DSGNN(3, 4, 2, 2, readout="root"), _Triangles(), graphs)
    with pytest.raises(ValueError, match="does not say which node each subgraph is about"):
        trace(enfa.DSGNN(3, 4, 2, 2, readout="root"), [path, path], _Triangles())


class _Uncounted(Net):
    """Without what counts rows."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(32) for _ in self.norms)
        self.convs = nn.ModuleList(GINConv(nn.Linear(32, 32)) for _ in self.convs)


def test_says_whether_rows_are_counted() -> None:
    """Seen in evaluation mode, in which a BatchNorm does not count them."""
    graphs, policy = random_graphs(3, 6, seed=1), enfa.NodeMarking()
    counted, uncounted = (trace(model, graphs, policy) for model in (Net(), _Uncounted()))
    assert counted.steps == uncounted.steps and counted.counted and not uncounted.counted
    bag = enfa.make_plan(graphs, policy, uncounted)
    assert isinstance(bag, enfa.Bag) and all(table.copies is None for table in bag.tables)
    Net().eval()(bag)
    with pytest.raises(ValueError, match=r"^The model has a BatchNorm on Rows, .* Make a plan with this model$"):
        Net().train()(bag)
    assert_same_as_full(_Uncounted(), policy, graphs)


@pytest.mark.parametrize("policy", [enfa.EdgeDeletion(), enfa.EgoNets(1, mark=True), enfa.NodeMarking(distances=1)])
def test_of_a_large_graph_a_piece_is_written_out(policy: enfa.Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    """All subgraphs of this one would have ten million pairs."""
    sizes = []
    right = enfa.nn.bag.trace.__globals__["full_step_plan"]

    def noted(graphs: object, *args: object) -> object:
        sizes.append(graphs.num_nodes)
        return right(graphs, *args)

    monkeypatch.setitem(enfa.nn.bag.trace.__globals__, "full_step_plan", noted)
    enfa.trace(Net(policy.mark_channels), [large_graph(3000, channels=3)], policy)
    assert 1 < sizes[0] <= 8


def test_the_model_and_the_generator_stay_as_they_were() -> None:
    model = Knowledge()
    model.last.register_forward_pre_hook(lambda *_: torch.manual_seed(5) and None)  # draws in evaluation, too
    model.first.eval()
    before, state = copy.deepcopy(model.state_dict()), torch.get_rng_state()
    modes = [module.training for module in model.modules()]
    assert trace(model, random_graphs(3, 5), enfa.NodeMarking()).share == "graph"  # it has dropout
    assert [module.training for module in model.modules()] == modes and not all(modes)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters()) and torch.equal(state, torch.get_rng_state())
    model.drop.p = 0.0
    assert trace(model, random_graphs(3, 5), enfa.NodeMarking()).share == "dataset"


class _Moody(nn.Module):
    """Asks for another step in training."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.conv = nn.Linear(3, 4), GINConv(nn.Linear(4, 4))

    def forward(self, bag: enfa.Bag) -> Tensor:
        h = self.embed(bag.x)
        if self.training:
            h = bag.propagate(self.conv, h)
        return bag.pool(bag.pool(h))


def test_a_model_that_asks_for_more_in_training_is_refused_then() -> None:
    model, graphs = _Moody(), random_graphs(3, 5)
    plan = enfa.make_plan(graphs, enfa.NodeMarking(), model)
    assert model.eval()(plan).shape == (3, 4)
    sentence = r"does not hold: pairs, propagate 0\. Make .* something else from call to call, or in training than (.|\n)*start"
    with pytest.raises(ValueError, match=sentence):
        model.train()(plan)


def test_a_failing_model_is_left_in_training() -> None:
    class Wrong(nn.Module):
        def forward(self, bag: enfa.Bag) -> Tensor:
            return bag.x.mean(0)

    model = Wrong()
    with pytest.raises(TypeError, match=r"^mean .*mixes rows"):
        enfa.make_plan(random_graphs(3, 5), enfa.NodeMarking(), model)
    assert model.training


class _Asks(nn.Module):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def forward(self, bag: enfa.Bag) -> Tensor:
        return getattr(bag, self.name)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "edge_index",
            r"one of x, .*, got 'edge_index': pass messages with bag.propagate\(conv, h\), or use enfa.lift",
        ),
        ("propogate", r"one of x, .*, got 'propogate' \(did you mean 'propagate'\?\)$"),
    ],
)
def test_what_a_bag_does_not_have(name: str, sentence: str) -> None:
    """While a model is traced, and on a plan."""
    graphs, policy = random_graphs(3, 5), enfa.NodeMarking()
    plan = enfa.make_plan(graphs, policy, Net())
    for run in (lambda: trace(_Asks(name), graphs, policy), lambda: getattr(plan, name)):
        with pytest.raises(AttributeError, match=f"^Expected what a model asks of a bag to be {sentence}"):
            run()
    assert not hasattr(plan, name) and hasattr(plan, "propagate")
    assert str(copy.deepcopy(plan)) == str(plan)


def test_a_property_of_a_bag_that_fails_says_why() -> None:
    plan = enfa.make_plan(random_graphs(3, 5), enfa.NodeMarking(), Net())
    plan.x_rows = None  # type: ignore[assignment]
    with pytest.raises(AttributeError, match="'NoneType' object has no attribute"):
        plan.x  # noqa: B018


@pytest.mark.parametrize("norm", [pyg.GraphNorm(4), pyg.InstanceNorm(4), nn.InstanceNorm1d(4), pyg.LayerNorm(4)])
def test_norms_per_graph_are_refused_by_name(norm: nn.Module) -> None:
    class Normed(nn.Module):
        def forward(self, bag: enfa.Bag) -> Tensor:
            return bag.pool(bag.pool(self.norm(bag.x)))

    model, graphs, policy = Normed(), random_graphs(3, 5, channels=4), enfa.NodeMarking()
    model.norm = norm
    with pytest.raises(TypeError, match=rf"norm with statistics per graph on Rows, .* got {type(norm).__name__}.*: use torch"):
        trace(model, graphs, policy)
    for fine in (nn.BatchNorm1d(4), nn.LayerNorm(4), pyg.LayerNorm(4, mode="node")):
        model.norm = fine
        trace(model, graphs, policy)


def test_lazy_modules_are_made_by_tracing() -> None:
    model = Net()
    model.embed = nn.LazyLinear(32)
    assert_same_as_full(model, enfa.NodeMarking(), random_graphs(3, 5))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
@pytest.mark.parametrize("kind", [Context, Between])
def test_on_a_gpu(kind: type[nn.Module]) -> None:
    """Tables are made when they are asked for, and follow the model there."""
    graphs = random_graphs(4, 6, seed=1)
    assert trace(kind().cuda(), graphs, enfa.NodeMarking()) == trace(kind(), graphs, enfa.NodeMarking())
    assert_same_as_full(kind().cuda(), enfa.NodeMarking(), graphs)


class _Shared(nn.Module):
    def __init__(self, share: object) -> None:
        super().__init__()
        self.share, self.embed = share, nn.Embedding(3, 4, max_norm=0.1)

    def forward(self, bag: enfa.Bag) -> Tensor:
        return bag.pool(bag.pool(nn.functional.dropout(self.embed(bag.x[:, 0]), 0.5, self.training)))


def test_an_attribute_called_share_may_be_something_else() -> None:
    graphs = random_graphs(3, 5, channels=[3])
    for share in (True, nn.Linear(2, 2), None):
        assert trace(_Shared(share), graphs, enfa.NodeMarking()).share == "graph"
    assert trace(_Shared("dataset"), graphs, enfa.NodeMarking()).share == "dataset"
    with pytest.raises(ValueError, match="Expected share of _Shared to be 'dataset', 'graph' or None, got 'graphs'"):
        trace(_Shared("graphs"), graphs, enfa.NodeMarking())


def test_weights_that_a_pass_shortens_stay_as_they_were() -> None:
    model = _Shared(None)
    before = model.embed.weight.detach().clone()
    trace(model, random_graphs(3, 5, channels=[3]), enfa.NodeMarking())
    assert torch.equal(model.embed.weight, before)


def test_an_attribute_of_graphs_that_is_none_is_named() -> None:
    class Reads(nn.Module):
        def forward(self, bag: enfa.Bag) -> Tensor:
            return bag.graph_attr["dipole"]

    graphs = random_graphs(2, 5, channels=3)
    graphs[0].dipole = torch.ones(3)
    with pytest.raises(KeyError, match="Expected an attribute of whole graphs, got 'dipole'; there are none"):
        trace(Reads(), graphs, enfa.NodeMarking())


def test_scripted_modules_behind_the_last_pool_are_taken_and_on_rows_refused() -> None:
    model = Net()
    model.head = torch.jit.script(model.head)
    plan = enfa.make_plan(random_graphs(3, 5, seed=1), enfa.NodeMarking(), model)
    assert model(plan).isfinite().all()
    model.embed = torch.jit.script(model.embed)
    with pytest.raises(TypeError, match="take a module as it is, not scripted or traced"):
        trace(model, random_graphs(3, 5, seed=1), enfa.NodeMarking())


class _Statistics(nn.Module):
    """Norms that take statistics in evaluation, too, of subgraphs and of graphs: of one each, where a model is traced."""

    def __init__(self, always: bool) -> None:
        super().__init__()
        self.always, self.lin = always, nn.Linear(4, 4)
        self.norms = nn.ModuleList(nn.BatchNorm1d(4, track_running_stats=always) for _ in range(2))

    def train(self, mode: bool = True) -> _Statistics:
        super().train(mode)
        self.norms.train(mode or self.always)
        return self

    def forward(self, bag: enfa.Bag) -> Tensor:
        h = self.norms[0](bag.pool(self.lin(torch.cat([bag.x, bag.mark], 1))))
        return self.norms[1](bag.pool(h))


@pytest.mark.parametrize("always", [True, False])
def test_norms_that_take_statistics_in_evaluation(always: bool) -> None:
    model, policy = _Statistics(always), enfa.Subsample(enfa.NodeMarking(), count=1)
    assert_same_as_full(model, policy, random_graphs(5, 6, seed=1), steps=2)
    plan = enfa.make_plan(random_graphs(1, 6, seed=1), policy, model)
    with pytest.raises(ValueError, match="Expected more than 1 of the subgraphs to compute BatchNorm statistics, got 1"):
        model(plan)
