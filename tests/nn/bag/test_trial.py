"""What a conv does to its messages is tried on some of them alone: in edge_update, in training and in regular graphs, too."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.parametrizations import spectral_norm
from torch_geometric.data import Data
from torch_geometric.nn import MessagePassing
from torch_geometric.utils import softmax

import enfa
from enfa.testing import assert_same_as_full, random_graphs

Act = Callable[[Tensor], Tensor]
MIXING: dict[str, Act] = {
    "softmax": lambda a: a.T.softmax(1).T,
    "length": lambda a: a / len(a),
    "quantile": lambda a: a - torch.quantile(a, 0.5, dim=0),
    "flip": lambda a: a.flip(0),
    "layer norm": lambda a: F.layer_norm(a, a.shape),
    "product": lambda a: a - a.new_ones(1, len(a)) @ a,
    "native": lambda a: torch.native_batch_norm(a, None, None, None, None, True, 0.1, 1e-5)[0],
}


class Net(nn.Module):
    def __init__(self, conv: nn.Module) -> None:
        super().__init__()
        self.embed, self.conv, self.head = nn.Linear(4, 8), conv, nn.Linear(8, 2)

    def forward(self, bag: enfa.Bag) -> Tensor:
        h = bag.propagate(self.conv, self.embed(torch.cat([bag.x, bag.mark], 1)))
        return self.head(bag.pool(bag.pool(h, "sum"), "mean"))


class Conv(MessagePassing):
    """Does something to its messages in training, and to what edge_update gives."""

    def __init__(self, trained: Act = lambda m: m, updated: Act = lambda a: a) -> None:
        super().__init__(aggr="add")
        self.lin, self.trained, self.updated = nn.Linear(8, 1), trained, updated

    def forward(self, x: Any, edge_index: Any) -> Any:
        return self.propagate(edge_index, x=x, alpha=self.edge_updater(edge_index, x=x))

    def edge_update(self, x_i: Tensor, x_j: Tensor) -> Tensor:
        return self.updated(self.lin(x_i * x_j))

    def message(self, x_j: Tensor, alpha: Tensor) -> Tensor:
        return alpha * (self.trained(x_j) if self.training else x_j)


GRAPHS = random_graphs(4, nodes=8, channels=3, seed=2)


@pytest.mark.parametrize("act", MIXING.values(), ids=MIXING)
@pytest.mark.parametrize("where", ["trained", "updated"])
def test_mixing_is_refused_wherever_it_is(act: Act, where: str) -> None:
    when = " in training mode" if where == "trained" else ""
    with pytest.raises(TypeError, match=f"Conv gives a row something else when fewer rows .* order{when}: in message"):
        enfa.make_plan(GRAPHS, enfa.NodeMarking(), Net(Conv(**{where: act})))


@pytest.mark.parametrize("conv", [Conv(torch.relu, torch.sigmoid), Conv(spectral_norm(nn.Linear(8, 8)))])
def test_what_is_right_passes_and_is_as_it_was(conv: Conv) -> None:
    model = Net(conv)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    assert_same_as_full(model, enfa.NodeMarking(), GRAPHS)
    assert model.training and all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def _ring(n: int, x: Tensor) -> Data:
    nodes = torch.arange(n)
    ends = torch.stack([nodes, (nodes + 1) % n])
    return Data(x=x, edge_index=torch.cat([ends, ends.flip(0)], 1))


def test_equal_rows_hide_nothing() -> None:
    class Centred(MessagePassing):
        def forward(self, x: Any, edge_index: Any) -> Any:
            return self.propagate(edge_index, x=x)

        def message(self, x_j: Tensor) -> Tensor:
            return 1 + x_j - (x_j.new_ones(1, len(x_j)) @ x_j) / len(x_j)

    class Unmarked(Net):
        def forward(self, bag: enfa.Bag) -> Tensor:
            return bag.pool(bag.pool(bag.propagate(self.conv, self.embed(bag.x)), "sum"), "mean")

    graphs = [_ring(5, torch.ones(5, 4)), _ring(7, torch.rand(7, 4))]
    with pytest.raises(TypeError, match="Centred gives a row something else"):
        enfa.make_plan(graphs, enfa.NodeDeletion(), Unmarked(Centred()))


def test_a_number_of_rows_is_nothing_for_messages() -> None:
    class Divided(MessagePassing):
        def forward(self, x: Any, edge_index: Any) -> Any:
            return self.propagate(edge_index, x=x, n=x.size(0))

        def message(self, x_j: Tensor, n: int) -> Tensor:
            return x_j / n

    with pytest.raises(TypeError, match="Divided gives its messages n, a number of rows, which depends on the plan"):
        enfa.make_plan(GRAPHS, enfa.NodeMarking(), Net(Divided()))


class Attention(MessagePassing):
    def __init__(self) -> None:
        super().__init__(aggr="add")
        self.lin = nn.Linear(16, 1)

    def forward(self, x: Any, edge_index: Any) -> Any:
        return self.propagate(edge_index, x=x)

    def message(self, x_i: Tensor, x_j: Tensor, index: Tensor, ptr: Any, size_i: Any) -> Tensor:
        self.alpha = softmax(self.lin(torch.cat([x_i, x_j], 1)), index, ptr, size_i)
        return self.alpha * x_j


def test_what_a_conv_keeps_of_its_messages_is_for_looking_at() -> None:
    class Penalised(Net):
        def forward(self, bag: enfa.Bag) -> Tensor:
            return super().forward(bag) + (self.conv.alpha * self.conv.alpha.log()).mean()

    with pytest.raises(TypeError, match="reads what a conv has kept of its messages by itself"):
        enfa.make_plan(GRAPHS, enfa.NodeMarking(), Penalised(Attention()))
    model = Net(Attention())
    assert_same_as_full(model, enfa.NodeMarking(), GRAPHS)
    assert not hasattr(model.conv, "alpha")
    model(enfa.make_plan(GRAPHS, enfa.NodeMarking(), model))
    assert type(model.conv.alpha) is Tensor and model.conv.alpha.sum() > 1


def test_a_graph_without_edges_has_nothing_to_try() -> None:
    graphs = [Data(x=torch.rand(3, 3), edge_index=torch.empty(2, 0, dtype=torch.int64))]
    assert_same_as_full(Net(Conv(torch.relu, torch.sigmoid)), enfa.NodeMarking(), graphs)
