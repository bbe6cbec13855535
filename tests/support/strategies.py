"""Graphs for hypothesis to draw."""

import torch
from hypothesis import strategies as st
from torch_geometric.data import Data

Channels = int | list[int]


def _features(draw: st.DrawFn, count: int, channels: Channels) -> torch.Tensor:
    """Few distinct values, so that rows meet again; -0.0, which must be 0.0; now and then an odd float."""
    if isinstance(channels, list):
        rows = [[draw(st.integers(0, c - 1)) for c in channels] for _ in range(count)]
        return torch.tensor(rows, dtype=torch.long).reshape(count, len(channels))
    value = st.sampled_from([0.0, -0.0, 1.0, -0.5]) | st.floats(-2, 2, width=32)
    rows = [[draw(value) for _ in range(channels)] for _ in range(count)]
    return torch.tensor(rows, dtype=torch.float32).reshape(count, channels)


@st.composite
def graphs(
    draw: st.DrawFn,
    channels: Channels = 2,
    edge_channels: Channels | None = None,
    directed: bool = False,
    max_nodes: int = 6,
) -> Data:
    """Any graph with up to ``max_nodes`` nodes: loops, parallel edges, isolated nodes, several components."""
    n = draw(st.integers(0, max_nodes))
    node = st.integers(0, max(n - 1, 0))
    ends = draw(st.lists(st.tuples(node, node), max_size=8)) if n else []
    edges = ends if directed else ends + [(v, u) for u, v in ends if u != v]
    edges = draw(st.permutations(edges))
    graph = Data(x=_features(draw, n, channels), edge_index=torch.tensor(edges, dtype=torch.long).reshape(-1, 2).T.contiguous())
    if edge_channels is not None:
        graph.edge_attr = _features(draw, len(edges), edge_channels)
    return graph


def graph_lists(channels: Channels = 2, edge_channels: Channels | None = None, **options) -> st.SearchStrategy:
    return st.lists(graphs(channels, edge_channels, **options), min_size=1, max_size=3)
