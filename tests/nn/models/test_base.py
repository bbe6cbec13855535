import copy
import math
import re
import warnings

import pytest
import torch
from torch import nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GIN

import enfa
from enfa.testing import degenerate_graphs, random_graphs


@pytest.mark.parametrize("model", [enfa.DSGNN, enfa.DSSGNN, enfa.SSWLGNN, enfa.SUN])
@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"num_layers": 0}, ValueError, "Expected num_layers to be an integer >= 1, got 0"),
        ({"num_layers": True}, ValueError, "Expected num_layers to be an integer >= 1, got True"),
        ({"hidden_channels": 0}, ValueError, "Expected hidden_channels to be an integer >= 1, got 0"),
        ({"hidden_channels": 4.0}, ValueError, "Expected hidden_channels to be an integer >= 1, got 4.0"),
        ({"out_channels": 0}, ValueError, "Expected out_channels to be an integer >= 1, got 0"),
        ({"out_channels": True}, ValueError, "Expected out_channels to be an integer >= 1, got True"),
        ({"in_channels": -1}, ValueError, "Expected in_channels to be an integer >= 0, got -1"),
        ({"in_channels": True}, ValueError, "Expected in_channels to be an integer >= 0, got True"),
        ({"in_channels": 2.5}, ValueError, "Expected in_channels to be an integer >= 0, got 2.5"),
        ({"in_channels": [3, 2.5]}, ValueError, r"Expected cardinalities >= 1, one per column, got \[3, 2.5\]"),
        ({"in_channels": [3, True]}, ValueError, r"Expected cardinalities >= 1, one per column, got \[3, True\]"),
        ({"mark_channels": -1}, ValueError, "Expected mark_channels to be an integer >= 0, got -1"),
        ({"mark_channels": 1.5}, ValueError, "Expected mark_channels to be an integer >= 0, got 1.5"),
        ({"edge_mark_channels": -1}, ValueError, "Expected edge_mark_channels to be an integer >= 0, got -1"),
        ({"conv": "gine", "edge_channels": -1}, ValueError, "Expected edge_channels to be an integer >= 0, got -1"),
        ({"conv": "gine", "edge_channels": []}, ValueError, "Expected cardinalities >= 1, one per column, got "),
        ({"conv": "gine", "edge_channels": 0}, ValueError, "Expected edge_channels for conv='gine', .*, got 0"),
        ({"conv": "gat"}, ValueError, "Expected conv to be one of gin, gine.*, got 'gat'"),
        ({"readout": "median"}, ValueError, "Expected readout to be one of sum, mean, max, .*got 'median'"),
        ({"bag": "max"}, ValueError, "Expected bag to be one of mean, sum, got 'max'"),
        ({"jk": "lsat"}, ValueError, r"Expected jk to be one of last, concat, sum, got 'lsat' \(did you mean 'last'"),
        ({"norm": "graph"}, ValueError, "Expected norm to be one of batch, layer, None, got 'graph'"),
        ({"share": "all"}, ValueError, "Expected share to be 'dataset', 'graph' or None, got 'all'"),
        ({"dropout": 1.0}, ValueError, "Expected a dropout probability from 0 to below 1, got 1.0"),
        ({"dropout": math.nan}, ValueError, "Expected a dropout probability from 0 to below 1, got nan"),
        ({"dropout": -0.1}, ValueError, "Expected a dropout probability from 0 to below 1, got -0.1"),
        (
            {"conv": "gine"},
            ValueError,
            "Expected edge_channels for conv='gine', which reads edge attributes, got None; .* use conv='gin'",
        ),
        ({"in_channels": []}, ValueError, "Expected cardinalities >= 1, one per column, got "),
        ({"hiden_channels": 4}, TypeError, "hiden_channels"),
    ],
)
def test_refuses_nonsense(model: type, options: dict, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        model(**{"in_channels": 3, "hidden_channels": 4, "out_channels": 2, "num_layers": 2, **options})


@pytest.mark.parametrize("model", [enfa.DSGNN, enfa.DSSGNN, enfa.ESAN, enfa.SSWLGNN, enfa.SUN, enfa.NGNN, enfa.GNNAK])
def test_a_conv_without_the_edges_that_it_reads_is_refused_at_once(model: type) -> None:
    """PyTorch warns of linears that read nothing."""
    with warnings.catch_warnings(), pytest.raises(ValueError, match="Expected edge_channels for conv='gine'"):
        warnings.simplefilter("error")
        model(3, 4, 2, 2, conv="gine", mark_channels=1)


@pytest.mark.parametrize(
    "model", [enfa.DSGNN(3, 4, 2, 2), enfa.lift(GIN(4, 4, 2, 2), pool="sum"), enfa.GNNAK(3, 4, 2, 2, mark_channels=1)]
)
def test_a_compiled_dataset_is_no_plan(model: nn.Module) -> None:
    compiled = enfa.compile(random_graphs(2), enfa.NodeMarking(), model, progress=False)
    with pytest.raises(TypeError, match=r"got CompiledDataset: compiled\[:\] is the plan of all its graphs"):
        model(compiled)
    assert len(model(compiled[:])) == 2


@pytest.mark.parametrize("make", [enfa.DSGNN, enfa.SUN, enfa.NGNN], ids=lambda cls: cls.__name__)
def test_an_argument_of_another_name(make: type) -> None:
    with pytest.raises(TypeError, match=f"^Expected an argument of {make.__name__} to be .* \\(did you mean 'num_layers'.\\)$"):
        make(3, 8, 2, num_layer=3)


class Popping(enfa.DSGNN):
    def __init__(self, *args: int, **options: int) -> None:
        self.more = options.pop("more")
        super().__init__(*args, **options)


class Plainly(enfa.DSGNN):
    """Has no constructor of its own."""


def test_arguments_of_models_of_one_s_own() -> None:
    assert Popping(3, 4, 1, 2, more=7).more == 7
    with pytest.raises(TypeError, match=r"^Expected an argument of Plainly to be .* got 'more'$"):
        Plainly(3, 4, 1, 2, more=7)


@pytest.mark.parametrize("model", [enfa.DSGNN(3, 4, 2, 2), enfa.lift(GIN(4, 4, 2, 2), pool="sum")], ids=["own", "lifted"])
def test_runs_on_plans_only(model: nn.Module) -> None:
    graphs = random_graphs(2)
    for given, name in ((graphs, "list"), (graphs[0], "Data"), (Batch.from_data_list(graphs), "DataBatch")):
        with pytest.raises(TypeError, match=rf"^Expected a plan from enfa.make_plan or enfa.DataLoader, got {name}$"):
            model(given)


@pytest.mark.parametrize("jk", ["last", "concat", "sum"])
@pytest.mark.parametrize("model", [enfa.DSGNN, enfa.DSSGNN])
def test_one_row_per_graph(model: type, jk: str) -> None:
    graphs = random_graphs(4, 6) + list(degenerate_graphs().values())
    made = model(3, 5, 7, 3, jk=jk).eval()
    out = made(enfa.make_plan(graphs, enfa.NodeMarking(), made))
    assert out.shape == (len(graphs), 7) and bool(out.isfinite().all())


@pytest.mark.parametrize("kind", ["full", "ego", "distinct"])
@pytest.mark.parametrize("context", [None, "dss", "identity", "mpnn"])
def test_in_eval_a_graph_does_not_see_its_batch(context: str | None, kind: str) -> None:
    graphs = random_graphs(5, 7, seed=3)
    made = enfa.DSSGNN(3, 5, 2, 3, context=context) if context else enfa.DSGNN(3, 5, 2, 3)
    made = made.double().eval()
    together = made(enfa.make_plan(graphs, enfa.NodeMarking(), made, kind))
    for g, graph in enumerate(graphs):
        alone = made(enfa.make_plan([graph], enfa.NodeMarking(), made, kind))
        assert torch.allclose(alone[0], together[g], rtol=1e-10, atol=1e-12)


def test_the_numbers_of_nodes_do_not_matter() -> None:
    graph = random_graphs(1, 9, seed=7, edge_channels=2)[0]
    order = torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(0))
    other = copy.copy(graph)
    other.x, other.edge_index = graph.x[order], order.argsort()[graph.edge_index]
    model = enfa.DSSGNN(3, 5, 2, 3, "gine", edge_channels=2).double().eval()
    for policy in (enfa.NodeMarking(), enfa.NodeDeletion(), enfa.EdgeDeletion()):
        a, b = (model(enfa.make_plan([g], policy, model)) for g in (graph, other))
        assert torch.allclose(a, b, rtol=1e-10)


