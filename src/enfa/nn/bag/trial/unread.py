"""Marks that a model does not read, where nothing else tells the subgraphs of a graph apart."""

from __future__ import annotations

import warnings

from enfa.edits import DELETE, Edits, Policy
from enfa.edits.check import edits_by
from enfa.graphs import GraphSet
from enfa.plan.check import reads_roots
from enfa.plan.step import Program

__all__ = ["warn_of_unread_marks"]


def _more_than_marks(edits: Edits) -> bool:
    """Whether subgraphs differ from their graph in anything beside marks of nodes."""
    return bool(len(edits.edge) or edits.kept.any() or (edits.node_value == DELETE).any())


def warn_of_unread_marks(
    model: str, program: Program, seen: Edits, graphs: GraphSet, policy: Policy, edits: Edits | None
) -> None:
    """Of a model that has read no marks. No error: it may be meant, as a baseline.

    ``seen``: of the graph that the model was traced on, which mostly tell enough; ``edits``: of all graphs, where they are
    known: asking for them may take long.
    """
    if any(map(reads_roots, program.steps)) or _more_than_marks(seen):
        return
    edits = edits_by(policy, graphs) if edits is None else edits
    if len(edits.node) and not _more_than_marks(edits):
        warnings.warn(
            f"{policy!r} only marks nodes, and {model} does not read the marks, so it sees the same graph in all subgraphs, "
            f"and is a plain GNN at the cost of a bag: let it read torch.cat([bag.x, bag.mark], 1) "
            f"(of enfa.lift: marks='concat', with an input that much wider, or marks='argument' and data.mark), or use a "
            f"policy that deletes nodes or edges",
            stacklevel=2,
        )
