import pytest
import torch

from enfa.graphs import check_graphs
from enfa.testing import degenerate_graphs, random_graph, random_graphs


@pytest.mark.parametrize("channels", [2, [3, 2]])
@pytest.mark.parametrize("edge_channels", [None, 2, [3, 2]])
def test_every_graph_passes_the_checks(channels: int | list[int], edge_channels: int | list[int] | None) -> None:
    graphs = random_graphs(6, 9, channels=channels, edge_channels=edge_channels, loops=True, parallel=True)
    graphs += degenerate_graphs(channels, edge_channels).values()
    checked = check_graphs(graphs)
    assert (checked.partner >= 0).all()
    assert (checked.edge_kind[checked.partner] == checked.edge_kind).all()  # one attribute row for both directions
    for graph in graphs:
        assert graph.x.dtype == (torch.float32 if channels == 2 else torch.long)


def test_the_same_seed_gives_the_same_graph() -> None:
    a, b, c = (random_graph(9, seed=s) for s in (1, 1, 2))
    assert torch.equal(a.x, b.x) and torch.equal(a.edge_index, b.edge_index)
    assert not torch.equal(a.x, c.x)


def test_loops_and_parallel_edges_only_where_asked_for() -> None:
    plain = [random_graph(6, 4.0, seed=s) for s in range(8)]
    for graph in plain:
        assert not graph.has_self_loops()
        assert graph.edge_index.unique(dim=1).shape[1] == graph.num_edges
    wild = [random_graph(6, 4.0, seed=s, loops=True, parallel=True) for s in range(8)]
    assert any(g.has_self_loops() for g in wild)
    assert any(g.edge_index.unique(dim=1).shape[1] < g.num_edges for g in wild)


def test_degenerate_graphs_are() -> None:
    found = degenerate_graphs()
    assert found["no nodes"].num_nodes == 0 and found["one node"].num_nodes == 1
    assert found["no edges"].num_edges == 0 and found["loops"].has_self_loops()
    assert found["isolated nodes"].has_isolated_nodes()
    parallel = found["parallel edges"].edge_index
    assert parallel.unique(dim=1).shape[1] < parallel.shape[1]


def test_sizes_go_from_one_node_on() -> None:
    assert {g.num_nodes for g in random_graphs(60, 4)} == {1, 2, 3, 4}
