"""Checks that users can run on their own models."""

from enfa.testing.graphs import degenerate_graphs, random_graph, random_graphs
from enfa.testing.same import Difference, assert_same_as_full, differences

__all__ = [
    "Difference", "assert_same_as_full", "degenerate_graphs", "differences", "random_graph", "random_graphs",
]  # fmt: skip
