"""Checks that users can run on their own models."""

from enfa.testing.graphs import degenerate_graphs, random_graph, random_graphs
from enfa.testing.large import large_graph
from enfa.testing.same import Difference, assert_same_as_full, differences

__all__ = [
    "Difference", "assert_same_as_full", "degenerate_graphs", "differences", "large_graph", "random_graph",
    "random_graphs",
]  # fmt: skip
