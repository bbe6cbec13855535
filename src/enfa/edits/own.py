"""What is told of a policy of one's own, whose ``bag`` is any code: that it draws, or that it finds nothing to edit."""

from __future__ import annotations

import warnings
from dataclasses import fields, replace
from itertools import islice

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
    if edits.root is None and not (len(edits.node) or len(edits.edge) or edits.kept.any()):
        if _means_it(inner, graphs):
            return
        warnings.warn(
            f"{policy!r} edits none of the {graphs.num_graphs} graphs, so every subgraph is its graph as it is, and the model "
            f"a plain GNN: bag should yield enfa.Subgraph() objects with edits",
            stacklevel=2,
        )
    elif _draws(inner, graphs):
        warnings.warn(
            f"{inner!r} gives other subgraphs of the same graph when it is asked again, so plans, compiled datasets and "
            f"predictions of the same graphs differ: draw from np.random.default_rng([seed, graph.position])",
            stacklevel=2,
        )


def _means_it(policy: Policy, graphs: GraphSet) -> bool:
    """Whether it yields subgraphs that it has not edited, as a baseline does: a bag without any is the graph as it is, too."""
    from enfa.draws import drawn

    with drawn(0):
        return any(True for view, _ in islice(views(graphs), FEW) for _ in policy.bag(view))


def _draws(policy: Policy, graphs: GraphSet) -> bool:
    """Whether it makes other edits of the same graph; generators stay as they were."""
    from enfa.draws import drawn  # and PyTorch

    nodes = np.diff(graphs.node_ptr)
    small = np.flatnonzero(nodes <= NODES)
    with drawn(0):
        for place in small[np.argsort(nodes[small], kind="stable")[-FEW:]]:
            one = replace(graphs.subset([place]), first=graphs.first + int(place))  # by which a policy may know it
            found, again = policy.edits(one), policy.edits(one)
            if not all(np.array_equal(getattr(found, f.name), getattr(again, f.name)) for f in fields(Edits)):
                return True
    return False
