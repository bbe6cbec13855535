"""The bags of a graph, written out one subgraph at a time with PyG's own tools: nothing of the package is used."""

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import subgraph


def piece(graph: Data, marks: dict[int, float], nodes: Tensor | None = None, edges: Tensor | None = None) -> Data:
    """One subgraph: ``mark`` [n, 1] beside x, only the nodes and edges whose masks are set, ``node`` [n] as numbers
    in ``graph``."""
    n = graph.num_nodes
    mark = torch.zeros(n, 1)
    for v, value in marks.items():
        mark[v] = value
    nodes = torch.ones(n, dtype=torch.bool) if nodes is None else nodes
    edges = torch.ones(graph.edge_index.shape[1], dtype=torch.bool) if edges is None else edges
    attr = None if graph.edge_attr is None else graph.edge_attr[edges]
    index, attr = subgraph(nodes, graph.edge_index[:, edges], attr, relabel_nodes=True, num_nodes=n)
    node = nodes.nonzero()[:, 0]
    return Data(x=graph.x[nodes], mark=mark[nodes], edge_index=index, edge_attr=attr, node=node, nodes_before=n)


def _without(count: int, *places: int) -> Tensor:
    mask = torch.ones(count, dtype=torch.bool)
    for place in places:
        mask[place] = False
    return mask


def undirected(graph: Data) -> list[tuple[int, ...]]:
    """The columns of every undirected edge: both directions, or a loop alone. Parallel edges with equal attributes
    belong together."""
    ends = graph.edge_index.T.tolist()
    attr = [None] * len(ends) if graph.edge_attr is None else graph.edge_attr.tolist()
    open_, found = [], []
    for e, (u, v) in enumerate(ends):
        back = [o for o in open_ if ends[o] == [v, u] and attr[o] == attr[e]]
        if u == v:
            found.append((e,))
        elif back:
            open_.remove(back[0])
            found.append((back[0], e))
        else:
            open_.append(e)
    assert not open_
    return found


def bag(graph: Data, policy: str) -> list[Data]:
    """All subgraphs of one graph under a policy of ``cases.POLICIES``."""
    n, m = graph.num_nodes, graph.edge_index.shape[1]
    src, dst = graph.edge_index
    if policy == "mark":
        found = [piece(graph, {r: 1.0}) for r in range(n)]
    elif policy == "delete":
        found = [piece(graph, {}, _without(n, r)) for r in range(n)]
    elif policy == "isolate":
        found = [piece(graph, {}, edges=(src != r) & (dst != r)) for r in range(n)]
    elif policy == "edge":
        found = [piece(graph, {}, edges=_without(m, *columns)) for columns in undirected(graph)]
    elif policy == "two marks":
        found = [piece(graph, {int(u): 1.0, int(v): -2.0}) for u, v in zip(src, dst)]
    else:
        assert policy == "mixed"
        found = [piece(graph, {})]
        for v in range(n):
            gone = {v, (v + 2) % n} if n > 4 else {v}
            cut = {v % m, (2 * v + 1) % m} if m else set()
            found.append(piece(graph, {(v + 1) % n: 1.0} if n > 2 else {}, _without(n, *gone), _without(m, *cut)))
    return found or [piece(graph, {})]
