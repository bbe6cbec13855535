"""Models that do not read the marks of a policy that does nothing but mark."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
from bag_models import Net
from torch import nn
from torch_geometric.nn import GIN, GINConv, global_add_pool

import enfa
from enfa.testing import random_graphs

GRAPHS = random_graphs(4, 6, seed=1, channels=3)


class _NoMark(nn.Module):
    """Reads no marks; ``root``: but the root of each subgraph."""

    def __init__(self, root: bool = False) -> None:
        super().__init__()
        self.conv, self.root = GINConv(nn.Linear(3, 4)), root

    def forward(self, bag: Any) -> Any:
        h = bag.propagate(self.conv, bag.x)
        return bag.pool(bag.root(h) if self.root else bag.pool(bag.spread(bag.across(h))), "mean")


class _Sometimes(enfa.Policy):
    """Marks every node of small graphs, and deletes every node of others."""

    def __init__(self, deletes_from: int) -> None:
        self.deletes_from = deletes_from

    def bag(self, graph: enfa.edits.GraphView) -> list[enfa.Subgraph]:
        edit = enfa.Subgraph.mark_node if graph.num_nodes < self.deletes_from else enfa.Subgraph.delete_node
        return [edit(enfa.Subgraph(), v) for v in range(graph.num_nodes)]


@pytest.mark.parametrize("make", [enfa.make_plan, enfa.compile, lambda g, p, m: enfa.trace(m, g, p)])
@pytest.mark.parametrize("model", [_NoMark(), enfa.lift(GIN(3, 4, 2), marks=None, pool="sum")])
@pytest.mark.parametrize("policy", [enfa.NodeMarking(), enfa.NodeMarking(distances=2), enfa.PairMarking(hide=False)])
def test_a_bag_of_equal_subgraphs_is_told(make: Callable, model: nn.Module, policy: enfa.Policy) -> None:
    message = rf"NodeMarking\(.*\) only marks nodes, and {type(model).__name__} does not read the marks.*bag.mark.*wider"
    with pytest.warns(UserWarning, match=message.replace("NodeMarking", type(policy).__name__)):
        make(GRAPHS, policy, model)


def test_of_a_policy_all_edits_count() -> None:
    mixed = [*random_graphs(2, 5, seed=1, channels=3), *random_graphs(2, 9, seed=2, channels=3)]
    with pytest.warns(UserWarning, match="only marks nodes"):
        enfa.make_plan(mixed, _Sometimes(20), _NoMark())
    _silent(mixed, _Sometimes(7), _NoMark())


def _silent(graphs: list, policy: enfa.Policy, model: nn.Module) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        enfa.make_plan(graphs, policy, model)


@pytest.mark.parametrize(
    ("policy", "model"),
    [
        (enfa.NodeMarking(), _NoMark(root=True)),  # as without marks: which node is the root tells subgraphs apart
        (enfa.EgoNets(2), _NoMark()),
        (enfa.EgoNets(2, mark=True), _NoMark()),
        (enfa.NodeDeletion(), _NoMark()),
        (enfa.EdgeDeletion(), _NoMark()),
        (enfa.NodeMarking(), Net()),
        (enfa.NodeMarking(), enfa.SUN(3, 4, 2, 2)),
        (enfa.NodeMarking(), enfa.lift(GIN(4, 4, 2), pool="sum")),
    ],
)
def test_what_tells_subgraphs_apart_is_not(policy: enfa.Policy, model: nn.Module) -> None:
    _silent(GRAPHS, policy, model)


class _OfData(nn.Module):
    """Takes marks as ``data.mark``, and reads them or not."""

    def __init__(self, reads: bool) -> None:
        super().__init__()
        self.conv, self.reads = GINConv(nn.Linear(3, 4)), reads

    def forward(self, data: Any) -> Any:
        if self.reads:
            data.mark = data.mark * 2
        return global_add_pool(self.conv(data.x + data.mark if self.reads else data.x, data.edge_index), data.batch)


def test_marks_of_data_count_where_they_are_read() -> None:
    _silent(GRAPHS, enfa.NodeMarking(), enfa.lift(_OfData(True), marks="argument"))
    with pytest.warns(UserWarning, match="only marks nodes"):
        enfa.make_plan(GRAPHS, enfa.NodeMarking(), enfa.lift(_OfData(False), marks="argument"))


@pytest.mark.parametrize("make", [enfa.make_plan, enfa.compile, lambda g, p, m: enfa.trace(m, g, p)])
@pytest.mark.parametrize("policy", [enfa.NodeMarking, enfa.EdgeDeletion])
@pytest.mark.filterwarnings("ignore:.* only marks nodes")
def test_a_policy_is_not_asked_twice_for_all_graphs(
    make: Callable, policy: type[enfa.Policy], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, edits = [], policy.edits
    monkeypatch.setattr(policy, "edits", lambda own, graphs: asked.append(graphs.num_graphs) or edits(own, graphs))
    make(GRAPHS, policy(), _NoMark())
    alone = make not in (enfa.make_plan, enfa.compile)
    assert asked.count(len(GRAPHS)) == (0 if alone and policy is enfa.EdgeDeletion else 1)
