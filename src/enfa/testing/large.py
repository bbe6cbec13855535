"""Large graphs with bounded degree."""

import torch
from torch_geometric.data import Data

__all__ = ["large_graph"]


def large_graph(
    nodes: int,
    degree: int = 10,
    *,
    kinds: int = 4,
    channels: int | None = None,
    window: int = 1000,
    hub: int = 0,
    seed: int = 0,
) -> Data:
    """An undirected graph in which every node has ``degree`` edges (parallel ones and loops are dropped), all to
    nodes within ``window`` places, and one of ``kinds`` categorical features; or ``channels`` continuous ones, which are
    different at every node.

    Edges are the cycles of ``degree / 2`` random permutations within windows, so the degree is bounded by
    construction. ``hub`` joins node 0 to so many others beside.
    """
    if degree % 2 or degree < 2:
        raise ValueError(f"Expected an even degree >= 2, got {degree}")
    generator = torch.Generator().manual_seed(seed)
    place = torch.arange(nodes)
    pairs = []
    for _ in range(degree // 2):
        # an order in which nodes move by less than a window; neighbours in it are joined
        order = torch.argsort(place + torch.rand(nodes, generator=generator) * window)
        pairs.append(torch.stack([order, order.roll(1)]))
    if hub:
        far = 1 + torch.randperm(nodes - 1, generator=generator)[:hub]
        pairs.append(torch.stack([torch.zeros_like(far), far]))
    both = torch.cat(pairs, 1)
    low, high = both.min(0).values, both.max(0).values
    code = torch.unique(low[low < high] * nodes + high[low < high])
    both = torch.stack([code // nodes, code % nodes])
    if channels is None:
        x = torch.randint(0, kinds, (nodes, 1), generator=generator)
    else:
        x = torch.randn(nodes, channels, generator=generator)
    return Data(x=x, edge_index=torch.cat([both, both.flip(0)], 1))
