"""Input graphs: checked once, then held as a few flat arrays."""

from enfa.graphs.check import check_graphs
from enfa.graphs.graphset import GraphSet

__all__ = ["GraphSet", "check_graphs"]
