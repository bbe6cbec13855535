"""Small graphs of every shape, all policies, and how to compare plans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

import enfa
from enfa.testing import degenerate_graphs, random_graphs

torch.set_num_threads(1)

CARDINALITIES = {"channels": [3, 2], "edge_channels": [3, 2]}


@pytest.fixture(scope="session")
def graphs() -> list[Data]:
    """Random and degenerate ones; labels count up."""
    found = random_graphs(14, 8, **CARDINALITIES)
    found += degenerate_graphs([3, 2], [3, 2]).values()
    for i, graph in enumerate(found):
        graph.y = torch.tensor([i])
    return found


@pytest.fixture(scope="session")
def new_graphs() -> list[Data]:
    """With values of x and edge_attr that ``graphs`` do not have."""
    return random_graphs(6, 8, channels=[5, 3], edge_channels=[4, 3], seed=5)


@pytest.fixture(
    params=[enfa.NodeMarking(), enfa.NodeDeletion(), enfa.NodeDeletion(isolate=True), enfa.EdgeDeletion()], ids=repr
)
def policy(request: pytest.FixtureRequest) -> enfa.Policy:
    return request.param


@pytest.fixture(params=["gine", "gcn, dropout", "dss", "identity, dropout", "mpnn"])
def model(request: pytest.FixtureRequest) -> nn.Module:
    """In float64; with dropout rows are shared within a graph only."""
    torch.manual_seed(0)
    context, _, dropout = request.param.partition(", ")
    options: dict[str, Any] = {"dropout": 0.5 if dropout else 0.0}
    if context != "gcn":
        options["edge_channels"] = [4, 3]
    if context in ("gine", "gcn"):
        return enfa.DSGNN([5, 3], 6, 2, 3, context, **options).double()
    return enfa.DSSGNN([5, 3], 6, 2, 3, "gine", context, **options).double()


def _logits(model: nn.Module, plan: enfa.Bag, train: bool) -> Tensor:
    """The buffers stay as they are (copying a model takes longer than running it); dropout draws the same every time."""
    torch.default_generator.manual_seed(1)
    before = [buffer.clone() for buffer in model.buffers()]
    with torch.no_grad():
        found = model.train(train)(plan)
        for buffer, value in zip(model.buffers(), before):
            buffer.copy_(value)
    return found


@pytest.fixture(scope="session")
def assert_exact() -> Callable[[nn.Module, enfa.Bag, Sequence[Data], enfa.Policy], None]:
    """A plan gives the logits that the full plan of the same graphs gives, in training and in evaluation."""

    def check(model: nn.Module, plan: enfa.Bag, graphs: Sequence[Data], policy: enfa.Policy) -> None:
        unlabelled = [graph.clone().update({"y": None}) for graph in graphs]  # some may have labels, and some none
        reference = enfa.make_plan(unlabelled, policy, model, "full")
        reference.graph_ids = plan.graph_ids  # dropout's masks depend on the place of a graph in its dataset
        assert plan.num_graphs == len(graphs)
        for train in (True, False):
            expected = _logits(model, reference, train)
            found = _logits(model, plan, train)
            torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)

    return check


def _arrays(value: Any, name: str) -> dict[str, Tensor]:
    if isinstance(value, Tensor):
        return {name: value}
    if isinstance(value, list):
        value = dict(enumerate(value))
    elif is_dataclass(value):
        value = {f.name: getattr(value, f.name) for f in fields(value) if f.name != "cache"}
    else:
        return {}
    return {k: v for key, part in value.items() for k, v in _arrays(part, f"{name}.{key}").items()}


@pytest.fixture(scope="session")
def assert_identical() -> Callable[[enfa.Bag, enfa.Bag], None]:
    """Every array of one plan is that of the other, bit for bit."""

    def check(one: enfa.Bag, other: enfa.Bag) -> None:
        first, second = _arrays(one, "plan"), _arrays(other, "plan")
        assert first.keys() == second.keys() and len(first) > 10
        for name, value in first.items():
            assert value.dtype == second[name].dtype and torch.equal(value, second[name]), name

    return check
