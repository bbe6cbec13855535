"""What graphs have as a whole."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from enfa.graphs.attributes import GraphAttributes, graph_attributes
from enfa.testing import random_graph


def _graphs() -> list[Data]:
    return [random_graph(nodes, seed=nodes, channels=2, edge_channels=1) for nodes in (3, 5, 1)]


def test_numbers_and_tensors_of_one_shape() -> None:
    graphs = _graphs()
    for i, data in enumerate(graphs):
        data.count, data.flag, data.scale, data.place = i, i > 1, i + 0.5, np.int64(i)
        data.one, data.row, data.flat = torch.tensor(i), torch.full((1, 4), i), torch.full((4,), i)
        data.block = torch.ones(2, 3)
        data.half = torch.tensor([i], dtype=torch.bfloat16)
    found = graph_attributes(graphs)
    assert list(found) == ["block", "count", "flag", "flat", "half", "one", "place", "row", "scale"]
    assert found["count"].tolist() == found["one"].tolist() == found["half"].tolist() == found["place"].tolist() == [0, 1, 2]
    assert found["flag"].tolist() == [False, False, True] and found["scale"].tolist() == [0.5, 1.5, 2.5]
    assert found["row"].tolist() == found["flat"].tolist() == [[0] * 4, [1] * 4, [2] * 4]
    assert found["block"].shape == (3, 2, 3) and found["half"].dtype == torch.float32


def test_what_is_left_alone() -> None:
    graphs = _graphs()
    for data in graphs:
        data.y, data.num_nodes, data.name, data.huge = torch.ones(1), data.x.shape[0], "g", 10**30
        data.pos, data.weight = torch.ones(data.num_nodes, 3), torch.ones(data.edge_index.shape[1])
        data.complex, data.sparse = torch.ones(1, dtype=torch.complex64), torch.eye(2).to_sparse()
        data.tiny, data.none = torch.ones(1).to(torch.float8_e4m3fn), torch.ones(1, device="meta")
    graphs[0].some = 1
    graphs[1].later = 1
    for i, data in enumerate(graphs):
        data.several = torch.ones(1, 2 + i)
    assert graph_attributes(graphs) == {}


def test_what_has_a_number_for_each_node_or_edge_of_all_graphs() -> None:
    """One graph of that length does not make it so; and a leading axis of one is that of the graphs."""
    graphs = _graphs()
    for data in graphs:
        data.three = torch.ones(3)
    assert graph_attributes(graphs)["three"].shape == (3, 3)
    assert graph_attributes(graphs[:1]) == {}
    assert graph_attributes(graphs[:1], ["three"])["three"].shape == (1, 3)
    graphs[2].row = torch.ones(1, 2)
    assert graph_attributes(graphs[2:])["row"].shape == (1, 2)


def test_one_that_is_not_there_is_named() -> None:
    with pytest.raises(KeyError, match=r"^Expected an attribute of whole graphs, got 'dipole'; there are charge: it is"):
        GraphAttributes(charge=torch.ones(3))["dipole"]
    assert GraphAttributes().get("dipole") is None
