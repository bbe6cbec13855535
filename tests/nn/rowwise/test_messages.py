"""Inside of a conv's message passing, which runs on plain tensors, nothing may be taken over messages or drawn."""

from __future__ import annotations

import pytest
import torch
from small_bag import random_bits
from torch import Tensor, nn
from torch_geometric.nn import MLP, EdgeConv, GATConv, GATv2Conv, MessagePassing, PNAConv, TransformerConv

from enfa.edits import NodeMarking
from enfa.nn.bag import make_plan


class _Own(MessagePassing):
    """A conv with a function of messages, and one of rows."""

    def __init__(self, of_message=lambda m: m, of_row=lambda m: m, aggr: str = "sum") -> None:
        super().__init__(aggr=aggr)
        self.of_message, self.of_row = of_message, of_row
        self.weight = nn.Parameter(torch.ones(4, 4))

    def forward(self, x: tuple[Tensor, Tensor], edge_index) -> Tensor:
        return self.propagate(edge_index, x=x)

    def message(self, x_j: Tensor) -> Tensor:
        return self.of_message(x_j)

    def update(self, out: Tensor) -> Tensor:
        return self.of_row(out)


class _Net(nn.Module):
    def __init__(self, conv: nn.Module) -> None:
        super().__init__()
        self.embed, self.conv = nn.Linear(4, 4), conv

    def forward(self, bag) -> Tensor:
        h = self.embed(torch.cat([bag.x, bag.mark], 1))
        return bag.pool(bag.pool(bag.propagate(self.conv, h).relu()))


def _run(conv: nn.Module, kind: str = "distinct", training: bool = True) -> Tensor:
    model = _Net(conv).double().train(training)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        for parameter in model.parameters():
            nn.init.normal_(parameter)
    return model(make_plan(random_bits(5), NodeMarking(), model, kind))


F = torch.nn.functional
MIXING = {
    "batch_norm": lambda m: F.batch_norm(m, None, None, training=True), "dropout": lambda m: F.dropout(m, 0.5),
    "alpha_dropout": lambda m: F.alpha_dropout(m, 0.5, training=True), "mean": lambda m: m - m.mean(0),
    "sum": lambda m: m / m.sum(), "softmax": lambda m: m.softmax(0), "max": lambda m: m / m.max(),
    "std": lambda m: m / torch.std(m, dim=0, keepdim=True), "normalize": lambda m: F.normalize(m, dim=0),
    "norm": lambda m: m / m.norm(), "cumsum": lambda m: m.cumsum(-2), "sort": lambda m: m.sort(0)[0],
    "rand_like": lambda m: m * torch.rand_like(m), "bernoulli": lambda m: m * torch.bernoulli(m.sigmoid()),
    "rrelu": lambda m: F.rrelu(m, training=True), "instance_norm": lambda m: F.instance_norm(m),
    "randn": lambda m: m + torch.randn(4), "uniform_": lambda m: m.clone().uniform_(),
}  # fmt: skip


@pytest.mark.parametrize("where", ["message", "row"])
@pytest.mark.parametrize("name", MIXING)
def test_mixing_is_refused(name: str, where: str) -> None:
    conv = _Own(**{f"of_{where}": MIXING[name]})
    with pytest.raises(TypeError, match=f"Expected _Own to compute each message by itself, got {name} inside"):
        _run(conv)


def test_what_is_of_one_message_is_computed() -> None:
    norm, weight = nn.BatchNorm1d(4).double().eval(), nn.Parameter(torch.eye(4).double())
    norm.running_mean += 0.3
    for training, of_message in (
        (True, lambda m: m.softmax(-1) + m.mean(1, keepdim=True) + F.dropout(m, 0.5, training=False) + F.dropout(m, 0.0)),
        (True, lambda m: m @ weight.softmax(0) + weight.mean(0)), (False, norm),
    ):  # fmt: skip
        conv = _Own(of_message)
        torch.testing.assert_close(_run(conv, training=training), _run(conv, "full", training), rtol=1e-12, atol=1e-12)


def test_a_network_with_a_norm_inside_of_messages() -> None:
    conv = EdgeConv(MLP([8, 4, 4]))
    with pytest.raises(TypeError, match="Expected EdgeConv to compute each message by itself, got batch_norm inside"):
        _run(conv)
    torch.testing.assert_close(_run(conv, training=False), _run(conv, "full", False), rtol=1e-12, atol=1e-12)
    conv = EdgeConv(MLP([8, 4, 4], norm="layer_norm"))
    with pytest.raises((TypeError, ValueError)):  # over a graph
        _run(conv)
    conv = EdgeConv(nn.Sequential(nn.Linear(8, 4), nn.LayerNorm(4), nn.ReLU()))
    torch.testing.assert_close(_run(conv), _run(conv, "full"), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "conv",
    [
        GATConv((4, 4), 4, heads=2, concat=False, add_self_loops=False), GATv2Conv((4, 4), 4, add_self_loops=False),
        TransformerConv((4, 4), 4), _Own(aggr="std"), _Own(aggr="max"),
        _Own(aggr="powermean"), PNAConv(4, 4, ["mean", "max", "std"], ["identity", "amplification"], torch.tensor([1, 3, 2])),
    ],
    ids=lambda conv: type(conv).__name__,
)  # fmt: skip
def test_pygs_own_messages_pass(conv: nn.Module) -> None:
    torch.testing.assert_close(_run(conv), _run(conv, "full"), rtol=1e-11, atol=1e-11)


def test_what_edge_updater_gives_is_of_messages() -> None:
    class Updated(_Own):
        def forward(self, x: tuple[Tensor, Tensor], edge_index) -> Tensor:
            gate = self.edge_updater(edge_index, x=x)
            return self.propagate(edge_index, x=x, gate=gate - self.shift(gate))

        def edge_update(self, x_i: Tensor, x_j: Tensor) -> Tensor:
            return x_i * x_j

        def message(self, x_j: Tensor, gate: Tensor) -> Tensor:
            return x_j * gate

    conv = Updated()
    conv.shift = lambda gate: gate.mean(0)
    with pytest.raises(TypeError, match=r"values on edges outside of messages \(mean\)"):
        _run(conv)
    for shift in (F.dropout, lambda gate: F.batch_norm(gate, None, None, training=True)):
        conv.shift = shift
        with pytest.raises(TypeError, match=r"values on edges outside of messages \((dropout|batch_norm)\)"):
            _run(conv)
    conv.shift = lambda gate: gate.sigmoid() * 0.5
    torch.testing.assert_close(_run(conv), _run(conv, "full"), rtol=1e-12, atol=1e-12)


def test_the_watch_ends_with_the_messages() -> None:
    with pytest.raises(TypeError, match="got mean inside"):
        _run(_Own(lambda m: m - m.mean(0)))
    assert torch.overrides._get_current_function_mode_stack() == []
    assert float(F.dropout(torch.ones(100), 0.5).sum()) != 100.0
