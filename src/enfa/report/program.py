"""The steps of a plain DS-GNN, for whatever is counted or drawn without a model."""

from collections.abc import Sequence

from torch_geometric.data import Data

from enfa.edits import Policy
from enfa.plan.step import Program, Step

__all__ = ["ds_program", "program_for"]


def ds_program(layers: int, edges: bool = False, degrees: bool = False) -> Program:
    """What tracing a DSGNN gives. ``edges``: its conv reads edges, ``degrees``: degrees, as GCN does."""
    start, convs = Step("start", "pairs", degrees=degrees), range(layers)
    pools = Step("pool", "subgraphs", (layers,)), Step("pool", "graphs", (layers + 1,))
    return Program((start, *(Step("propagate", "pairs", (i,), edges) for i in convs), *pools))


def program_for(graphs: Sequence[Data], policy: Policy, layers: int) -> Program:
    """Of a DS-GNN that reads edge attributes where there are any, or where the policy marks edges."""
    return ds_program(layers, edges=graphs[0].edge_attr is not None or policy.edge_mark_channels > 0)
