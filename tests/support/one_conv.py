"""A bag that is the graph itself, and a model of one conv."""

from torch import Tensor, nn

import enfa
from enfa.edits import GraphView


class Whole(enfa.Policy):
    """One subgraph: the graph itself, so that PyG's own model is the reference."""

    def bag(self, graph: GraphView) -> list:
        return []


class Net(nn.Module):
    def __init__(self, conv: nn.Module) -> None:
        super().__init__()
        self.conv = conv

    def forward(self, bag: enfa.Bag) -> Tensor:
        return bag.pool(bag.pool(bag.propagate(self.conv, bag.x), "sum"), "sum")
