"""Before any training: what a dataset's bags cost, and how much of it is shared."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from torch_geometric.data import Data

from enfa.batch.dataset import CompiledDataset
from enfa.edits import Policy
from enfa.edits.check import edits_by
from enfa.graphs import check_graphs
from enfa.nn.bag import compile
from enfa.report.bags.storage import count_bags, stored_bags
from enfa.report.program import program_for
from enfa.report.studies.storage import distinct_bytes

__all__ = ["inspect_bags"]

_BATCHES = 8


def inspect_bags(graphs: Sequence[Data], policy: Policy, layers: int, batch_size: int = 128) -> dict[str, Any]:
    """Rows, messages and bytes of the bags of all graphs.

    ``rows_within_hops[i-1]`` are the pairs with pivot hop <= i, which is where the paper computes; ``affected[i-1]``
    those that really differ from their row in the unedited graph after layer i; ``distinct[i-1]`` the rows of table i.

    ``speedup`` compares work in training: rows that convs compute in random batches of ``batch_size`` graphs,
    conventional to ego and to distinct, all layers together. Matrix products take time in proportion to rows, so this
    is what a step gains where they dominate. Small steps gain less: every operator takes a few microseconds to start,
    and the layers that follow the pools cost the same for all.
    """
    checked = check_graphs(graphs)
    bags = count_bags(checked, edits_by(policy, checked), layers + 1)
    compiled = compile(graphs, policy, program_for(graphs, policy, layers), progress=False, unshared=None)
    assert compiled.rows is not None
    cost, conventional = compiled.cost(), [bags.rows] * layers
    return {
        "policy": repr(policy),
        "layers": layers,
        "graphs": bags.graphs,
        "nodes": bags.nodes,
        "edges": bags.edges,
        "subgraphs": bags.subgraphs,
        "conventional": conventional,
        "rows_within_hops": bags.rows_within[1 : layers + 1],
        "affected": [rows.affected for rows in compiled.rows[1 : layers + 1]],
        "distinct": cost.rows,
        "messages": {"conventional": layers * bags.sub_edges, "distinct": sum(cost.edges)},
        "bytes": {
            "conventional": sum(stored_bags(bags, "paper").values()),
            "ego": sum(stored_bags(bags, "paper", layers).values()),
            "distinct": sum(distinct_bytes(compiled).values()),
        },
        "sharing": sum(conventional) / max(sum(cost.rows), 1),
        "speedup": {
            "batch_size": min(batch_size, bags.graphs),
            "ego": bags.rows / max(bags.rows_within[layers + 1] + bags.nodes, 1),
            "distinct": _in_batches(compiled, batch_size),
        },
    }


def _in_batches(compiled: CompiledDataset, batch_size: int) -> float:
    """Conventional rows to distinct rows, over some random batches."""
    order = np.random.default_rng(0).permutation(len(compiled))
    size = min(batch_size, len(order))
    pairs = rows = 0
    for first in range(0, min(_BATCHES * size, len(order) - size + 1), size):
        plan = compiled[order[first : first + size]]
        cost = plan.cost()
        pairs, rows = pairs + plan.num_pairs * len(cost.rows), rows + sum(cost.rows)
    return pairs / max(rows, 1)
