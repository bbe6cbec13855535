"""A file as users write it: models, a conv and a policy of their own, which configs and commands name by --code."""

import random
from threading import Lock
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.nn import GIN, MessagePassing

import enfa
from enfa.nn import DSGNN

__all__ = [
    "Across", "Attends", "Every", "Far", "Gated", "Holding", "Inward", "Leaves", "Locked", "Means", "Mixing", "Net", "Normed",
    "Own", "Plain", "Rooted", "Shuffled", "Single", "Still", "Unseeded", "Unsteady", "Wide", "lifted", "misspelt", "nothing",
    "three",
]  # fmt: skip


class Own(nn.Module):
    """Two arguments of its own, and few of the usual ones."""

    def __init__(
        self, in_channels: Any, hidden_channels: int, out_channels: int, *, num_layers: int = 1, mark_channels: int = 1,
        edge_channels: Any = None, power: int, slope: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.given = {"num_layers": num_layers, "edge_channels": edge_channels, "power": power, "slope": slope}
        self.embed = nn.Embedding(in_channels[0], hidden_channels)
        self.mark, self.head = nn.Linear(mark_channels, hidden_channels), nn.Linear(hidden_channels, out_channels)

    def forward(self, bag: enfa.Bag) -> Tensor:
        h = self.embed(bag.x[:, 0]) + self.mark(bag.mark)
        return self.head(bag.pool(bag.pool(h, "sum"), "mean"))


class Means(DSGNN):
    """Defaults of its own."""

    def __init__(self, *first: Any, readout: str = "mean", residual: bool = True, **options: Any) -> None:
        if "bag" in options:
            raise TypeError("Means takes no bag")
        super().__init__(*first, readout=readout, **options)
        self.adds = residual


class Attends(Own):
    """A conv that the package has none of, by its name."""

    def __init__(self, *first: Any, conv: str = "gat", power: int = 1, **options: Any) -> None:
        super().__init__(*first, power=power, **options)
        self.given["conv"] = conv


class Across(Own):
    def forward(self, bag: enfa.Bag) -> Tensor:
        return self.head(bag.pool(bag.across(self.mark(bag.mark), "sum"), "sum"))


class Plain(nn.Module):
    """All in code: no arguments but what the data say."""

    def __init__(self, in_channels: list[int], out_channels: int, activation: Any = nn.ReLU) -> None:
        super().__init__()
        self.embed = nn.ModuleList(nn.Embedding(count, 8) for count in in_channels)
        self.mark, self.conv, self.head = nn.Linear(1, 8), Gated(8, 8), nn.LazyLinear(out_channels)
        self.act = activation()

    def forward(self, bag: enfa.Bag) -> Tensor:
        h: Any = self.mark(bag.mark)
        for column, embed in enumerate(self.embed):
            h = h + embed(bag.x[:, column])
        return self.head(bag.pool(bag.pool(self.act(bag.propagate(self.conv, h)), "sum"), "mean"))


class Normed(Plain):
    """With norms of PyTorch's, one of which is lazy, on rows and on graphs."""

    def __init__(self, in_channels: list[int], out_channels: int) -> None:
        super().__init__(in_channels, out_channels)
        self.norm, self.last = nn.LazyBatchNorm1d(), nn.BatchNorm1d(8)

    def forward(self, bag: enfa.Bag) -> Tensor:
        h: Any = self.mark(bag.mark)
        for column, embed in enumerate(self.embed):
            h = h + embed(bag.x[:, column])
        h = self.norm(bag.propagate(self.conv, h)).relu()
        return self.head(self.last(bag.pool(bag.pool(h, "sum"), "mean")))


class Wide(Plain):
    """As many outputs as it likes."""

    def __init__(self, in_channels: list[int]) -> None:
        super().__init__(in_channels, 7)


class Net(Plain):
    """Rows, where a tensor is wanted."""

    def forward(self, bag: enfa.Bag) -> Any:
        return self.mark(bag.mark)


class Unsteady(Plain):
    """Draws, in training, of Python and of NumPy."""

    def forward(self, bag: enfa.Bag) -> Tensor:
        found = super().forward(bag)
        return found * (random.random() + np.random.rand()) if self.training else found


class Unseeded(Plain):
    """Draws of a generator that no seed reaches."""

    def forward(self, bag: enfa.Bag) -> Tensor:
        return super().forward(bag) * (1 + np.random.default_rng().random())


class Holding(Plain):
    """Buffers that are masks."""

    def __init__(self, in_channels: list[int], out_channels: int) -> None:
        super().__init__(in_channels, out_channels)
        self.register_buffer("chosen", torch.tensor([True, False]))
        self.register_buffer("causal", torch.full((2, 2), -torch.inf).triu(1))


class Locked(Plain):
    """No module that can be copied."""

    def __init__(self, in_channels: list[int], out_channels: int) -> None:
        super().__init__(in_channels, out_channels)
        self.lock = Lock()


class Rooted(nn.Module):
    """Rows of roots, and a norm that is no setting."""

    def __init__(self, in_channels: int, out_channels: int, mark_channels: int, readout: str = "root") -> None:
        super().__init__()
        self.conv, self.norm = Gated(in_channels + mark_channels, 8), nn.BatchNorm1d(8)
        self.head = nn.Linear(8, out_channels)

    def forward(self, bag: enfa.Bag) -> Tensor:
        h = self.norm(bag.propagate(self.conv, torch.cat([bag.x, bag.mark], 1)))
        return self.head(bag.each(bag.root(h.relu())))


class Gated(MessagePassing):
    def __init__(self, channels_in: int, channels_out: int) -> None:
        super().__init__(aggr="sum")
        self.own, self.other = nn.Linear(channels_in, channels_out), nn.Linear(channels_in, channels_out)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.own(x) + self.propagate(edge_index, x=self.other(x))

    def message(self, x_j: Tensor) -> Tensor:
        return torch.sigmoid(x_j)


class Mixing(Plain):
    """Mixes rows, beside the verbs."""

    def __init__(self, in_channels: list[int], out_channels: int, mixes: bool = True, scale: float = 1.0) -> None:
        super().__init__(in_channels, out_channels)
        self.mixes, self.scale = mixes, nn.Parameter(torch.tensor(scale))

    def forward(self, bag: enfa.Bag) -> Tensor:
        h: Any = self.mark(bag.mark) + self.embed[0](bag.x[:, 0])
        h = h.of(h.value - self.scale * h.value.mean(0) if self.mixes else 2 * h.value)
        return self.head(bag.pool(bag.pool(bag.propagate(self.conv, h), "sum"), "mean"))


class Single(Mixing):
    """In float32, whatever its weights are."""

    def forward(self, bag: enfa.Bag) -> Tensor:
        self.mark(torch.ones(1, 1))
        return super().forward(bag)


class Inward(Mixing):
    """Mixes rows, in gradients only."""

    def forward(self, bag: enfa.Bag) -> Tensor:
        h: Any = self.mark(bag.mark) + self.embed[0](bag.x[:, 0])
        mean = h.value.mean(0)
        h = h.of(h.value + mean - mean.detach())
        return self.head(bag.pool(bag.pool(bag.propagate(self.conv, h), "sum"), "mean"))


class Leaves(enfa.Policy):
    """A subgraph for every ``every``-th node, without it."""

    def __init__(self, every: int = 2) -> None:
        self.every = every

    def bag(self, graph: Any) -> Any:
        for node in range(0, graph.num_nodes, self.every):
            yield enfa.Subgraph().delete_node(node)


class Far(enfa.Policy):
    """The last of so many nodes."""

    def __init__(self, nodes: int) -> None:
        self.nodes = nodes

    def bag(self, graph: Any) -> Any:
        yield enfa.Subgraph().mark_node(self.nodes - 1)


class Shuffled(enfa.Policy):
    """A marked node for each subgraph, in another order whenever it is asked."""

    def bag(self, graph: Any) -> Any:
        for node in random.sample(range(graph.num_nodes), graph.num_nodes):
            yield enfa.Subgraph().mark_node(node).rooted_at(node)


class Every(enfa.Policy):
    """Each subgraph of another policy, twice."""

    def __init__(self, policy: enfa.Policy, more: dict[str, Any] | None = None) -> None:
        self.policy = policy

    def bag(self, graph: Any) -> Any:
        for subgraph in self.policy.bag(graph):
            yield subgraph
            yield subgraph


def lifted(in_channels: int, out_channels: int, hidden_channels: int = 8) -> nn.Module:
    return enfa.lift(GIN(in_channels, hidden_channels, 2, out_channels))


def misspelt(in_channel: int, out_channels: int) -> nn.Module:
    raise AssertionError("called without an argument")


class Still(nn.Module):
    """Without a forward."""


def three(channels_in: int, channels_out: int, heads: int) -> nn.Module:
    raise AssertionError("called without an argument")


def nothing() -> None:
    """Makes no model."""
