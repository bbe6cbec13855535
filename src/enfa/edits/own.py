"""What is told of a policy of one's own, whose ``bag`` is any code: that it draws, or that it finds nothing to edit."""

from __future__ import annotations

import warnings
from copy import deepcopy
from dataclasses import replace
from itertools import islice, pairwise
from typing import Any

import numpy as np

from enfa.edits.edits import Edits
from enfa.edits.policies.chosen import Chosen
from enfa.edits.policy import Policy, views
from enfa.graphs import GraphSet

__all__ = ["warn_of_own"]

FEW, NODES = 3, 50  # graphs that are asked for twice, and how large they are at most: no time beside all others


def warn_of_own(policy: Policy, graphs: GraphSet, edits: Edits) -> None:
    """No errors: a run of ``enfa train`` draws by its seed, and other graphs may have what a policy looks for. ``edits``: what
    the policy has made of the graphs."""
    inner = policy
    while isinstance(inner, Chosen):
        inner = inner.policy
    if type(inner).edits is not Policy.edits or not graphs.num_graphs:
        return
    edited = edits.root is not None or len(edits.node) or len(edits.edge) or edits.kept.any()
    try:
        silent = not _draws(inner, graphs) if edited else _means_it(inner, graphs)
    except Exception:  # of whatever kind: it is the user's code that runs, which may not be copied, or hand out subgraphs once
        return
    if silent:
        return
    if not edited:
        warnings.warn(
            f"{policy!r} edits none of the {graphs.num_graphs} graphs, so every subgraph is its graph as it is, and the model "
            f"a plain GNN: bag should yield enfa.Subgraph() objects with edits",
            stacklevel=2,
        )
    else:
        warnings.warn(
            f"{inner!r} gives other subgraphs of the same graph when it is asked again, so plans, compiled datasets and "
            f"predictions of the same graphs differ: draw from np.random.default_rng([seed, graph.position])",
            stacklevel=2,
        )


def _means_it(policy: Policy, graphs: GraphSet) -> bool:
    """Whether it yields subgraphs that it has not edited, as a baseline does: a bag without any is the graph as it is, too."""
    from enfa.draws import drawn

    with drawn(0):
        asked = deepcopy(policy)
        return any(True for view, _ in islice(views(graphs), FEW) for _ in asked.bag(view))


def _draws(policy: Policy, graphs: GraphSet) -> bool:
    """Whether it makes other subgraphs of the same graph. Generators stay as they were, also those that it holds: a copy is
    asked. Where a seed is drawn by, a second copy from the start, as the next run does."""
    from enfa.draws import by_seed, drawn  # and PyTorch

    nodes = np.diff(graphs.node_ptr)
    small = np.flatnonzero(nodes <= NODES)
    places = small[np.argsort(nodes[small], kind="stable")[-FEW:]]
    some = [replace(graphs.subset([k]), first=graphs.first + int(k)) for k in places]  # by which a policy may know them
    asked = deepcopy(policy)
    again = deepcopy(policy) if by_seed() else asked
    with drawn(0):
        found = [_bag(asked.edits(one)) for one in some]
    with drawn(0 if by_seed() else 1):
        return found != [_bag(again.edits(one)) for one in some]


def _bag(edits: Edits) -> list[Any]:
    """The subgraphs of a bag, and the edits of each, in an order of their own: none of it makes another bag."""

    def sets(ptr: np.ndarray, what: np.ndarray, value: np.ndarray) -> list[list[list[int]]]:
        return [sorted(np.stack([what[a:b], value[a:b]], 1).tolist()) for a, b in pairwise(ptr)]

    nodes, edges = sets(edits.node_ptr, edits.node, edits.node_value), sets(edits.edge_ptr, edits.edge, edits.edge_value)
    roots = [[]] * edits.num_subgraphs if edits.root is None else edits.root.tolist()
    return [edits.marks.tolist(), edits.edge_marks.tolist(), sorted(zip(nodes, edges, edits.kept.tolist(), roots))]
