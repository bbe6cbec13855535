"""Features that need a gradient: plans that stay connected to the tensors they are made from.

Nodes with equal features share rows, but a node's features have a gradient of their own. So every node is a kind by
itself here, and rows are shared between subgraphs only; likewise every edge, where edge attributes need a gradient.
The plan is made with numbers of nodes and edges in place of their features, and these say which features to put there.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from enfa.graphs import GraphSet
from enfa.graphs.unopened import unopened

__all__ = ["connected", "needing", "numbered", "refuse_gradients"]

NAMES = ("x", "edge_attr")


def needing(graphs: Sequence[Data]) -> list[str]:
    """Which of :data:`NAMES` some graph has with ``requires_grad``; none where PyTorch records no gradients."""
    if unopened(graphs) is not None:
        return []
    return [name for name in NAMES if torch.is_grad_enabled() and any(_needs(data, name) for data in graphs)]


def _needs(data: Data, name: str) -> bool:
    value = getattr(data, name)
    return isinstance(value, Tensor) and value.requires_grad


def refuse_gradients(graphs: Sequence[Data], first: int = 0) -> None:
    """For what is compiled: it outlives the graph of autograd, and shares rows between equal nodes."""
    for name in needing(graphs):
        position = next(i for i, data in enumerate(graphs, first) if _needs(data, name))
        raise ValueError(
            f"graph {position}: Expected '{name}' without a gradient to compile, got requires_grad=True: "
            f"use enfa.make_plan, which passes gradients on, or {name}.detach()"
        )


def numbered(graphs: GraphSet, names: Sequence[str]) -> GraphSet:
    """The same graphs with the number of each node, or edge of the input, in place of the features named."""
    if "x" in names:
        nodes = np.arange(graphs.num_nodes)
        graphs = replace(graphs, node_kind=nodes, x=nodes[:, None])
    if "edge_attr" in names:
        graphs = replace(graphs, edge_kind=graphs.order, edge_attr=np.arange(graphs.num_edges)[:, None])
    return graphs


def connected(given: list[Tensor], number: Tensor) -> Tensor:
    """[rows, columns]: the features of the nodes or edges numbered, through which gradients flow back into ``given``."""
    versions = [value._version for value in given]

    def unchanged(_: Tensor) -> None:
        if [value._version for value in given] != versions:
            raise ValueError("Expected features as they were when the plan was made, got changed ones: make the plan anew")

    # as check_graphs has them: numpy knows no bfloat16, and -0.0 is 0.0
    parts = [(value.float() if value.dtype == torch.bfloat16 else value).cpu() for value in given]
    rows = torch.cat([part[:, None] if part.ndim == 1 else part for part in parts]) + 0.0
    if not len(rows) and len(number):  # no edge anywhere: one row that nothing reads
        rows = rows.new_zeros(1, rows.shape[1])
    found = rows.index_select(0, number[:, 0])
    if found.requires_grad:
        found.register_hook(unchanged)
    return found
