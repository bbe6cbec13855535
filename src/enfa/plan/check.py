"""Whether the steps of a model find what they read in the graphs and in what a policy says of them."""

from enfa.edits import Edits
from enfa.graphs import GraphSet
from enfa.graphs.names import unknown
from enfa.plan.step import Program, Step

__all__ = ["KINDS", "check_kind", "check_program", "check_step", "reads_roots"]

KINDS = ("full", "ego", "distinct")


def check_kind(kind: str) -> str:
    if kind not in KINDS:
        raise unknown("the kind of plan", kind, KINDS)
    return kind


def reads_roots(step: Step) -> str:
    """The verb, where a step reads which node each subgraph is about."""
    if (step.op, step.kind) == ("pool", "nodes"):
        return "bag.pool(h, to='nodes')"
    return "along='subgraphs'" if step.along == "subgraphs" else f"bag.{step.op}" if step.op in ("root", "diagonal") else ""


def check_step(step: Step, graphs: GraphSet, edits: Edits, policy: str) -> None:
    """``policy``: what to call it in an error."""
    verb = reads_roots(step)
    if verb and edits.root is None:
        raise ValueError(
            f"{policy} does not say which node each subgraph is about, but the model reads that ({verb}): use a policy with "
            f"roots, such as NodeMarking, EgoNets or EdgeMarking, or readout='node' instead of readout='root'"
        )
    if step.edges and graphs.edge_attr is None and not edits.edge_marks.shape[1]:
        raise ValueError("Expected 'edge_attr' in the graphs, because the model reads edge attributes; graph 0 has none")


def check_program(program: Program, graphs: GraphSet, edits: Edits, policy: str) -> None:
    """Refuse steps that read what is not there, and marks on edges that no step reads."""
    for step in program.steps:
        check_step(step, graphs, edits, policy)
    marks = edits.edge_marks.shape[1]
    if marks and not any(step.edges for step in program.steps):
        raise ValueError(
            f"{policy} marks edges, but the model's conv does not read edge attributes: use one that does (conv='gine') and "
            f"set edge_mark_channels={marks}, or pass bag.edge_mark to bag.propagate"
        )