def _traced(*args: object, **options: object) -> enfa.Program:
    graphs = random_graphs(2, 5, edge_channels=[5])
    return enfa.trace(enfa.DSGNN(3, 4, 2, 2, *args, **options), graphs, enfa.NodeMarking())  # type: ignore[arg-type]


def test_rows_are_shared_within_a_graph_where_dropout_would_strike_all() -> None:
    def share(**options: object) -> str:
        return _traced(**options).share

    assert [share(), share(dropout=0.1)] == ["dataset", "graph"]
    assert share(dropout=0.1, share="dataset") == "dataset"
    assert share(dropout=0.1, independent_dropout=True) == "dataset"


@pytest.mark.parametrize(
    ("conv", "start", "edges"), [("gin", "", ""), ("gcn", " with degrees", ""), ("gine", "", " with edges")]
)
def test_the_program_holds_what_convs_read(conv: str, start: str, edges: str) -> None:
    found = _traced(conv, edge_channels=[5] if conv == "gine" else None)
    expected = [f"start{start}", f"propagate 0{edges}", f"propagate 1{edges}", "pool 2", "pool 3"]
    assert [str(step) for step in found.steps] == expected and found.counted
    assert not _traced(conv, edge_channels=[5] if conv == "gine" else None, norm="layer").counted


