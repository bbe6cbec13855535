"""Random and degenerate graphs."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.data import Data

__all__ = ["degenerate_graphs", "random_graph", "random_graphs"]


def _features(count: int, channels: int | Sequence[int], generator: torch.Generator) -> Tensor:
    """A few distinct rows, so that rows have something to share."""
    if isinstance(channels, int):
        return torch.randint(0, 3, (count, channels), generator=generator).float()
    columns = [torch.randint(0, c, (count,), generator=generator) for c in channels]
    return torch.stack(columns, 1)


def _finish(
    nodes: int,
    pairs: Tensor,
    channels: int | Sequence[int],
    edge_channels: int | Sequence[int] | None,
    generator: torch.Generator,
) -> Data:
    """Both directions of every pair, a loop once, each direction with the same attributes."""
    loop = pairs[0] == pairs[1]
    both = torch.cat([pairs, pairs[:, ~loop].flip(0)], 1)
    graph = Data(x=_features(nodes, channels, generator), edge_index=both)
    if edge_channels is not None:
        attr = _features(pairs.shape[1], edge_channels, generator)
        graph.edge_attr = torch.cat([attr, attr[~loop]])
    return graph


def random_graph(
    nodes: int,
    degree: float = 2.2,
    *,
    channels: int | Sequence[int] = 3,
    edge_channels: int | Sequence[int] | None = None,
    loops: bool = False,
    parallel: bool = False,
    seed: int = 0,
) -> Data:
    """An undirected random graph with about ``degree`` neighbours per node; may fall into several components."""
    generator = torch.Generator().manual_seed(seed)
    count = int(nodes * degree / 2) if nodes > 1 else 0
    pairs = torch.randint(0, max(nodes, 1), (2, count), generator=generator)
    if not loops:
        pairs = pairs[:, pairs[0] != pairs[1]]
    if not parallel and pairs.shape[1]:
        low, high = pairs.min(0).values, pairs.max(0).values
        pairs = torch.unique(torch.stack([low, high]), dim=1)
    return _finish(nodes, pairs, channels, edge_channels, generator)


def random_graphs(
    count: int, nodes: int = 8, *, seed: int = 0, channels: int | Sequence[int] = 3, **options: object
) -> list[Data]:
    """Several random graphs of 1 to ``nodes`` nodes."""
    sizes = torch.randint(1, nodes + 1, (count,), generator=torch.Generator().manual_seed(seed)).tolist()
    return [
        random_graph(n, channels=channels, seed=1000 * seed + i, **options)  # type: ignore[arg-type]
        for i, n in enumerate(sizes)
    ]


def degenerate_graphs(
    channels: int | Sequence[int] = 3, edge_channels: int | Sequence[int] | None = None, seed: int = 0
) -> dict[str, Data]:
    """By name: the graphs that break index arithmetic."""
    generator = torch.Generator().manual_seed(seed)
    shapes: dict[str, tuple[int, list[tuple[int, int]]]] = {
        "no nodes": (0, []),
        "one node": (1, []),
        "one node with a loop": (1, [(0, 0)]),
        "no edges": (3, []),
        "loops": (3, [(0, 0), (0, 1), (1, 2), (2, 2)]),
        "isolated nodes": (5, [(1, 3)]),
        "two components": (6, [(0, 1), (1, 2), (3, 4), (4, 5), (3, 5)]),
        "parallel edges": (3, [(0, 1), (0, 1), (1, 2)]),
        "star": (7, [(0, i) for i in range(1, 7)]),
    }
    return {
        name: _finish(n, torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).T, channels, edge_channels, generator)
        for name, (n, pairs) in shapes.items()
    }
