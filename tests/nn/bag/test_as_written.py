"""What plain PyTorch and PyG do with a user's module, and plans of every kind alike might not."""

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GINConv, GraphConv, MessagePassing, SAGEConv, global_add_pool

import enfa
from enfa.edits import GraphView
from enfa.testing import random_graphs


class Whole(enfa.Policy):
    """One subgraph: the graph itself, so that PyG's own model is the reference."""

    def bag(self, graph: GraphView) -> list:
        return []


class Net(nn.Module):
    def __init__(self, conv: nn.Module) -> None:
        super().__init__()
        self.conv = conv

    def forward(self, bag: enfa.Bag) -> torch.Tensor:
        return bag.pool(bag.pool(bag.propagate(self.conv, bag.x), "sum"), "sum")


def _doubled(conv: MessagePassing, which: str) -> None:
    def before(module: nn.Module, given: tuple) -> tuple:
        changed = {**given[-1], "x": tuple(2 * x for x in given[-1]["x"])} if "x" in given[-1] else None
        return (*given[:-1], changed or {k: 2 * v if k == "x_j" else v for k, v in given[-1].items()})

    def after(module: nn.Module, given: tuple, out: torch.Tensor) -> torch.Tensor:
        return 2 * out

    getattr(conv, f"register_{which}")(before if "pre" in which else after)


@pytest.mark.parametrize("make", [lambda: GINConv(nn.Linear(3, 4)), lambda: GraphConv(3, 4), lambda: SAGEConv(3, 4)])
@pytest.mark.parametrize("which", ["message_forward_pre_hook", "aggregate_forward_hook", "propagate_forward_hook", "method"])
def test_hooks_of_a_conv_run(make: Callable[[], MessagePassing], which: str) -> None:
    graphs = random_graphs(2, nodes=5, channels=3)
    conv = make()
    plain = [conv(g.x, g.edge_index).sum(0) for g in graphs]
    if which == "method":
        conv.message = lambda x_j, edge_weight=None: 2 * x_j  # type: ignore[method-assign]
    else:
        _doubled(conv, which)
    expected = torch.stack([conv(g.x, g.edge_index).sum(0) for g in graphs])
    assert not torch.allclose(expected, torch.stack(plain))
    for kind in ("full", "distinct"):
        model = Net(conv)
        found = model(enfa.make_plan(graphs, Whole(), model, kind))
        torch.testing.assert_close(found, expected)


class Kept(nn.Module):
    """A norm behind the last pool, whose rows something keeps."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm = nn.Linear(3, 4), nn.BatchNorm1d(4)

    def forward(self, bag: enfa.Bag) -> torch.Tensor:
        h = self.linear(bag.x)
        out = bag.pool(bag.pool(h, "sum"), "mean")
        self.kept = self.norm(h)
        return out


def test_statistics_are_up_to_date_when_the_model_returns() -> None:
    graphs, model = random_graphs(3, nodes=5, channels=3), Kept()
    plan = enfa.make_plan(graphs, Whole(), model)
    for step in range(1, 4):
        rows = torch.cat([model.linear(g.x) for g in graphs]).detach()
        before = model.norm.running_mean.clone()
        model(plan).sum().backward()
        assert int(model.norm.num_batches_tracked) == step
        torch.testing.assert_close(model.norm.running_mean, 0.9 * before + 0.1 * rows.mean(0))
        with torch.no_grad():
            model.linear.weight += 1


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.calls = GINConv(nn.Linear(4, 4)), 0  # features, and the mark
        self.register_buffer("times", torch.zeros(()))

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, batch: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        self.times += 1
        return self.calls * global_add_pool(self.conv(x, edge_index), batch)


def test_attributes_that_a_lifted_model_sets_are_its_own() -> None:
    graphs: list[Data] = random_graphs(2, nodes=5, channels=3)
    module = Counting()
    lifted = enfa.lift(module)
    plan = enfa.make_plan(graphs, Whole(), lifted)
    assert module.times == 0  # tracing leaves buffers as they were
    module.calls = 0
    first, second = lifted(plan), lifted(plan)
    assert module.calls == 2 and module.times == 2
    torch.testing.assert_close(second, 2 * first)


class Part(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = GINConv(nn.Linear(1, 1))

    def forward(self, bag: enfa.Bag) -> torch.Tensor:
        h = bag.x * 1
        part = h[:, :1]
        part += bag.propagate(self.conv, h[:, 1:2])
        return bag.pool(bag.pool(h, "sum"), "sum")


def test_writing_later_rows_into_a_part_is_refused() -> None:
    with pytest.raises(TypeError, match="a part of other Rows"):
        enfa.make_plan(random_graphs(2, nodes=5, channels=3), enfa.NodeMarking(), Part())
