"""The shipped check finds what it is there to find."""

import copy
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from bag_models import Knowledge, Net
from torch import nn
from torch_geometric import nn as pyg

import enfa
from enfa.graphs import GraphSet, check_graphs
from enfa.plan.derived.lists import list_sizes
from enfa.testing import assert_same_as_full, differences, random_graphs
from enfa.testing import same as module

GRAPHS = random_graphs(5, 7, seed=1)


def _model(**options: object) -> nn.Module:
    torch.manual_seed(0)
    return enfa.DSGNN(3, 4, 2, 2, **options)


def _with(plan: enfa.Bag, number: int, **changes: object) -> enfa.Bag:
    """The plan with other arrays in one table."""
    tables = list(plan.tables)
    tables[number] = replace(tables[number], **changes)
    return replace(plan, tables=tables)


def _copies(plan: enfa.Bag) -> enfa.Bag:
    return _with(plan, 1, copies=plan.tables[1].copies + 1)


def _message(plan: enfa.Bag) -> enfa.Bag:
    """Messages come from other rows."""
    links = plan.tables[2].links
    return _with(plan, 2, links=replace(links, in_row=links.in_row.roll(1)))


def _size(plan: enfa.Bag) -> enfa.Bag:
    """The sum is right, but of one row too many."""
    wrong = _with(plan, 3)
    wrong.tables[3].cache["sizes"] = list_sizes(plan.tables[3]) + 1
    return wrong


def _pool(plan: enfa.Bag) -> enfa.Bag:
    """Subgraphs have the lists of others."""
    parts = plan.tables[3].parts
    return _with(plan, 3, parts=replace(parts, row=parts.row.roll(2)))


