"""A file of pairs of graphs, as BREC has them."""

from pathlib import Path

import numpy as np
import pytest
from known_graphs import ring, triangles_and_hexagon


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """Two triangles and a hexagon, which marks tell apart, and a heptagon and itself."""
    graphs, path = [*triangles_and_hexagon(), ring(7), ring(7)], tmp_path / "some.npz"
    edges = [graph.edge_index.T.numpy() for graph in graphs]
    np.savez(path, num_nodes=[6, 6, 7, 7], num_edges=[len(e) for e in edges], edges=np.concatenate(edges))
    return path
