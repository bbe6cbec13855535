"""What a conv does to its messages is tried on some of them alone: in edge_update, in training and in regular graphs, too."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.parametrizations import spectral_norm
from torch_geometric.data import Data
from torch_geometric.nn import MessagePassing, PNAConv, SAGEConv
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


def _few_messages() -> dict[str, list[Data]]:
    """Datasets with a graph in which no row gets two messages, and others in which some do."""
    loop = Data(x=torch.rand(1, 3), edge_index=torch.zeros(2, 1, dtype=torch.int64))
    sparse = Data(x=torch.rand(5, 3), edge_index=torch.tensor([[0, 1], [1, 0]]))
    ends = torch.stack([torch.arange(299), torch.arange(1, 300)])
    path = Data(x=torch.rand(300, 3), edge_index=torch.cat([ends, ends.flip(0)], 1))
    small, dense = _ring(4, torch.rand(4, 3)), _ring(9, torch.rand(9, 3))
    return {"a node": [loop, small], "an edge": [sparse, dense], "a smaller ring": [sparse, small], "the end of a path": [path]}


@pytest.mark.parametrize("graphs", _few_messages().values(), ids=_few_messages())
@pytest.mark.parametrize("last", [False, True])
def test_few_messages_hide_nothing(graphs: list[Data], last: bool) -> None:
    """Of one message for each row, or of one row, nobody can see that the last one counts, or that the first is taken away."""

    class Taken(MessagePassing):
        def forward(self, x: Any, edge_index: Any) -> Any:
            return self.propagate(edge_index, x=x)

        def message(self, x_j: Tensor) -> Tensor:
            return x_j if last else x_j - x_j[:1]

        def aggregate(self, inputs: Tensor, index: Tensor, dim_size: int) -> Tensor:
            if not last:
                return super().aggregate(inputs, index, dim_size=dim_size)
            out = inputs.new_zeros(dim_size, inputs.shape[1])
            for row, message in zip(index.tolist(), inputs):
                out[row] = message
            return out

    with pytest.raises(TypeError, match="Taken gives a row something else"):
        enfa.make_plan(graphs, enfa.NodeMarking(), Net(Taken()))


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

    def message(self, x_i: Tensor, x_j: Tensor, index: Tensor, ptr: Tensor, size_i: int) -> Tensor:
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


class Layers(nn.Module):
    """Convs on features as they are."""

    def __init__(self, *convs: nn.Module) -> None:
        super().__init__()
        self.convs = nn.ModuleList(convs)

    def forward(self, bag: enfa.Bag) -> Tensor:
        h = torch.cat([bag.x, bag.mark], 1)
        for conv in self.convs:
            h = bag.propagate(conv, h)
        return bag.pool(bag.pool(h, "sum"), "mean")


class Unmarked(Layers):
    def forward(self, bag: enfa.Bag) -> Tensor:
        return bag.pool(bag.pool(bag.propagate(self.convs[0], bag.x), "sum"), "mean")


def _complete(x: Tensor) -> Data:
    return Data(x=x, edge_index=(1 - torch.eye(len(x))).nonzero().T)


class Linear(MessagePassing):
    """Messages of numbers with all their digits, which float32's, and their squares, do not have in float64."""

    def __init__(self, ins: int, aggr: str) -> None:
        super().__init__(aggr=aggr)
        self.lin = nn.Linear(ins, 8)

    def forward(self, x: Any, edge_index: Any) -> Any:
        return self.propagate(edge_index, x=x)

    def message(self, x_j: Tensor) -> Tensor:
        return self.lin(x_j)


@pytest.mark.parametrize("aggr", ["std", "var"])
@pytest.mark.parametrize(("offset", "scale"), [(1, 0), (1 / 3, 1e-3), (0, 1e-4), (100, 1), (2e5, 0), (1e6, 1), (0, 1e4)])
def test_what_cancels_in_rounding_passes(aggr: str, offset: float, scale: float) -> None:
    for seed in range(4):
        torch.manual_seed(seed)
        graphs = [_complete(offset + scale * torch.randn(8, 3))]
        for conv in (lambda ins: SAGEConv(ins, 8, aggr=aggr), lambda ins: Linear(ins, aggr)):
            model = Layers(conv(4), conv(8), conv(8))
            enfa.make_plan(graphs, enfa.NodeMarking(), model)
            enfa.make_plan(graphs, enfa.NodeMarking(), model.double())


def test_what_cancels_is_as_large_as_weights_and_constants_are() -> None:
    """And not as what is read: numbers of no size, as a layer makes them of equal rows."""

    class Shifted(Linear):
        def message(self, x_j: Tensor) -> Tensor:
            return 1 + x_j

    for seed in range(4):
        torch.manual_seed(seed)
        biased = Linear(3, "var")
        nn.init.uniform_(biased.lin.bias, 100, 200)
        for conv, small in ((biased, 1e-13), (Shifted(3, "var"), 1e-15)):
            enfa.make_plan([_complete(small * torch.randn(8, 3))], enfa.NodeDeletion(), Unmarked(conv))


def test_what_cancels_among_others_passes() -> None:
    degrees, parts = torch.tensor([0, 0, 0, 0, 0, 0, 0, 8]), ["mean", "std", "var"]
    conv = PNAConv(4, 8, parts, ["identity", "amplification"], degrees)
    enfa.make_plan([_complete(100 + torch.randn(8, 3))], enfa.NodeMarking(), Layers(conv))