@pytest.mark.parametrize("model", [enfa.DSGNN, enfa.DSSGNN])
@pytest.mark.parametrize("edge_channels", [2, [5, 3]])
@pytest.mark.parametrize("conv", ["gin", "graphconv", "gcn"])
def test_edge_channels_that_no_conv_reads_are_refused(model: type, conv: str, edge_channels: int | list[int]) -> None:
    message = (
        f"Expected a conv that reads edge attributes for edge_channels={edge_channels}, got conv={conv!r}, which reads "
        f"none: use conv='gine', or edge_channels=None"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        model(3, 4, 2, 2, conv, edge_channels=edge_channels)
    with pytest.raises(ValueError, match=r"for edge_mark_channels=1, got .*: use conv='gine', or edge_mark_channels=0$"):
        model(3, 4, 2, 2, conv, edge_mark_channels=1)


def test_graphs_may_have_edge_attributes_that_the_model_does_not_read() -> None:
    """As in PyG."""
    graphs = random_graphs(4, 7, seed=1, edge_channels=2)
    model = enfa.DSGNN(3, 4, 2, 2).double().eval()
    plan = enfa.make_plan(graphs, enfa.NodeMarking(), model)
    without = [Data(x=g.x, edge_index=g.edge_index) for g in graphs]
    assert torch.equal(model(plan), model(enfa.make_plan(without, enfa.NodeMarking(), model)))


@pytest.mark.filterwarnings("ignore")
def test_hooks_are_called() -> None:
    """Of linears, whose weights some hooks make, and of the modules that hold them."""
    graphs = random_graphs(4, 6, channels=2)
    model = enfa.DSGNN(2, 6, 1, 2).double().train()
    plan = enfa.make_plan(graphs, enfa.NodeMarking(), model)
    linear = model.layers[0].conv.update[0]
    torch.nn.utils.weight_norm(linear)
    before = model(plan)
    with torch.no_grad():
        linear.weight_g[:3] = 0.0  # a smaller one alone would be undone by the norm
    assert not torch.allclose(model(plan), before, rtol=1e-3)
    called: list[str] = []
    for name in ("layers.1.conv", "layers.1.conv.update", "layers.1.conv.update.0", "layers.1.conv.update.3", "subgraph_mlp"):
        model.get_submodule(name).register_forward_hook(lambda *_, name=name: called.append(name))
    out = model(plan)
    assert len(set(called)) == 5
    for module in model.modules():
        module._forward_hooks.clear()
    torch.testing.assert_close(model(plan), out)


def test_second_derivatives_are_refused() -> None:
    model = enfa.DSGNN(2, 6, 1, 2).double().train()
    plan = enfa.make_plan(random_graphs(4, 6, channels=2), enfa.NodeMarking(), model)
    first = torch.autograd.grad(model(plan).sum(), list(model.parameters()), create_graph=True)
    penalty = torch.stack([grad.square().sum() for grad in first]).sum()
    with pytest.raises(RuntimeError, match="once_differentiable"):
        torch.autograd.grad(penalty, list(model.parameters()), retain_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        penalty.backward()
