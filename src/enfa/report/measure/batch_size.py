"""The paper's method: ENFA takes the largest batch whose data is no larger than the baseline's."""

from collections.abc import Callable

import numpy as np

from enfa.batch.dataset import CompiledDataset
from enfa.report.bags.storage import count_bags

__all__ = ["data_bytes", "largest_within"]


def data_bytes(compiled: CompiledDataset, batch: np.ndarray, attributes: int) -> int:
    """Bytes that a batch's data takes.

    Conventional and ego in the paper's layout: two int64 ends and ``attributes`` int64 columns for each edge of each
    subgraph (for ego: of the (L+1)-hop ego nets and the original graph) and, for ego, an int64 pivot hop per (subgraph, node).
    Distinct: all arrays of its plan, since these are what a batch consists of.
    """
    if compiled.graphs is None:
        return compiled[batch].cost().bytes
    graphs, edits = compiled.graphs
    hops = 1 + sum(step.op == "propagate" and step.kind == "pairs" for step in compiled.program.steps)
    bags = count_bags(graphs.subset(batch), edits.subset(graphs, batch), hops)
    edges, pivots = bags.sub_edges, 0
    if compiled.kind == "ego":
        edges, pivots = bags.edges_within[hops] + bags.edges, 8 * bags.rows
    return (16 + 8 * attributes) * edges + pivots


def largest_within(size: Callable[[np.ndarray], int], first: int, most: int, allowed: int) -> int:
    """The largest batch 0…b-1 with ``size(batch) <= allowed``, at least ``first``; sizes must grow with b."""
    low = high = first
    while high < most and size(np.arange(high)) <= allowed:
        low, high = high, min(2 * high, most)
    if size(np.arange(high)) <= allowed:
        return high
    while high - low > max(1, low // 16):  # to six in a hundred: the time per graph hardly changes
        middle = (low + high) // 2
        low, high = (middle, high) if size(np.arange(middle)) <= allowed else (low, middle)
    return low