class Mixed(MessagePassing):
    """A small part of what other messages are, or rows, in each."""

    def __init__(self, part: Act, where: str, aggr: str = "add", through: Act = lambda m: m) -> None:
        super().__init__(aggr=aggr)
        self.lin, self.part, self.where, self.through = nn.Linear(8, 8), part, where, through

    def forward(self, x: Any, edge_index: Any) -> Any:
        return self.propagate(edge_index, x=x)

    def message(self, x_j: Tensor) -> Tensor:
        m = self.through(self.lin(x_j))
        return m + 1e-5 * self.part(m) if self.where == "message" else m

    def update(self, inputs: Tensor) -> Tensor:
        return inputs + 1e-5 * self.part(inputs) if self.where == "update" else inputs


@pytest.mark.parametrize("where", ["message", "update"])
@pytest.mark.parametrize("aggr", ["add", "max", "std"])
def test_a_little_mixing_is_refused_too(where: str, aggr: str) -> None:
    for part in (lambda m: m.flip(0), lambda m: m / len(m)):
        with pytest.raises(TypeError, match="Mixed gives a row something else"):
            enfa.make_plan(GRAPHS, enfa.NodeMarking(), Net(Mixed(part, where, aggr)))


def test_a_jump_is_no_rounding() -> None:
    """Of rows that are divided by how many are equal to them: any change makes all of them different."""

    class Counted(MessagePassing):
        def forward(self, x: Any, edge_index: Any) -> Any:
            return self.propagate(edge_index, x=x)

        def update(self, inputs: Tensor) -> Tensor:
            _, which, count = inputs.unique(dim=0, return_inverse=True, return_counts=True)
            return inputs / count[which, None]

    with pytest.raises(TypeError, match="Counted gives a row something else"):
        enfa.make_plan([_complete(torch.ones(6, 3))], enfa.NodeMarking(), Layers(Counted()))


_LIN = nn.Linear(8, 8)
SINGLE: dict[str, Act] = {
    "from messages on": lambda m: m.float(),
    "weights that no module has": lambda m: _LIN(m),
    "sums": lambda m: torch.zeros(len(m), 8).index_add(0, torch.arange(len(m)), m),
}


@pytest.mark.parametrize("through", SINGLE.values(), ids=SINGLE)
def test_what_runs_in_single_precision_only_is_tried_in_it(through: Act) -> None:
    class Ended(Mixed):
        def update(self, inputs: Tensor) -> Tensor:
            return 1.0 * inputs.to(self.lin.weight.dtype)

    graphs = [_complete(torch.zeros(6, 3))]
    for seed in range(30):
        torch.manual_seed(seed)
        enfa.make_plan(graphs, enfa.NodeMarking(), Net(Ended(torch.zeros_like, "message", through=through)))
    with pytest.raises(TypeError, match="Ended gives a row something else"):
        enfa.make_plan(graphs, enfa.NodeMarking(), Net(Ended(lambda m: 1e4 * m.flip(0), "message", through=through)))


def test_the_trial_leaves_no_trace() -> None:
    class Counts(Attention):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))
            self.seen: list[Tensor] = []

        def message(self, x_i: Tensor, x_j: Tensor, index: Tensor, ptr: Tensor, size_i: int) -> Tensor:
            self.calls += 1
            self.seen.append(x_j)
            return super().message(x_i, x_j, index, ptr, size_i)

    model, random = Net(Counts()), torch.get_rng_state()
    held = {name: (value, value.clone()) for name, value in [*model.named_parameters(), *model.named_buffers()]}
    enfa.make_plan(GRAPHS, enfa.NodeMarking(), model)
    now = dict([*model.named_parameters(), *model.named_buffers()])
    assert all(
        now[name] is value and value.dtype == torch.float32 and torch.equal(value, before)
        for name, (value, before) in held.items()
    )
    assert model.conv.seen == [] and torch.equal(torch.get_rng_state(), random) and torch.get_default_dtype() == torch.float32


STATISTICS: dict[str, Act] = {
    "median": lambda m: m.median(0).values,
    "product": lambda m: m.new_ones(len(m)) @ m,
    "first": lambda m: m[0],
}


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("statistic", STATISTICS.values(), ids=STATISTICS)
def test_statistics_of_messages_that_training_keeps_in_a_buffer(statistic: Act, replaced: bool) -> None:
    """They change nothing in the pass that takes them, but evaluation reads them."""

    class Keeps(MessagePassing):
        def __init__(self) -> None:
            super().__init__("sum")
            self.register_buffer("seen", torch.zeros(8))
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return x + self.propagate(edge_index, x=x)

        def message(self, x_j: Tensor) -> Tensor:
            self.calls += 1  # on every plan as often
            if self.training and not self.fixed:
                with torch.no_grad():
                    now = self.seen.lerp(statistic(x_j), 0.1)
                    self.seen = now if replaced else self.seen.copy_(now)
            return x_j if self.training else x_j - self.seen

    conv = Keeps()
    conv.fixed = False
    with pytest.raises(TypeError, match="Keeps leaves something else in its buffer 'seen' when fewer rows get messages"):
        enfa.make_plan(GRAPHS, enfa.NodeMarking(), Net(conv))
    assert not conv.seen.any() and conv.calls == 0
    conv.fixed = True
    enfa.make_plan(GRAPHS, enfa.NodeMarking(), Net(conv))