@pytest.mark.parametrize(
    ("fault", "what"),
    [(_copies, "buffer layers.0.norm.running_mean"), (_message, "output"), (_size, "output"), (_pool, "output")],
    ids=["copies", "messages", "sizes", "pools"],
)
def test_finds_a_wrong_plan(fault: Callable[[enfa.Bag], enfa.Bag], what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right, model = module.step_plan_of, _model(readout="mean")
    assert_same_as_full(model, enfa.NodeMarking(), GRAPHS)

    def wrong(*args: object) -> enfa.Bag:
        plan = right(*args)
        return fault(plan) if plan.kind == "distinct" else plan

    monkeypatch.setattr(module, "step_plan_of", wrong)
    with pytest.raises(AssertionError, match=r"quantities differ from the full plan by more than 1e-10"):
        assert_same_as_full(model, enfa.NodeMarking(), GRAPHS)
    off = [d for d in differences(model, enfa.NodeMarking(), GRAPHS) if d.relative > 1e-10]
    assert {d.kind for d in off} == {"distinct"} and what in {d.what for d in off}
    assert_same_as_full(model, enfa.NodeMarking(), GRAPHS, kinds=["ego"])


class _ByNumber(pyg.SAGEConv):
    """A conv that no plan can be exact for: it looks at the number of a row, though only where there are many of them, which is
    not seen when it is traced."""

    def update(self, out: torch.Tensor) -> torch.Tensor:
        return out + torch.arange(len(out), dtype=out.dtype)[:, None] if len(out) > 40 else out


def test_finds_a_wrong_conv() -> None:
    with pytest.raises(AssertionError, match=r"(?s)ego .*distinct "):
        assert_same_as_full(_model(conv=lambda i, o: _ByNumber((i, i), o)), enfa.NodeMarking(), GRAPHS)


def test_finds_a_wrong_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one small tensor in the first layer, far below the head's in size."""
    right = module.results_in_place

    def wrong(model: nn.Module, plan: enfa.Bag, train: bool, steps: int) -> dict:
        found = right(model, plan, train, steps)
        if plan.kind == "distinct":
            name = "gradient of layers.0.conv.update.0.weight"
            found[name] = found[name] * (1 + 1e-6)
        return found

    monkeypatch.setattr(module, "results_in_place", wrong)
    with pytest.raises(AssertionError, match=r"gradient of layers.0.conv.update.0.weight: 1"):
        assert_same_as_full(_model(), enfa.NodeMarking(), GRAPHS)


def test_compares_the_gradients_of_features(monkeypatch: pytest.MonkeyPatch) -> None:
    """And finds the mistake of merging equal nodes, whose gradients then are one."""
    graphs = copy.deepcopy(GRAPHS)
    for graph in graphs[1:]:
        graph.x.requires_grad_()
    names = {d.what for d in differences(_model(), enfa.NodeMarking(), graphs)}
    assert {f"gradient of x of graph {i}" for i in range(5)} <= names
    assert_same_as_full(_model(), enfa.NodeMarking(), graphs, steps=2)
    assert all(graph.x.grad is None and graph.x.dtype == torch.float32 for graph in graphs)
    right = module.step_plan_of

    def merged(checked: GraphSet, *args: object) -> enfa.Bag:
        if args[2] == "distinct":  # each node has the number of the first one that looks like it
            same = check_graphs(GRAPHS)
            first = np.unique(same.node_kind, return_index=True)[1]
            checked = replace(checked, node_kind=first[same.node_kind])
        return right(checked, *args)

    monkeypatch.setattr(module, "step_plan_of", merged)
    off = [d for d in differences(_model(), enfa.NodeMarking(), graphs) if d.relative > 1e-10]
    assert {d.kind for d in off} == {"distinct"} and {d.what for d in off} <= {f"gradient of x of graph {i}" for i in range(5)}


def test_finds_what_is_not_finite_or_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    right = module.results_in_place

    def wrong(model: nn.Module, plan: enfa.Bag, train: bool, steps: int) -> dict:
        found = right(model, plan, train, steps)
        if plan.kind == "distinct":
            found["output"] = found["output"] * float("nan")
            del found["gradient of head.3.bias"]
        return found

    monkeypatch.setattr(module, "results_in_place", wrong)
    off = {d.what: d.relative for d in differences(_model(), enfa.NodeMarking(), GRAPHS, modes=["eval"])
           if d.kind == "distinct"}  # fmt: skip
    assert off["output"] == off["gradient of head.3.bias"] == float("inf")


def test_buffers_may_be_masks() -> None:
    model = _model()
    model.register_buffer("chosen", torch.tensor([True, False]))
    model.register_buffer("causal", torch.full((2, 2), -torch.inf).triu(1))
    assert_same_as_full(model, enfa.NodeMarking(), GRAPHS)


def test_finds_what_is_another_whenever_it_is_run() -> None:
    model = _model()
    model.head.register_forward_hook(lambda head, given, out: out * (1 + np.random.default_rng().random()))
    assert max(d.relative for d in differences(model, enfa.NodeMarking(), GRAPHS, kinds=["full"])) > 1e-6


def test_lists_every_quantity_of_every_plan_and_mode() -> None:
    found = list(differences(_model(), enfa.NodeMarking(), GRAPHS, steps=2))
    assert {(d.kind, d.mode) for d in found} == {(k, m) for k in ("ego", "distinct") for m in ("train", "eval")}
    names = {d.what for d in found if d.mode == "train"}
    model = _model()
    assert {f"gradient of {n}" for n, _ in model.named_parameters()} <= names
    assert {f"weight {n} after 2 steps" for n, _ in model.named_parameters()} <= names
    assert {f"buffer {n}" for n, _ in model.named_buffers()} <= names
    assert {"output", "output after 2 steps"} <= names
    assert max(d.relative for d in found) < 1e-10


def test_leaves_the_model_and_the_generator_as_they_were() -> None:
    model = _model(dropout=0.5)
    state, generator = copy.deepcopy(model.state_dict()), torch.get_rng_state()
    assert_same_as_full(model, enfa.NodeMarking(), GRAPHS, steps=2)
    assert torch.equal(torch.get_rng_state(), generator)
    assert all(torch.equal(v, state[k]) for k, v in model.state_dict().items())
    assert model.training and next(model.parameters()).dtype == torch.float32


def test_float32_has_a_tolerance_of_its_own() -> None:
    assert_same_as_full(_model(), enfa.NodeMarking(), GRAPHS, dtype=torch.float32)
    with pytest.raises(AssertionError, match="by more than 1e-20"):
        assert_same_as_full(_model(), enfa.NodeMarking(), GRAPHS, dtype=torch.float32, tolerance=1e-20)


def test_the_model_stays_as_it_is() -> None:
    """Though it is evaluated and trained; and training does not see the gradients of the evaluation."""
    torch.manual_seed(0)
    model = enfa.DSGNN(3, 4, 2, 2, dropout=0.5).eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    graphs = random_graphs(3, 5, channels=3)
    both = list(differences(model, enfa.NodeMarking(), graphs, steps=2))
    assert not model.training and all(p.grad is None for p in model.parameters())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    alone = [d for mode in ("train", "eval") for d in differences(model, enfa.NodeMarking(), graphs, modes=[mode], steps=2)]
    assert both == alone


def test_takes_any_module() -> None:
    """Word for word as the documentation has it; and finds a model whose rows are not computed each by itself."""
    assert_same_as_full(Net(), enfa.NodeMarking(), GRAPHS, steps=2)
    found = list(differences(Knowledge(), enfa.NodeMarking(), GRAPHS))
    assert {(d.kind, d.mode) for d in found} == {(k, m) for k in ("ego", "distinct") for m in ("train", "eval")}
    assert {"output", "gradient of first.nn.lins.0.weight", "buffer norm.running_var"} <= {d.what for d in found}
    assert max(d.relative for d in found) < 1e-10


class _Escaped(Net):
    """Takes a mean over rows, past what Rows refuse."""

    def forward(self, bag: enfa.Bag) -> torch.Tensor:
        return self.head(bag.pool(bag.pool(self.embed(torch.cat([bag.x, bag.mark], 1))))) + bag.x.value.mean()


def test_finds_a_module_that_mixes_rows() -> None:
    with pytest.raises(AssertionError, match=r"(?s)quantities differ .*distinct eval   output"):
        assert_same_as_full(_Escaped(), enfa.NodeMarking(), GRAPHS)


def test_compares_the_gradients_of_features_for_any_module() -> None:
    graphs = copy.deepcopy(GRAPHS)
    for graph in graphs:
        graph.x.requires_grad_()
    names = {d.what for d in differences(Net(), enfa.NodeMarking(), graphs)}
    assert {f"gradient of x of graph {i}" for i in range(5)} <= names
    assert_same_as_full(Net(), enfa.NodeMarking(), graphs, steps=2)


class Several(nn.Module):
    """Outputs of every kind, also numbers without a gradient. ``wrong``: one of them depends on the plan."""

    def __init__(self, wrong: bool) -> None:
        super().__init__()
        self.lin, self.wrong = nn.Linear(4, 2), wrong

    def forward(self, bag: enfa.Bag) -> object:
        h = self.lin(torch.cat([bag.x, bag.mark], 1))
        pooled = bag.pool(bag.pool(h))
        nodes = bag.each(bag.across(h)) * (h.value.shape[0] if self.wrong else 1)
        return {"graphs": (pooled, pooled.argmax(1)), "nodes": [nodes]}


def test_outputs_in_tuples_lists_and_dictionaries() -> None:
    found = {one.what for one in differences(Several(False), enfa.NodeMarking(), GRAPHS, steps=2)}
    assert {"output graphs 0", "output graphs 1", "output nodes 0", "output nodes 0 after 2 steps"} <= found
    assert_same_as_full(Several(False), enfa.NodeMarking(), GRAPHS, steps=2)
    with pytest.raises(AssertionError, match="output nodes 0"):
        assert_same_as_full(Several(True), enfa.NodeMarking(), GRAPHS)


class Means(nn.Module):
    def forward(self, bag: enfa.Bag) -> torch.Tensor:
        return bag.pool(bag.pool(bag.x, "mean"), "mean")


def test_a_model_without_parameters() -> None:
    assert_same_as_full(Means(), enfa.NodeDeletion(), GRAPHS, steps=2)
