"""Marks that a model does not read, where nothing else tells the subgraphs of a graph apart."""

from __future__ import annotations

import warnings

from enfa.edits import DELETE, Edits, Policy
from enfa.edits.check import edits_by
from enfa.graphs import GraphSet
from enfa.plan.check import reads_roots
from enfa.plan.step import Program

__all__ = ["warn_of_unread_marks"]


def _only_marks(edits: Edits) -> bool:
    """Whether subgraphs differ from their graph in marks of nodes, and in nothing else."""
    return bool(len(edits.node)) and not (len(edits.edge) or edits.kept.any() or (edits.node_value == DELETE).any())


def warn_of_unread_marks(model: str, program: Program, seen: Edits, graphs: GraphSet, policy: Policy) -> None:
    """Of a model that has read no marks. No error: it may be meant, as a baseline.

    ``seen``: of the graph that the model was traced on, which mostly tell enough: asking for all edits may take long.
    """
    if any(map(reads_roots, program.steps)) or (len(seen.node) and not _only_marks(seen)):
        return
    if _only_marks(edits_by(policy, graphs)):
        warnings.warn(
            f"{policy!r} only marks nodes, and {model} does not read the marks, so it sees the same graph in all subgraphs, "
            f"and is a plain GNN at the cost of a bag: let it read torch.cat([bag.x, bag.mark], 1) "
            f"(marks='concat' of enfa.lift), or use a policy that deletes nodes or edges",
            stacklevel=2,
        )
