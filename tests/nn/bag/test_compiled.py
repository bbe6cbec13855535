"""Models and convs that PyTorch's compiler is asked to compile."""

import copy
from collections.abc import Callable
from threading import Event, Thread
from typing import Any

import pytest
import torch
from one_conv import Net, Whole
from torch import nn
from torch_geometric.nn import GINConv

import enfa
from enfa.testing import random_graphs


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("lifted", [False, True])
def test_a_compiled_model_gives_the_same(lifted: bool) -> None:
    graphs, conv = random_graphs(2, nodes=5, channels=3), GINConv(nn.Linear(3, 4))
    model = enfa.lift(conv, pool="sum", marks=None) if lifted else Net(conv)
    plan = enfa.make_plan(graphs, Whole(), model)
    expected = model(plan)
    found = torch.compile(model, backend="eager")(plan)
    torch.testing.assert_close(found, expected)
    found.sum().backward()
    assert conv.nn.weight.grad is not None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("model", [enfa.DSGNN, enfa.DSSGNN, enfa.SUN, enfa.GNNAK, enfa.IDGNN])
def test_compiled_models_of_the_package_run_as_they_are(model: Any, in_place: bool) -> None:
    """Planned, too, after they were compiled."""
    graphs, own = random_graphs(3, nodes=6, channels=1), model(1, 8, 2, 2, mark_channels=1).double()
    policy, other = enfa.EgoNets(2, mark=True), copy.deepcopy(own)
    if in_place:
        own.compile(backend="eager")
    compiled = own if in_place else torch.compile(own, backend="eager")
    plan = enfa.make_plan(graphs, policy, compiled)
    found = compiled(plan)
    expected = other(enfa.make_plan(graphs, policy, other))
    assert torch.equal(found, expected) and torch.equal(compiled(bag=plan), other(bag=plan))
    found.sum().backward()
    expected.sum().backward()
    for a, b in zip(own.parameters(), other.parameters()):
        assert torch.equal(a.grad, b.grad)


@pytest.mark.filterwarnings("ignore")
def test_compiled_models_may_be_planned_in_several_threads() -> None:
    """The compiler, which is kept out of all threads meanwhile, stayed out where the first one in was the first one out."""
    graphs, first, second, calls = random_graphs(2, nodes=5, channels=3), Event(), Event(), []

    def plan(begin: Callable[[], None]) -> None:
        model = Net(GINConv(nn.Linear(3, 4)))
        model.forward = lambda bag: begin() or Net.forward(model, bag)
        model.compile(backend="eager")
        enfa.make_plan(graphs, Whole(), model)

    one = Thread(target=plan, args=(lambda: first.set() or (second.wait(30) and None),))
    other = Thread(target=plan, args=(lambda: second.set() or one.join(30),))
    one.start()
    assert first.wait(30)
    other.start()
    other.join(30)
    torch.compile(lambda x: x + 1, backend=lambda graph, given: calls.append(graph) or graph.forward)(torch.ones(1))
    assert len(calls) == 1 and not one.is_alive() and not other.is_alive()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_conv_that_was_compiled_runs_as_it_is(when: str) -> None:
    """A compiler would take a stand-in for an edge list for a tensor; what is inside of the conv may be compiled."""
    graphs, model = random_graphs(2, nodes=5, channels=3), Net(GINConv(nn.Linear(3, 4)))
    plan = enfa.make_plan(graphs, Whole(), model)
    expected = model(plan)
    model.conv.compile(backend="eager")
    found = model(enfa.make_plan(graphs, Whole(), model) if when == "before" else plan)
    torch.testing.assert_close(found, expected)
    lifted = enfa.lift(model.conv, pool="sum", marks=None)
    torch.testing.assert_close(lifted(enfa.make_plan(graphs, Whole(), lifted)), expected)


class _Reshaped(Net):
    """Reads shapes in several ways, in its own code and in what it calls."""

    divides = False

    def forward(self, bag: enfa.Bag) -> Any:
        h: Any = bag.propagate(self.conv, bag.x)
        count, width = h.shape
        assert h.size(0) == count and h.shape[0] > 0 and h.size()[-1] == width
        h = h.view(h.shape[0], 2, -1).reshape(count, width) * width
        return bag.pool(bag.pool(h / int(h.shape[0]) if self.divides else h, "sum"), "sum")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("in_place", [False, True])
def test_a_compiled_model_may_read_shapes(in_place: bool) -> None:
    """Of batches of all sizes, and what is computed with the number of rows is refused as ever."""
    torch.compiler.reset()
    model: Any = _Reshaped(GINConv(nn.Linear(3, 4)))
    other, compiled = copy.deepcopy(model), model if in_place else torch.compile(model, backend="eager")
    if in_place:
        model.compile(backend="eager")
    for count in range(2, 6):
        plan = enfa.make_plan(random_graphs(count, nodes=2 + count, channels=3), Whole(), model)
        found, expected = compiled(plan), other(plan)
        torch.testing.assert_close(found, expected)
        found.sum().backward()
        expected.sum().backward()
    torch.testing.assert_close(model.conv.nn.weight.grad, other.conv.nn.weight.grad)
    for each in (model, other):
        each.divides = True
    for each in (compiled, other):
        with pytest.raises(TypeError, match=r"^arithmetic with the number of rows depends on the plan"):
            each(plan)
