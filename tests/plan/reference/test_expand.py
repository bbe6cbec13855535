import numpy as np
import torch
from torch_geometric.data import Data

import enfa
from enfa.graphs import check_graphs
from enfa.plan.reference.expand import expand, largest_value


def test_pairs_that_exist_and_places_of_those_that_do_not() -> None:
    """The path a - b - c under node deletion: six pairs, two edges (in the subgraphs of a and of c)."""
    path = Data(x=torch.zeros(3, 1), edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
    graphs = check_graphs([path])
    found = expand(graphs, enfa.NodeDeletion().edits(graphs), False)
    assert found.num_rows == 6
    assert found.sub.tolist() == [0, 0, 1, 1, 2, 2] and found.node.tolist() == [1, 2, 0, 2, 0, 1]
    assert found.sub_ptr.tolist() == [0, 2, 4, 6]
    assert found.place.tolist() == [-1, 0, 1, 2, -1, 3, 4, 5, -1] and found.pair_ptr.tolist() == [0, 3, 6, 9]
    assert sorted(zip(found.src.tolist(), found.dst.tolist())) == [(0, 1), (1, 0), (4, 5), (5, 4)]
    assert (np.diff(found.dst) >= 0).all()


def test_largest_value() -> None:
    edges = torch.tensor([[0, 1], [1, 0]])
    graph = Data(x=torch.tensor([[3, 0], [1, 5]]), edge_index=edges, edge_attr=torch.tensor([[2], [7]]))
    found = check_graphs([graph])
    assert (largest_value(found.x), largest_value(found.edge_attr)) == ((3, 5), (7,))
    graph.x, graph.edge_attr = torch.zeros(2, 2), None
    found = check_graphs([graph])
    assert (largest_value(found.x), largest_value(found.edge_attr)) == ((), ())
