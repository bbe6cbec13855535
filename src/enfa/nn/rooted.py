"""Node-level and link-level outputs: which node or link each row of a ``readout="root"`` prediction is about."""

import torch
from torch import Tensor

from enfa.nn.bag.bag import Bag

__all__ = ["link_places", "root_nodes"]


def root_nodes(plan: Bag) -> Tensor:
    """int64 [T], or [T, 2] for an edge-rooted policy: the nodes that output row t is about.

    Nodes are counted through the graphs of the plan, as in a PyG batch; with one graph they are its own. So
    ``data.y[root_nodes(plan)]`` are the labels, and ``mask[root_nodes(plan)]`` selects the rows to train on.
    """
    nodes = plan.root_nodes
    if nodes is None:
        raise ValueError("Expected a plan for a model that reads roots (readout='root'), got one without roots")
    nodes = nodes[nodes[:, 0] >= 0]
    return nodes[:, 0] if nodes.shape[1] == 1 else nodes


def link_places(plan: Bag, links: Tensor) -> Tensor:
    """int64 [k]: the output row of each of some undirected links [2, k], under an edge-rooted policy.

    So ``model(plan)[link_places(plan, links)]`` are the predictions for those links, whichever way round their ends
    are given. Of parallel links the first is taken.
    """
    roots = root_nodes(plan)
    if roots.ndim != 2:
        raise ValueError("Expected an edge-rooted policy such as EdgeMarking, got one with a single root per subgraph")
    if links.ndim != 2 or links.shape[0] != 2:
        raise ValueError(f"Expected links of shape [2, k], got {list(links.shape)}")
    size = int(max(roots.max() if roots.numel() else 0, links.max() if links.numel() else 0)) + 1
    known = roots.min(1).values * size + roots.max(1).values
    wanted = links.min(0).values * size + links.max(0).values
    known, order = torch.sort(known, stable=True)
    place = torch.searchsorted(known, wanted)
    found = known[place.clamp(max=max(len(known) - 1, 0))] == wanted if len(known) else wanted < 0
    if not bool(found.all()):
        a, b = links[:, int(torch.argmin(found.int()))].tolist()
        raise ValueError(f"Expected links that are edges of the plan's graphs, got {a} - {b}, which is none")
    return order[place]
